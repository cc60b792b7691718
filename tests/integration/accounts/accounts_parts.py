"""The routes of accounts on a real Postgres, and clients that are logged in."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from aiohttp import DummyCookieJar, web
from aiohttp.test_utils import TestClient, TestServer
from argon2 import PasswordHasher

from deploy.local.postgres import Postgres
from services.accounts.core.credentials import Credential, Kind, parsed_credential
from services.accounts.http.access import Routing
from services.accounts.http.external import External
from services.accounts.http.guard import Cookie, Guard
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.accounts.http.routes import AccountRoutes
from services.accounts.password_hashes import Passwords
from services.accounts.service import Accounts
from services.accounts.store import schema
from services.rim.http.openapi import CSRF_HEADER
from tests.integration.parts.databases import migrated_database

PASSWORD = "a fairly long one 7"
#: Argon2id with the least work: the usual hashes would take most of the CPU time. `test_accounts.py` has what is stored by default.
QUICK: Final = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
HERE: dict[str, Any] = {"address": "203.0.113.7", "agent": "Firefox\0\ud800"}


@dataclass
class Site:
    """One application of accounts' routes."""

    accounts: Accounts
    identities: Identities
    routes: AccountRoutes
    client: TestClient[web.Request, web.Application]
    dsn: str

    async def ask(
        self, method: str, path: str, who: Credential | str | None, body: Any = None
    ) -> tuple[int, dict[str, Any]]:
        """The answer's status and JSON; `who` is a session, a token's text, or nobody."""
        headers = {}
        if isinstance(who, str):
            headers["Authorization"] = f"Bearer {who}"
        elif who is not None:
            headers = {"Cookie": f"{Cookie(is_secure=False).name}={who.text}", CSRF_HEADER: who.csrf}
        async with self.client.request(method, path, json=body, headers=headers) as answer:
            self._expect_documented(method, path, answer.status)
            return answer.status, await answer.json()

    def _expect_documented(self, method: str, path: str, status: int) -> None:
        """The OpenAPI document names the status of this operation's answer."""
        plain = path.partition("?")[0]
        for one in self.routes.described:
            pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(one.path))
            if one.method == method.lower() and re.fullmatch(pattern, plain):
                assert status in {one.status, *one.statuses}, f"{method} {plain} answers {status}"

    async def got(self, method: str, path: str, who: Credential | str | None, body: Any = None) -> dict[str, Any]:
        """The JSON of an answer of success."""
        status, content = await self.ask(method, path, who, body)
        assert status in {200, 201}, content
        return content

    async def owner(self) -> Credential:
        """A session of the installation's first owner."""
        link = await self.accounts.new_owner_link()
        assert link is not None
        session = await self.accounts.accept(
            link, email="owner@example.com", name="O", password=PASSWORD, organisation="Home", **HERE
        )
        assert session is not None
        return session

    async def join(self, address: str, email: str = "") -> Credential:
        """Follows the address of an invitation, as its page does; a session of who has joined."""
        _, _, link = address.partition("#")
        body = {"link": link, "name": email or "New", "password": PASSWORD}
        async with self.client.post("/v1/link/use", json=body) as answer:
            assert answer.status == 200, await answer.text()
            return self.session_in(answer.cookies[Cookie(is_secure=False).name].value)

    @staticmethod
    def session_in(text: str) -> Credential:
        """The session of a cookie's value."""
        found = parsed_credential(Kind.SESSION, text)
        assert found is not None
        return found

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What Postgres has."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query).fetchall()


def passwords() -> Passwords:
    """Those of tests."""
    return Passwords(QUICK)


@asynccontextmanager
async def site(
    dsn: str, *, external: External | None = None, port: int | None = None, **options: Any
) -> AsyncIterator[Site]:
    """An application of its own over this database."""
    accounts = Accounts(dsn, seconds_max=20.0, passwords=passwords(), **options)
    await accounts.open()
    identities, cookie = Identities(accounts.postgres), Cookie(is_secure=False)
    app = web.Application()
    routing = Routing(app)
    guard = Guard(routing, identities, hosts=Hosts([]), cookie=cookie, away_page=web.Response, queue=accounts.queue)
    app.middlewares.append(guard.answer)
    routes = AccountRoutes(accounts, cookie=cookie, page_url="https://playhead.example", external=external)
    routes.add_to(routing)
    routing.check()
    # Cookies are given by hand: several people share the client.
    client = TestClient(TestServer(app, port=port), cookie_jar=DummyCookieJar())
    await client.start_server()
    yield Site(accounts, identities, routes, client, dsn)
    await client.close()
    await accounts.close()


@asynccontextmanager
async def new_site(postgres: Postgres, **given: Any) -> AsyncIterator[Site]:
    """A site on an empty database; `given` is for `site`."""
    async with site(migrated_database(postgres, "accounts", schema.migrate), **given) as made:
        yield made


async def invited(home: Site, by: Credential, email: str, role: str) -> Credential:
    """A session of a new member, who has followed the invitation."""
    made = await home.got("POST", "/v1/invitations", by, {"email": email, "role": role})
    assert made["link"].startswith("https://playhead.example/login#phl_")
    return await home.join(made["link"], email)


async def globex(home: Site, owner: Credential) -> Credential:
    """The owner of an organisation beside the one that runs the installation."""
    made = await home.got("POST", "/v1/organisations", owner, {"name": "Globex", "owner": "boss@globex.example"})
    return await home.join(made["link"])
