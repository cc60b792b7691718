"""Login, log-out, links, who is logged in: HTTP to and from `Accounts`. The API of accounts is added with them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import orjson
from aiohttp import web

from services.accounts.core.credentials import Credential, Kind, parsed_credential
from services.accounts.http.access import ACCOUNT, PUBLIC, Routing
from services.accounts.http.external import External, ExternalRoutes
from services.accounts.http.guard import Cookie, credential_of, principal_of
from services.accounts.http.problems import ANSWERED, Refused, answer_of
from services.accounts.http.requests import Place, body_of
from services.accounts.http.v1.api import AccountsApi
from services.accounts.service import Accounts
from services.accounts.store.audit import Actor
from services.accounts.store.links import LinkSpent
from services.accounts.store.sessions import SESSION_DAYS_MAX
from services.rim.database.pool import Postgres
from shared.http.peer import Network
from shared.http.problems import Problem


class _Login(msgspec.Struct):
    email: str
    password: str
    #: Of the second factor, or a recovery code.
    code: str = ""


class _Following(msgspec.Struct):
    """What a link's page sends: the link alone, or with it what makes a person."""

    link: str
    email: str = ""
    name: str = ""
    password: str = ""
    organisation: str = ""


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
        routing.post("/api/login", _answering(self.log_in), PUBLIC, name="login")
        routing.post("/api/link", _answering(self.link), PUBLIC, name="link")
        routing.post("/api/link/use", _answering(self.use_link), PUBLIC, name="use-link")
        routing.get("/api/session", _answering(self.session), ACCOUNT, name="session")
        routing.post("/api/logout", _answering(self.log_out), ACCOUNT, name="logout")
        routing.post("/api/logout/everywhere", _answering(self.log_out_everywhere), ACCOUNT, name="logout-everywhere")
        self._external.add_to(routing)
        self.api.add_to(routing)

    async def log_in(self, request: web.Request) -> web.Response:
        """A session for an address, its password and, where the account has one, a code of its second factor."""
        given = await body_of(request, _Login)
        session = await self._accounts.log_in(
            given.email.strip(), given.password, code=given.code[:100], **self._from(request)
        )
        return self._begun(session)

    async def link(self, request: web.Request) -> web.Response:
        """What a link is for; it stays unused."""
        link = await self._accounts.link(_link(await body_of(request, _Following)))
        return _json({"kind": link.kind, "email": link.email, "role": link.role})

    async def use_link(self, request: web.Request) -> web.Response:
        """Uses a link: logs in, or makes the person that it is for."""
        given = await body_of(request, _Following)
        credential = _link(given)
        if (await self._accounts.link(credential)).kind == "login":
            return self._begun(await self._accounts.log_in_by_link(credential, **self._from(request)))
        session = await self._accounts.accept(
            credential,
            email=given.email,
            name=given.name,
            password=given.password,
            organisation=given.organisation,
            **self._from(request),
        )
        return self._begun(session) if session is not None else _json({"done": True, "session": False})

    async def session(self, request: web.Request) -> web.Response:
        """Who is logged in, and what the page sends with each change."""
        principal, credential = principal_of(request), credential_of(request)
        return _json(
            {
                "kind": principal.kind,
                "name": principal.name,
                "organisation": principal.organisation,
                "organisation_id": principal.organisation_id,
                "role": principal.role,
                "permissions": sorted(principal.permissions),
                "operates": principal.operates,
                "csrf": credential.csrf if credential.kind is Kind.SESSION else None,
            }
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
        response = _json({"done": True, "session": True})
        self._cookie.set(response, session, SESSION_DAYS_MAX)
        return response

    def _ended(self) -> web.Response:
        response = _json({"done": True})
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


def _link(given: _Following) -> Credential:
    credential = parsed_credential(Kind.LINK, given.link)
    if credential is None:
        raise LinkSpent
    return credential


def _json(content: dict[str, Any], *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), content_type="application/json", status=status)
