"""What anybody may ask of Postgres takes turns with the look-ups of credentials: a flood of it keeps nobody else waiting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import pytest
from aiohttp import TCPConnector, web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts import credential_queue
from services.accounts.core.credentials import Credential, Kind
from services.accounts.credential_queue import AT_ONCE_MAX
from services.accounts.http.external import External
from services.accounts.http.guard import Cookie
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.accounts.http.routes import AccountRoutes
from services.accounts.password_hashes import Passwords
from services.accounts.provider import Provider
from services.accounts.service import AT_ONCE_OF_ORGANISATION, QUESTIONS_OF_ORGANISATION_MAX, Accounts
from services.accounts.store.logins.external import Begun, Claims, begin
from services.accounts.store.logins.identities import principal_of
from services.accounts.store.logins.links import LinkSpent, find_link
from services.accounts.store.logins.sessions import Person, count_login, person_of
from services.alerts.http.routes import AlertRoutes
from services.alerts.service import Alerting
from services.alerts.trying.running import Trying
from services.dashboard.app import Door, make_app
from tests.unit.dashboard.desk import NOW_MS, quiet_board
from tests.unit.dashboard.door import GLOBEX_ADMIN, OWNER, Known, NotedLooks, cookies, credential, door

FLOOD, HONEST = "203.0.113.9", "198.51.100.1"
LINK = credential(Kind.LINK, 200).text
BACK = credential(Kind.EXTERNAL, 201)
LOGIN = {"email": "nobody@example.com", "password": "an invented one"}
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "/v1/link": ("POST", "/v1/link", {"link": LINK}),
    "/v1/link/use": ("POST", "/v1/link/use", {"link": LINK}),
    "/v1/login": ("POST", "/v1/login", LOGIN),
    "/login/there": ("GET", "/login/there", None),
    "/login/back": ("GET", f"/login/back?code=c&state={BACK.id}", None),
}


class Slow(Passwords, Provider):
    """Hashes and a provider that answer whenever the test lets them."""

    def __init__(self) -> None:
        self.asked, self.let = 0, asyncio.Event()

    async def is_right(self, stored: str | None, password: str) -> bool:
        await self._waited()
        return False

    async def login_address(self, state: str, begun: Begun) -> str:
        await self._waited()
        return "https://id.example/"

    async def claims(self, code: str, begun: Begun) -> Claims:
        await self._waited()
        return Claims("https://id.example", "s", None, "S")

    async def _waited(self) -> None:
        self.asked += 1
        await self.let.wait()


class Site:
    """The dashboard over a Postgres that answers one question whenever the test lets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slow = Slow()
        self.slow.let.set()
        self.let = asyncio.Semaphore(0)
        self.may_begin = True
        #: Of the questions that were put to Postgres, those of the session's owner; how many there were, and at a time.
        self.sessions = self.asked = self.under_way = self.under_way_max = 0
        known = door().identities
        assert isinstance(known, Known)
        self._people = known.people
        accounts, cookie = (
            Accounts("postgresql://nobody@127.0.0.1:1/none", passwords=self.slow),
            Cookie(is_secure=False),
        )
        monkeypatch.setattr(accounts.lookups, "ask", self._ask)
        # What callers ask has connections of its own.
        self.callers = 0
        self.let_callers = asyncio.Semaphore(0)
        monkeypatch.setattr(accounts.postgres, "ask", self._ask_of_caller)
        # However slow the machine is, nobody waits too long here.
        monkeypatch.setattr(accounts.queue, "_wait_seconds_max", 60)
        self._queue = accounts.queue
        routes = AccountRoutes(
            accounts, cookie=cookie, proxies=[ip_network("127.0.0.1")], external=External(self.slow, "Acme ID")
        )
        made = Door(Identities(accounts.lookups), routes, Hosts([]), cookie, NotedLooks())
        pool = accounts.postgres
        alerts = AlertRoutes(Alerting(pool), Trying(pool, lambda: NOW_MS), now_ms=lambda: NOW_MS, turns=accounts.turns)
        self.app = make_app(quiet_board(), None, made, streams_max=1, now_ms=lambda: NOW_MS, alerts=alerts)
        connector = TCPConnector(limit=0)
        self.client = TestClient[web.Request, web.Application](TestServer(self.app), connector=connector)

    async def _ask(self, read: Any) -> Any:
        self.asked += 1
        self.sessions += read.func is principal_of if hasattr(read, "func") else 0
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        try:
            await self.let.acquire()
        finally:
            self.under_way -= 1
        return self._answer(getattr(read, "func", None), getattr(read, "keywords", {}))

    async def _ask_of_caller(self, read: Any) -> Any:
        self.callers += 1
        async with self.let_callers:
            return []

    def _answer(self, function: object, given: dict[str, Any]) -> object:
        if function is principal_of:
            return self._people.get(given["credential"])
        if function is find_link:
            raise LinkSpent
        if function is count_login:
            return [], 0.0
        if function is begin:
            return self.may_begin
        if function is person_of:
            return Person("p", "nobody@example.com", None, "o", has_totp=False)
        return Begun("n", "v", "/")

    @property
    def waiting(self) -> list[int]:
        """How many wait for a turn, by address."""
        turns = self._queue._turns
        return [turns.waiting(party) for party in turns._waiting]

    async def flood(self, name: str) -> int:
        method, path, body = REQUESTS[name]
        headers = {"X-Forwarded-For": FLOOD}
        if name == "/login/back":
            headers["Cookie"] = f"playhead_login={BACK.text}"
        async with self.client.request(method, path, json=body, headers=headers, allow_redirects=False) as answer:
            return answer.status

    async def honest(self) -> int:
        headers = {"X-Forwarded-For": HONEST}
        async with self.client.get("/v1/session", headers=headers, cookies=cookies(OWNER)) as answer:
            return answer.status


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    made = Site(monkeypatch)
    await made.client.start_server()
    yield made
    await made.client.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - of fakes, in this very loop
            await asyncio.sleep(0)


@asynccontextmanager
async def letting(site: Site) -> AsyncIterator[None]:
    """Postgres answers everything at once from now on."""
    for _ in range(1_000):
        site.let.release()
    yield


async def all_answered(site: Site, asking: list[asyncio.Task[int]]) -> set[int]:
    async with letting(site), asyncio.timeout(30):
        return set(await asyncio.gather(*asking))


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_flood_of_a_public_route_leaves_connections_and_one_turn_to_another_address(
    site: Site, name: str
) -> None:
    flood = [asyncio.create_task(site.flood(name)) for _ in range(20)]
    await until(lambda: site.under_way + sum(site.waiting) == 20)
    assert site.under_way == AT_ONCE_MAX
    honest = asyncio.create_task(site.honest())
    await until(lambda: len(site.waiting) == 2)
    # One of the flood has its turn before the session.
    for asked in (1, 2):
        site.let.release()
        await until(lambda wanted=AT_ONCE_MAX + asked: site.asked == wanted)  # type: ignore[misc]
    assert site.sessions == 1
    assert await all_answered(site, [honest]) == {200}
    assert len(await all_answered(site, flood)) == 1
    assert site.under_way_max == AT_ONCE_MAX


@pytest.mark.parametrize("name", ["/v1/login", "/login/there", "/login/back"])
async def test_no_turn_is_held_while_a_password_is_hashed_or_a_provider_is_asked(site: Site, name: str) -> None:
    site.slow.let.clear()
    for _ in range(1_000):
        site.let.release()
    flood: list[Awaitable[int]] = [asyncio.create_task(site.flood(name)) for _ in range(2 * AT_ONCE_MAX)]
    await until(lambda: site.slow.asked == 2 * AT_ONCE_MAX)
    assert await site.honest() == 200
    site.slow.let.set()
    assert len(set(await asyncio.gather(*flood))) == 1


async def test_an_address_with_too_many_public_questions_is_refused_and_says_so(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential_queue, "WAITING_MAX", 2)
    flood = [asyncio.create_task(site.flood("/v1/link")) for _ in range(AT_ONCE_MAX + 2)]
    await until(lambda: site.under_way >= AT_ONCE_MAX)
    body = {"link": LINK}
    async with site.client.post("/v1/link", json=body, headers={"X-Forwarded-For": FLOOD}) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert (await answer.json())["type"] == "urn:playhead:problem:too-many"
    assert await all_answered(site, flood) == {410}


async def test_a_login_at_the_provider_that_may_not_begin_leads_back_to_the_page_that_says_so(site: Site) -> None:
    site.may_begin = False
    async with letting(site), site.client.get("/login/there", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, "/login?failed=busy")
        assert not answer.cookies


async def test_questions_of_one_organisation_leave_connections_to_others_and_look_ups_to_everybody(
    site: Site,
) -> None:
    async def asked(who: Credential, path: str = "/v1/audit?actor=nobody") -> int:
        async with asyncio.timeout(30), site.client.get(path, cookies=cookies(who)) as answer:
            return answer.status

    async with letting(site):
        flood = [asyncio.create_task(asked(OWNER)) for _ in range(QUESTIONS_OF_ORGANISATION_MAX + 5)]
        # Five are refused, two hold connections, and the others wait.
        await until(lambda: sum(one.done() for one in flood) == 5)
        assert {one.result() for one in flood if one.done()} == {429}
        assert site.callers == AT_ONCE_OF_ORGANISATION
        for path in ("/v1/alerts/rules", "/v1/people"):
            assert await asked(OWNER, path) == 429
        other = asyncio.create_task(asked(GLOBEX_ADMIN))
        await until(lambda: site.callers == AT_ONCE_OF_ORGANISATION + 1)
        assert await asked(OWNER, "/v1/session") == 200
        site.let_callers.release()
        assert await other == 200
        assert set(await asyncio.gather(*flood)) == {200, 429}


async def test_exports_of_the_audit_log_take_a_turn_for_each_page(site: Site) -> None:
    async def exported(who: Credential) -> int:
        async with asyncio.timeout(30), site.client.get("/v1/audit/export", cookies=cookies(who)) as answer:
            await answer.read()
            return answer.status

    async with letting(site):
        flood = [asyncio.create_task(exported(OWNER)) for _ in range(QUESTIONS_OF_ORGANISATION_MAX + 5)]
        await until(lambda: sum(one.done() for one in flood) == 5)
        assert {one.result() for one in flood if one.done()} == {429}
        assert site.callers == AT_ONCE_OF_ORGANISATION
        other = asyncio.create_task(exported(GLOBEX_ADMIN))
        await until(lambda: site.callers == AT_ONCE_OF_ORGANISATION + 1)
        site.let_callers.release()
        assert await other == 200
        assert set(await asyncio.gather(*flood)) == {200, 429}
