"""Logins at an OpenID provider: there, and back."""

import secrets
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec
import psycopg
import structlog
from aiohttp import web

from services.accounts.core.credentials import Credential, Kind, parsed_credential
from services.accounts.core.login_throttle import logins_at_provider
from services.accounts.http.access import PUBLIC, PUBLIC_PAGE, Routing
from services.accounts.http.guard import LOGIN_PATH, Cookie
from services.accounts.http.requests import Place
from services.accounts.provider import Provider, ProviderAway, ProviderRefused
from services.accounts.service import Accounts
from services.accounts.store.logins import external
from services.accounts.store.logins.external import Begun, NoAccount
from services.accounts.store.logins.sessions import SESSION_DAYS_MAX, forgive_attempt
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.openapi import Operation

log = structlog.get_logger(__name__)

CALLBACK_PATH: Final = "/login/back"
_COOKIE: Final = "playhead_login"
_SECRET_BYTES: Final = 32
_PATH_CHARS_MAX: Final = 2_000


class LoginWays(msgspec.Struct, frozen=True):
    """How people may log in besides by passwords: the name of a provider, or null."""

    provider: str | None


WAYS: Final = Operation(
    "/v1/login/ways",
    "How people may log in besides by passwords",
    LoginWays,
    statuses=(),
    tag="session",
    is_public=True,
)


@dataclass(frozen=True)
class External:
    """A provider, and what the page of logins calls it."""

    provider: Provider
    name: str


class ExternalRoutes:
    """The routes; without a provider their answer is that there is none."""

    def __init__(self, accounts: Accounts, found: External | None, *, cookie: Cookie, place: Place) -> None:
        self._accounts = accounts
        self._external = found
        self._cookie = cookie
        self._place = place

    def add_to(self, routing: Routing) -> None:
        """Adds the routes."""
        routing.get(WAYS.path, self.ways, PUBLIC, name=WAYS.name)
        routing.get("/login/there", self.begin, PUBLIC_PAGE, name="login-there")
        routing.get(CALLBACK_PATH, self.end, PUBLIC_PAGE, name="login-back")

    async def ways(self, _: web.Request) -> web.Response:
        """How people may log in besides by passwords."""
        name = self._external.name if self._external is not None else None
        return web.Response(body=msgspec.json.encode(LoginWays(name)), content_type="application/json")

    async def begin(self, request: web.Request) -> web.StreamResponse:
        """Leads the browser to the provider; `to` is where it goes after the login."""
        if self._external is None:
            return _failed("off")
        credential = self._accounts.new(Kind.EXTERNAL)
        begun = Begun(
            secrets.token_urlsafe(_SECRET_BYTES),
            secrets.token_urlsafe(_SECRET_BYTES),
            _own_path(request.query.get("to")),
        )
        try:
            address = await self._external.provider.login_address(credential.id, begun)
            here = self._place.address(request)
            begin = partial(external.begin, credential=credential, begun=begun, allowed=logins_at_provider(here))
            if not await self._accounts.ask_in_turn(here, begin):
                return _failed("busy")
        except (ProviderAway, PostgresAway, NotPublished, QueryRefused):
            return _failed("away")
        except ProviderRefused as error:
            log.error("provider_refused", problem=str(error))
            return _failed("refused")
        response = web.Response(status=302, headers={"Location": address})
        # The answer comes from the provider's page: a strict cookie would not come with it.
        response.set_cookie(
            _COOKIE,
            credential.text,
            path=CALLBACK_PATH,
            httponly=True,
            secure=self._cookie.is_secure,
            samesite="Lax",
            max_age=round(external.LOGIN_FOR.total_seconds()),
        )
        return response

    async def end(self, request: web.Request) -> web.StreamResponse:
        """Logs in whom the provider names, in the browser that the login began in."""
        credential = parsed_credential(Kind.EXTERNAL, request.cookies.get(_COOKIE, ""))
        code = request.query.get("code", "")
        if self._external is None or credential is None or request.query.get("state") != credential.id or not code:
            return self._ended(_failed("refused"))
        try:
            response = await self._log_in(request, self._external.provider, credential, code)
        except (ProviderAway, PostgresAway, NotPublished, QueryRefused):
            response = _failed("away")
        except ProviderRefused as error:
            log.error("provider_refused", problem=str(error))
            response = _failed("refused")
        except NoAccount:
            response = _failed("unknown")
        return self._ended(response)

    async def _log_in(
        self, request: web.Request, provider: Provider, credential: Credential, code: str
    ) -> web.StreamResponse:
        address, agent = self._place.address(request), self._place.agent(request)
        begun = await self._accounts.ask_in_turn(address, partial(external.redeem, credential=credential))
        if begun is None:
            return _failed("refused")
        claims, session = await provider.claims(code, begun), self._accounts.new(Kind.SESSION)

        async def log_in(connection: psycopg.AsyncConnection) -> None:
            whose = await external.log_in(connection, claims, address)
            await self._accounts.open_session(connection, session, whose, address, agent)
            await forgive_attempt(connection, logins_at_provider(address))

        await self._accounts.ask_in_turn(address, log_in)
        response = web.Response(status=302, headers={"Location": begun.destination})
        self._cookie.set(response, session, SESSION_DAYS_MAX)
        return response

    def _ended(self, response: web.StreamResponse) -> web.StreamResponse:
        response.del_cookie(_COOKIE, path=CALLBACK_PATH, httponly=True, secure=self._cookie.is_secure, samesite="Lax")
        return response


def _failed(why: str) -> web.Response:
    """Back to the page of logins, which says why."""
    return web.Response(status=302, headers={"Location": f"{LOGIN_PATH}?failed={quote(why)}"})


def _own_path(text: str | None) -> str:
    """A path of this origin; the first page for anything else."""
    if (
        not text
        or len(text) > _PATH_CHARS_MAX
        or not text.startswith("/")
        or not text.isascii()
        or not text.isprintable()
    ):
        return "/"
    parts = urlsplit(text)
    is_own = not parts.scheme and not parts.netloc and not text.startswith(("//", "/\\")) and "\\" not in text
    return text if is_own else "/"
