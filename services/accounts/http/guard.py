"""Guard: before every handler it finds out who asks, and whether that person or token may.

In order: the `Host`, the route's access, who asks, how often, the CSRF token of changes, the permission, and the customer that is
named.
"""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web
from aiohttp.typedefs import Handler

from services.accounts.core.credentials import Credential, Kind, parsed_credential
from services.accounts.core.principal import Principal
from services.accounts.credential_queue import CredentialQueue, TooManyWaiting
from services.accounts.http.access import ALL, Access, Routing
from services.accounts.http.hosts import Hosts, is_same_origin
from services.accounts.http.identities import Identities
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.openapi import CSRF_HEADER
from services.rim.http.problems import UNKNOWN_CUSTOMER, problem_response, rate_response
from services.rim.turns.rates import Rates, TooManyRequests
from shared.http.problems import PROBLEM_JSON, Problem
from shared.schemas.beacon import CUSTOMER_ID

#: Of each person or token, by default.
REQUESTS_PER_SECOND: Final = 1_000.0
#: An organisation, which may have hundreds of tokens, has the rate of so many callers.
CALLERS_OF_ORGANISATION: Final = 10
LOGIN_PATH: Final = "/login"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_PRINCIPAL: Final = web.RequestKey("principal", Principal)
_CREDENTIAL: Final = web.RequestKey("credential", Credential)


@dataclass(frozen=True)
class Cookie:
    """The session's cookie. Over TLS its name keeps it to this host (RFC 6265bis, 4.1.3.2)."""

    is_secure: bool

    @property
    def name(self) -> str:
        """Its name."""
        return "__Host-playhead_session" if self.is_secure else "playhead_session"

    def set(self, response: web.StreamResponse, credential: Credential, days: int) -> None:
        """Gives it to the browser."""
        response.set_cookie(
            self.name,
            credential.text,
            path="/",
            httponly=True,
            secure=self.is_secure,
            # A link from elsewhere may lead here; a change from elsewhere carries no cookie.
            samesite="Lax",
            max_age=days * 86_400,
        )

    def delete(self, response: web.StreamResponse) -> None:
        """Takes it back."""
        response.del_cookie(self.name, path="/", httponly=True, secure=self.is_secure, samesite="Lax")


def principal_of(request: web.Request) -> Principal:
    """The caller, on a route that is not public."""
    return request[_PRINCIPAL]


def credential_of(request: web.Request) -> Credential:
    """With what, on a route that is not public."""
    return request[_CREDENTIAL]


class Guard:
    """The middleware.

    `away_page` is the answer of a page while no caller can be recognised, `missing_page` that of one which the caller does not
    have; without it that is a bare 404. `address` gives the client address of a request.
    `rates` are the request rates of known callers. `queue` has the turns of look-ups, where others take them from the same pool.
    """

    def __init__(
        self,
        routing: Routing,
        identities: Identities,
        *,
        hosts: Hosts,
        cookie: Cookie,
        away_page: Callable[[], web.StreamResponse],
        missing_page: Callable[[], web.StreamResponse] | None = None,
        rates: Rates | None = None,
        queue: CredentialQueue | None = None,
        address: Callable[[web.Request], str | None] = lambda request: request.remote,
    ) -> None:
        self._routing = routing
        self._identities = identities
        self._hosts = hosts
        self._cookie = cookie
        self._away_page = away_page
        self._missing_page = missing_page
        self._address = address
        self._rates = rates or Rates(REQUESTS_PER_SECOND)
        self._queue = queue or CredentialQueue()

    @web.middleware
    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answers, or lets the handler."""
        if not self._hosts.has(request.headers.get("Host")):
            return refused(421, "host", "this service is not known under that name")
        if request.match_info.http_exception is not None:
            return await handler(request)
        access = self._routing.of(request.match_info.route)
        if access is None:
            # No application is made with one. Should it be, nobody is let in.
            return refused(404, "unknown", "nothing is here")
        if access.whose == "elsewhere":
            return await handler(request)
        if access.whose == "public":
            if request.method not in _SAFE and not _is_from_own_page(request):
                return refused(403, "origin", "a page of another origin may not ask this")
            return await handler(request)
        credential = self.given(request)
        if credential is None:
            return _nobody(request, access)
        try:
            principal = await self._principal(request, credential)
        except (PostgresAway, NotPublished, QueryRefused) as error:
            return self._away(access, error)
        if principal is None:
            return _nobody(request, access)
        try:
            self._rates.charge(principal.caller)
            self._rates.charge(f"organisation:{principal.organisation_id}", 1 / CALLERS_OF_ORGANISATION)
        except TooManyRequests as error:
            return rate_response(error)
        denied = _denied(request, access, credential, principal)
        if denied is not None:
            return self._missing(denied) if access.is_page else denied
        request[_PRINCIPAL], request[_CREDENTIAL] = principal, credential
        return await handler(request)

    async def confirm(self, request: web.Request) -> Principal | None:
        """The caller, looked up again: for answers that take long. Raises as `Identities.principal`."""
        return await self._principal(request, credential_of(request))

    async def _principal(self, request: web.Request, credential: Credential) -> Principal | None:
        async with self._queue.turn(self._address(request)):
            return await self._identities.principal(credential)

    def given(self, request: web.Request) -> Credential | None:
        """What a request gives to be recognised by, known or not; None without anything that can be one."""
        header = request.headers.get("Authorization")
        if header is None:
            return parsed_credential(Kind.SESSION, request.cookies.get(self._cookie.name, ""))
        scheme, _, text = header.partition(" ")
        # Basic and any other scheme is refused: a cookie beside it does not count either.
        return parsed_credential(Kind.TOKEN, text.strip()) if scheme.casefold() == "bearer" else None

    def _missing(self, denied: web.StreamResponse) -> web.StreamResponse:
        """The answer of a page that is not there for the caller; any other refusal as it is."""
        if denied.status != HTTPStatus.NOT_FOUND:
            return denied
        if self._missing_page is None:
            raise web.HTTPNotFound
        return self._missing_page()

    def _away(self, access: Access, error: Exception) -> web.StreamResponse:
        if access.is_page:
            return self._away_page()
        if isinstance(error, TooManyWaiting):
            return refused(429, "too-many", "too many requests of this address at a time", **{"Retry-After": "1"})
        if isinstance(error, PostgresAway):
            return problem_response(Problem(503, "Postgres does not answer", "postgres-away"))
        return refused(503, "accounts", "the database has no accounts yet, or not those that this version knows")


def refused(status: int, error: str, detail: str, **headers: str) -> web.Response:
    """An answer that says why there is no other: a problem (RFC 9457)."""
    problem = Problem(status, HTTPStatus(status).phrase, error, detail)
    return web.Response(body=problem.encode(), status=status, content_type=PROBLEM_JSON, headers=headers)


def unknown_customer() -> web.Response:
    """The answer for a customer that the caller may not see, whether or not it exists."""
    return problem_response(UNKNOWN_CUSTOMER)


def _denied(
    request: web.Request, access: Access, credential: Credential, principal: Principal
) -> web.StreamResponse | None:
    """Why this principal may not, if so."""
    if request.method not in _SAFE and credential.kind is Kind.SESSION:
        given = request.headers.get(CSRF_HEADER, "")
        if not _is_from_own_page(request) or not credential.is_csrf(given):
            return refused(403, "csrf", f"a change needs the header {CSRF_HEADER} of the session, from its own page")
    if access.whose == "installation" and not principal.operates:
        # For everybody else this is not there.
        return refused(404, "unknown", "nothing is here")
    if access.permission is not None and not principal.may(access.permission):
        return refused(403, "permission", f"this needs the permission {access.permission}")
    if access.whose == "team" and not principal.scope.is_whole:
        return refused(403, "permission", "a token for some customers has no business with the organisation")
    if access.whose == "customer":
        customer_ids: list[Any] = request.query.getall("customer", [])
        if access.takes_all and customer_ids == [ALL]:
            return None
        if len(customer_ids) != 1 or not CUSTOMER_ID.fullmatch(customer_ids[0]):
            return refused(400, "name", "customer names a customer")
        if not principal.scope.has(customer_ids[0]):
            return unknown_customer()
    return None


def _nobody(request: web.Request, access: Access) -> web.StreamResponse:
    if access.is_page and request.method in _SAFE:
        wanted = quote(request.path_qs, safe="")
        raise web.HTTPFound(LOGIN_PATH if request.path == "/" else f"{LOGIN_PATH}?to={wanted}")
    return refused(401, "login", "log in, or give a token", **{"WWW-Authenticate": "Bearer"})


def _is_from_own_page(request: web.Request) -> bool:
    """Whether a change comes from a page of this origin, or from no browser."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    return site == "same-origin" and is_same_origin(request.headers.get("Origin"), request.headers.get("Host"))
