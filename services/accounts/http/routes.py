"""Login, log-out, links, who is logged in, API tokens, the audit log: HTTP to and from `Accounts`."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec
import orjson
from aiohttp import web

from services.accounts.core.credentials import Credential, Kind, parsed_credential
from services.accounts.core.passwords import PasswordWeak
from services.accounts.core.roles import ScopesWrong, token_scopes
from services.accounts.http.access import ACCOUNT, MANAGEMENT, PUBLIC, Routing
from services.accounts.http.guard import Cookie, credential_of, principal_of, refused, unknown_customer
from services.accounts.http.identities import Identities
from services.accounts.service import Accounts, LoginsTooMany, LoginWrong, TextWrong
from services.accounts.store.audit import Actor
from services.accounts.store.links import LinkSpent
from services.accounts.store.sessions import SESSION_DAYS_MAX
from services.accounts.store.tokens import TooManyTokens
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from shared.codec import NO_JSON
from shared.peer import Network, client_address

BODY_BYTES_MAX: Final = 16 * 1024
AUDIT_ROWS_MAX: Final = 500
TOKEN_DAYS_MAX: Final = 3_650
_ID_MAX: Final = 2**62

T = TypeVar("T")


class _Login(msgspec.Struct):
    email: str
    password: str


class _Following(msgspec.Struct):
    """What a link's page sends: the link alone, or with it what makes a person."""

    link: str
    email: str = ""
    name: str = ""
    password: str = ""
    organisation: str = ""


class _NewToken(msgspec.Struct):
    name: str
    scopes: list[str]
    customers: list[str] | None = None
    days: int | None = None


class BodyWrong(ValueError):
    """The body is not what the route wants."""


class AccountRoutes:
    """The routes; `proxies` are the networks whose X-Forwarded-For is read."""

    def __init__(
        self, accounts: Accounts, identities: Identities, *, cookie: Cookie, proxies: Sequence[Network] = ()
    ) -> None:
        self._accounts = accounts
        self._identities = identities
        self._cookie = cookie
        self._proxies = tuple(proxies)

    def add_to(self, routing: Routing) -> None:
        """Adds the routes."""
        routing.post("/api/login", _answering(self.log_in), PUBLIC, name="login")
        routing.post("/api/link", _answering(self.link), PUBLIC, name="link")
        routing.post("/api/link/use", _answering(self.use_link), PUBLIC, name="use-link")
        routing.get("/api/session", _answering(self.session), ACCOUNT, name="session")
        routing.post("/api/logout", _answering(self.log_out), ACCOUNT, name="logout")
        routing.post("/api/logout/everywhere", _answering(self.log_out_everywhere), ACCOUNT, name="logout-everywhere")
        routing.get("/api/tokens", _answering(self.tokens), MANAGEMENT, name="tokens")
        routing.post("/api/tokens", _answering(self.make_token), MANAGEMENT, name="make-token")
        routing.post("/api/tokens/{id}/revoke", _answering(self.revoke_token), MANAGEMENT, name="revoke-token")
        routing.get("/api/audit", _answering(self.audit), MANAGEMENT, name="audit")

    async def log_in(self, request: web.Request) -> web.Response:
        """A session for an address and its password."""
        given = await _body(request, _Login)
        try:
            session = await self._accounts.log_in(given.email.strip(), given.password, **self._place(request))
        except LoginWrong:
            return refused(401, "login", "the address or the password is wrong")
        except LoginsTooMany as error:
            seconds = max(1, round(error.seconds))
            return refused(429, "attempts", "too many logins have failed", **{"Retry-After": str(seconds)})
        return self._begun(session)

    async def link(self, request: web.Request) -> web.Response:
        """What a link is for; it stays unused."""
        link = await self._accounts.link(_link(await _body(request, _Following)))
        return _json({"kind": link.kind, "email": link.email, "role": link.role})

    async def use_link(self, request: web.Request) -> web.Response:
        """Uses a link: logs in, or makes the person that it is for."""
        given = await _body(request, _Following)
        credential = _link(given)
        if (await self._accounts.link(credential)).kind == "login":
            return self._begun(await self._accounts.log_in_by_link(credential, **self._place(request)))
        session = await self._accounts.accept(
            credential,
            email=given.email,
            name=given.name,
            password=given.password,
            organisation=given.organisation,
            **self._place(request),
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
                "role": principal.role,
                "permissions": sorted(principal.permissions),
                "operates": principal.operates,
                "csrf": credential.csrf if credential.kind is Kind.SESSION else None,
            }
        )

    async def log_out(self, request: web.Request) -> web.Response:
        """Ends this session."""
        if (credential := credential_of(request)).kind is not Kind.SESSION:
            return refused(400, "token", "a token has no session; revoke it")
        await self._accounts.log_out(credential, self._actor(request))
        return self._ended()

    async def log_out_everywhere(self, request: web.Request) -> web.Response:
        """Ends all sessions of this person."""
        principal = principal_of(request)
        if principal.kind != "person":
            return refused(400, "token", "a token has no session; revoke it")
        await self._accounts.log_out_everywhere(principal.id, self._actor(request))
        return self._ended()

    async def tokens(self, request: web.Request) -> web.Response:
        """The organisation's tokens, without their secrets."""
        found = await self._accounts.tokens(principal_of(request))
        return _json({"tokens": [_row(token) for token in found]})

    async def make_token(self, request: web.Request) -> web.Response:
        """A new token; its text is in this answer and nowhere else."""
        given, principal = await _body(request, _NewToken), principal_of(request)
        if given.days is not None and not 1 <= given.days <= TOKEN_DAYS_MAX:
            raise BodyWrong(f"days is 1 to {TOKEN_DAYS_MAX}")
        scopes = token_scopes(given.scopes)
        if principal.kind == "token" and not scopes <= principal.permissions:
            return refused(403, "permission", "a token makes no token that may do more")
        if given.customers is not None and not all(principal.scope.has(one) for one in given.customers):
            return unknown_customer()
        if given.customers is None and principal.kind == "token" and not principal.scope.is_whole:
            return refused(403, "permission", "a token for some customers makes no token for all")
        token = await self._accounts.new_token(
            self._actor(request),
            organisation_id=principal.organisation_id,
            name=given.name,
            scopes=scopes,
            customers=given.customers,
            valid_for=None if given.days is None else timedelta(days=given.days),
        )
        return _json({"id": token.id, "token": token.text}, status=201)

    async def revoke_token(self, request: web.Request) -> web.Response:
        """From now on the token opens nothing."""
        organisation_id = principal_of(request).organisation_id
        was_there = await self._accounts.revoke_token(
            request.match_info["id"].replace("\0", ""), self._actor(request), organisation_id=organisation_id
        )
        self._identities.forget()
        return _json({"done": True}) if was_there else refused(404, "unknown", "there is no such token")

    async def audit(self, request: web.Request) -> web.Response:
        """Who did what, the newest first; `before` goes on behind the last row of the answer before."""
        before = request.query.get("before", str(_ID_MAX))
        if not (before.isascii() and before.isdigit() and len(before) < 20):
            raise BodyWrong("before is a number")
        rows = await self._accounts.audit(
            principal_of(request), before_id=min(int(before), _ID_MAX), rows_max=AUDIT_ROWS_MAX
        )
        return _json({"rows": [_row(row) for row in rows]})

    def _actor(self, request: web.Request) -> Actor:
        return Actor.of(principal_of(request), self._place(request)["address"])

    def _place(self, request: web.Request) -> dict[str, Any]:
        forwarded = request.headers.getall("X-Forwarded-For", [])
        address = client_address(request.remote, forwarded, self._proxies)
        return {"address": _shown(address), "agent": request.headers.get("User-Agent", "")}

    def _begun(self, session: Credential) -> web.Response:
        response = _json({"done": True, "session": True})
        self._cookie.set(response, session, SESSION_DAYS_MAX)
        return response

    def _ended(self) -> web.Response:
        self._identities.forget()
        response = _json({"done": True})
        self._cookie.delete(response)
        return response


def _answering(
    handler: Callable[[web.Request], Awaitable[web.Response]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """`handler`, whose errors are answers."""

    async def answer(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except PostgresAway:
            return refused(503, "away", "Postgres does not answer")
        except NotPublished:
            return refused(503, "accounts", "the database has no accounts yet")
        except QueryRefused:
            return refused(500, "refused", "Postgres refuses the query")
        except LinkSpent:
            return refused(410, "link", "the link is unknown, was used, or has expired")
        except (TextWrong, PasswordWeak, ScopesWrong, BodyWrong) as error:
            return refused(400, "body", str(error))
        except TooManyTokens:
            return refused(409, "tokens", "the organisation has as many tokens as it may: revoke some")

    return answer


async def _body(request: web.Request, kind: type[T]) -> T:
    """The body, JSON. Raises `BodyWrong`."""
    if request.content_type != "application/json":
        # What a form can send without asking first is not taken.
        raise BodyWrong("a body of application/json")
    if (request.content_length or 0) > BODY_BYTES_MAX:
        raise BodyWrong(f"a body has at most {BODY_BYTES_MAX} bytes")
    data = await request.content.read(BODY_BYTES_MAX + 1)
    while len(data) <= BODY_BYTES_MAX and not request.content.at_eof():
        data += await request.content.read(BODY_BYTES_MAX + 1 - len(data))
    if len(data) > BODY_BYTES_MAX:
        raise BodyWrong(f"a body has at most {BODY_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(data, type=kind)
    except NO_JSON:
        raise BodyWrong("the body is not the JSON that this route takes") from None


def _link(given: _Following) -> Credential:
    credential = parsed_credential(Kind.LINK, given.link)
    if credential is None:
        raise LinkSpent
    return credential


def _shown(address: str | None) -> str | None:
    """An address that can be stored: a proxy passes on what a client claims."""
    return address[:64] if address and address.isascii() and address.isprintable() else None


def _row(row: Any) -> dict[str, Any]:
    found = {name: getattr(row, name) for name in row.__dataclass_fields__}
    return {
        name: round(value.timestamp() * 1_000) if isinstance(value, datetime) else value
        for name, value in found.items()
    }


def _json(content: dict[str, Any], *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), content_type="application/json", status=status)
