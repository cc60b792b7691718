"""Login, log-out, links, who is logged in: HTTP to and from `Accounts`. The rest of the API of accounts is added with them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal

import msgspec
from aiohttp import web

from services.accounts.core.credentials import Credential, Kind, parsed_credential
from services.accounts.credential_queue import CredentialQueue
from services.accounts.http.access import ACCOUNT, PUBLIC, Access, Routing
from services.accounts.http.external import WAYS, External, ExternalRoutes
from services.accounts.http.guard import Cookie, credential_of, principal_of
from services.accounts.http.problems import ANSWERED, answer_of
from services.accounts.http.requests import Place, body_of
from services.accounts.http.v1.api import AccountsApi
from services.accounts.service import Accounts
from services.accounts.store.audit import Actor
from services.accounts.store.logins.links import LinkSpent
from services.accounts.store.logins.sessions import SESSION_DAYS_MAX
from services.rim.database.pool import Postgres
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import Refused
from shared.http.peer import Network
from shared.http.problems import Problem


class Login(msgspec.Struct):
    """Address and password of a login, and the code if there is a second factor."""

    email: str
    password: str
    #: Of the second factor, or a recovery code.
    code: str = ""


class FollowedLink(msgspec.Struct):
    """The body that a link's page sends: the link, and for a new person also address, name, password and organisation."""

    link: str
    email: str = ""
    name: str = ""
    password: str = ""
    organisation: str = ""


class LinkFound(msgspec.Struct, frozen=True):
    """The purpose of a link."""

    kind: str
    email: str | None
    role: str | None


class LoggedIn(msgspec.Struct, frozen=True):
    """Whether a session has begun: the answer has its cookie."""

    session: bool
    done: Literal[True] = True


class LoggedOut(msgspec.Struct, frozen=True):
    """The session has ended."""

    done: Literal[True] = True


class Session(msgspec.Struct, frozen=True):
    """The person who is logged in, or the owner of the token, and the token that a page sends with each change."""

    kind: Literal["person", "token"]
    name: str
    organisation: str
    organisation_id: str
    role: str | None
    permissions: list[str]
    #: Whether these run the installation.
    operates: bool
    #: Whether their organisation runs the installation: every customer that no other owns is its own.
    runs_installation: bool
    #: For the header Playhead-CSRF; a token has none.
    csrf: str | None


_OF_PASSWORDS: Final = (400, 401, 403, 409, 410, 429, 503)
LOGIN: Final = Operation(
    "/v1/login",
    "Begins a session for an address, its password and, where the account has one, a code of its second factor",
    LoggedIn,
    takes=Login,
    method="post",
    statuses=_OF_PASSWORDS,
    tag="session",
    is_public=True,
)
LINK: Final = Operation(
    "/v1/link",
    "What a link is for; it stays unused",
    LinkFound,
    takes=FollowedLink,
    method="post",
    statuses=_OF_PASSWORDS,
    tag="session",
    is_public=True,
)
LINK_USE: Final = Operation(
    "/v1/link/use",
    "Uses a link: logs in, or makes the person that it is for",
    LoggedIn,
    takes=FollowedLink,
    method="post",
    statuses=_OF_PASSWORDS,
    tag="session",
    is_public=True,
)
SESSION: Final = Operation("/v1/session", "Who is logged in", Session, statuses=GUARDED, tag="session")
LOGOUT: Final = Operation(
    "/v1/logout", "Ends this session", LoggedOut, method="post", statuses=(400, *GUARDED), tag="session"
)
LOGOUT_EVERYWHERE: Final = Operation(
    "/v1/logout/everywhere",
    "Ends all sessions of this person",
    LoggedOut,
    method="post",
    statuses=(400, *GUARDED),
    tag="session",
)


class AccountRoutes:
    """The routes; `proxies` are the networks whose X-Forwarded-For is read, `page_url` is where browsers reach the page.

    `customers` is the customers' database, if it is not that of the accounts; `external` an OpenID provider.
    """

    def __init__(
        self,
        accounts: Accounts,
        *,
        cookie: Cookie,
        proxies: Sequence[Network] = (),
        page_url: str = "",
        customers: Postgres | None = None,
        external: External | None = None,
    ) -> None:
        self._accounts = accounts
        self._cookie = cookie
        self.place = Place(tuple(proxies))
        self._external = ExternalRoutes(accounts, external, cookie=cookie, place=self.place)
        self.api = AccountsApi(accounts, self.place, page_url, customers or accounts.postgres)

    def add_to(self, routing: Routing) -> None:
        """Adds the routes."""
        handlers: list[tuple[Operation, Callable[[web.Request], Awaitable[web.Response]], Access]] = [
            (LOGIN, self.log_in, PUBLIC),
            (LINK, self.link, PUBLIC),
            (LINK_USE, self.use_link, PUBLIC),
            (SESSION, self.session, ACCOUNT),
            (LOGOUT, self.log_out, ACCOUNT),
            (LOGOUT_EVERYWHERE, self.log_out_everywhere, ACCOUNT),
        ]
        for operation, handler, access in handlers:
            routing.add(operation.method.upper(), operation.path, _answering(handler), access, name=operation.name)
        self._external.add_to(routing)
        self.api.add_to(routing)

    @property
    def queue(self) -> CredentialQueue:
        """The turns of what the public routes ask: the guard's look-ups over the same pool take them too."""
        return self._accounts.queue

    @property
    def described(self) -> list[Operation]:
        """For the document of the whole API."""
        of_sessions = [LOGIN, LINK, LINK_USE, SESSION, LOGOUT, LOGOUT_EVERYWHERE, WAYS]
        return [*of_sessions, *self.api.described]

    async def log_in(self, request: web.Request) -> web.Response:
        """A session for an address, its password and, where the account has one, a code of its second factor."""
        given = await body_of(request, Login)
        session = await self._accounts.log_in(
            given.email.strip(), given.password, code=given.code[:100], **self._from(request)
        )
        return self._begun(session)

    async def link(self, request: web.Request) -> web.Response:
        """The purpose of a link; it stays unused."""
        credential = _link(await body_of(request, FollowedLink))
        link = await self._accounts.link(credential, address=self.place.address(request))
        return _json(LinkFound(link.kind, link.email, link.role))

    async def use_link(self, request: web.Request) -> web.Response:
        """Uses a link: logs in, or makes the person that it is for."""
        given = await body_of(request, FollowedLink)
        credential = _link(given)
        if (await self._accounts.link(credential, address=self.place.address(request))).kind == "login":
            return self._begun(await self._accounts.log_in_by_link(credential, **self._from(request)))
        session = await self._accounts.accept(
            credential,
            email=given.email,
            name=given.name,
            password=given.password,
            organisation=given.organisation,
            **self._from(request),
        )
        return self._begun(session) if session is not None else _json(LoggedIn(session=False))

    async def session(self, request: web.Request) -> web.Response:
        """The person who is logged in, and the token that the page sends with each change."""
        principal, credential = principal_of(request), credential_of(request)
        return _json(
            Session(
                kind=principal.kind,
                name=principal.name,
                organisation=principal.organisation,
                organisation_id=principal.organisation_id,
                role=principal.role,
                permissions=sorted(principal.permissions),
                operates=principal.operates,
                runs_installation=principal.runs_installation,
                csrf=credential.csrf if credential.kind is Kind.SESSION else None,
            )
        )

    async def log_out(self, request: web.Request) -> web.Response:
        """Ends this session."""
        if (credential := credential_of(request)).kind is not Kind.SESSION:
            raise Refused(_NO_SESSION)
        await self._accounts.log_out(credential, self._actor(request))
        return self._ended()

    async def log_out_everywhere(self, request: web.Request) -> web.Response:
        """Ends all sessions of this person."""
        principal = principal_of(request)
        if principal.kind != "person":
            raise Refused(_NO_SESSION)
        await self._accounts.log_out_everywhere(principal.id, self._actor(request))
        return self._ended()

    def _actor(self, request: web.Request) -> Actor:
        return Actor.of(principal_of(request), self.place.address(request))

    def _from(self, request: web.Request) -> dict[str, Any]:
        return {"address": self.place.address(request), "agent": self.place.agent(request)}

    def _begun(self, session: Credential) -> web.Response:
        response = _json(LoggedIn(session=True))
        self._cookie.set(response, session, SESSION_DAYS_MAX)
        return response

    def _ended(self) -> web.Response:
        response = _json(LoggedOut())
        self._cookie.delete(response)
        return response


_NO_SESSION = Problem(400, "A token has no session", "token", "Revoke it instead.")


def _answering(
    handler: Callable[[web.Request], Awaitable[web.Response]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """`handler`, whose errors are answers."""

    async def answer(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except ANSWERED as error:
            return answer_of(error)

    return answer


def _link(given: FollowedLink) -> Credential:
    credential = parsed_credential(Kind.LINK, given.link)
    if credential is None:
        raise LinkSpent
    return credential


def _json(content: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(content), content_type="application/json")
