"""Questions for open views: their pages; and each organisation's one after another, so that nobody's many keep others waiting."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential
from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.dashboard.arrivals import open_views
from services.dashboard.arrivals.open_routes import QUESTIONS_MAX, OpenViewRoutes
from services.dashboard.arrivals.open_views import LOOKED_UP_MAX
from services.dashboard.arrivals.picture import Read
from services.dashboard.arrivals.reading import Newest
from services.dashboard.arrivals.routes import ArrivalRoutes
from tests.unit.dashboard.door import GLOBEX_VIEWER, OWNER, NotedLooks, cookies, door


class Slots:
    """Lookups that wait until the test lets them; a question of customer `globex` waits for ever."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.let = asyncio.Event()
        self.under_way = 0
        self.under_way_max = 0

    async def view(self, customer_id: str, _: str) -> bytes | None:
        if customer_id != "globex":
            return None
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        self.asked.set()
        await self.let.wait()
        self.under_way -= 1
        return None


async def newest() -> tuple[int, Newest]:
    return 5, Newest([Read(1, b"globex:a", b"{}", {}), Read(1, b"acme:a", b"{}", {})], [], is_cut=False)


@asynccontextmanager
async def served(
    newest: Callable[[], Awaitable[tuple[int, Newest]]], view: Callable[[str, str], Awaitable[bytes | None]]
) -> AsyncIterator[TestClient[Any, Any]]:
    app, made = web.Application(), door()
    routing = Routing(app)
    guard = Guard(
        routing, made.identities, hosts=made.hosts, cookie=made.cookie, away_page=lambda: web.Response(status=503)
    )
    app.middlewares.append(guard.answer)
    OpenViewRoutes(newest, view, NotedLooks(), lambda _: None).add_to(routing)
    async with TestClient(TestServer(app, handler_cancellation=True)) as client:
        yield client


@pytest.fixture
async def desk() -> AsyncIterator[tuple[TestClient[Any, Any], Slots]]:
    slots = Slots()
    async with served(newest, slots.view) as client:
        yield client, slots
        slots.let.set()


def cookie_of(who: Credential) -> dict[str, str]:
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies(who).items())}


async def status(client: TestClient[Any, Any], who: Credential, customer: str) -> int:
    async with client.get(f"/v1/open-views?customer={customer}", headers=cookie_of(who)) as answer:
        await answer.read()
        return answer.status


FASTLY = '{"dimension":"cdn","in":["fastly"]}'


class Film:
    """Lookups of views with a number: of each third one the CDN is fastly, and each fifth one is over."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def view(self, _: str, view_id: str) -> bytes | None:
        self.asked.append(view_id)
        if "." in view_id:
            return None
        number = int(view_id)
        row = {"view_id": view_id, "view_start_ms": number, "cdn": "akamai" if number % 3 else "fastly"}
        return msgspec.json.encode({"found": {"state": "open" if number % 5 else "finished", "row": row}})


async def test_pages_have_as_many_views_as_asked_for_and_each_open_one_that_matches_is_on_one() -> None:
    film = Film()

    async def many() -> tuple[int, Newest]:
        return 5, Newest(
            [Read(number, f"globex:{number}".encode(), b"{}", {}) for number in range(250)], [], is_cut=True
        )

    async with served(many, film.view) as client:
        for limit, given, wanted in (
            (100, {}, [number for number in range(249, -1, -1) if number % 5]),
            (7, {"filter": FASTLY}, [number for number in range(249, -1, -1) if number % 5 and not number % 3]),
            (30, {"from": "100000000", "to": "100000001"}, []),
        ):
            found, cursor, looked_up = list[int](), "", 0
            while cursor is not None:
                film.asked.clear()
                one = await answered(client, limit=limit, cursor=cursor, **given)
                assert (one["views_n"], one["is_cut"]) == (250, True)
                # What one question costs is bounded, whatever it looks for; a page that is not full is at that bound, or the last.
                assert len({name for name in film.asked if "." not in name}) <= LOOKED_UP_MAX
                assert len(one["views"]) <= limit
                assert len(one["views"]) == limit or one["looked_up_n"] == LOOKED_UP_MAX or one["next"] is None
                found += [int(row["view_id"]) for row in one["views"]]
                cursor, looked_up = one["next"], looked_up + one["looked_up_n"]
            assert (found, looked_up) == (wanted, 250)
        async with client.get("/v1/open-views?customer=globex&filter=x", headers=cookie_of(GLOBEX_VIEWER)) as answer:
            assert (answer.status, (await answer.json())["errors"][0]["parameter"]) == (400, "filter")


async def answered(client: TestClient[Any, Any], **given: Any) -> dict[str, Any]:
    parameters = {"customer": "globex", **{name: str(value) for name, value in given.items()}}
    async with client.get("/v1/open-views", params=parameters, headers=cookie_of(GLOBEX_VIEWER)) as answer:
        assert answer.status == 200
        return msgspec.json.decode(await answer.read(), type=dict[str, Any])


async def test_an_organisation_with_many_questions_has_one_under_way_and_others_are_answered(
    desk: tuple[TestClient[Any, Any], Slots],
) -> None:
    client, slots = desk
    many = [asyncio.create_task(status(client, GLOBEX_VIEWER, "globex")) for _ in range(3 * QUESTIONS_MAX)]
    await asyncio.wait_for(slots.asked.wait(), 30)
    # Those beyond the ones that may wait are refused at once; another organisation waits for none of them.
    refused = 0
    for done in asyncio.as_completed(many, timeout=30):
        assert await done == 429
        refused += 1
        if refused == 2 * QUESTIONS_MAX:
            break
    assert await asyncio.wait_for(status(client, OWNER, "acme"), 30) == 200
    assert slots.under_way_max == 1
    slots.let.set()
    assert sorted(await asyncio.wait_for(asyncio.gather(*many), 30)) == [200] * QUESTIONS_MAX + [429] * refused
    # Nothing is remembered of those who are done.
    assert await status(client, GLOBEX_VIEWER, "globex") == 200
    assert slots.under_way_max == 1


class Kafka:
    """Reads that wait until the test lets them."""

    def __init__(self) -> None:
        self.reads = 0
        self.let = threading.Event()

    def newest(self, _: int) -> Newest:
        """See `Reader`."""
        self.reads += 1
        assert self.let.wait(30)
        return Newest([], [], is_cut=False)


async def abandon(client: TestClient[Any, Any], is_under_way: asyncio.Event) -> None:
    """A question whose asker goes away once it is under way."""
    is_under_way.clear()
    asking = asyncio.create_task(status(client, GLOBEX_VIEWER, "globex"))
    await asyncio.wait_for(is_under_way.wait(), 30)
    asking.cancel()
    await asyncio.wait({asking})


async def test_many_who_go_away_wait_for_one_read_and_take_one_thread() -> None:
    kafka, is_asked = Kafka(), asyncio.Event()
    arrivals = ArrivalRoutes(kafka, lambda: 1_000_000)

    async def newest() -> tuple[int, Newest]:
        is_asked.set()
        return await arrivals.newest()

    async with served(newest, Slots().view) as client:
        for _ in range(5):
            await abandon(client, is_asked)
        asking = asyncio.create_task(status(client, GLOBEX_VIEWER, "globex"))
        kafka.let.set()
        assert await asyncio.wait_for(asking, 30) == 200
    assert kafka.reads == 1


async def test_the_question_of_one_who_goes_away_keeps_its_turn_until_its_thread_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, is_at_work, let = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    at_work, found = list[str](), open_views.candidates

    def candidates(search: open_views.Search, beacons: list[Read]) -> open_views.Candidates:
        customer = search.asked.customer
        at_work.append(customer)
        loop.call_soon_threadsafe(is_at_work.set)
        assert customer != "globex" or let.wait(30)
        return found(search, beacons)

    monkeypatch.setattr(open_views, "candidates", candidates)

    async def nobody(*_: str) -> bytes | None:
        return None

    async with served(newest, nobody) as client:
        await abandon(client, is_at_work)
        asking = asyncio.create_task(status(client, GLOBEX_VIEWER, "globex"))
        assert await asyncio.wait_for(status(client, OWNER, "acme"), 30) == 200
        assert at_work == ["globex", "acme"]
        let.set()
        assert await asyncio.wait_for(asking, 30) == 200
