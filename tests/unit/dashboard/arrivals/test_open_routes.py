"""Questions for open views: each organisation's one after another, so that nobody's many questions keep others waiting."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential
from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.dashboard.arrivals.open_routes import QUESTIONS_MAX, OpenViewRoutes
from services.dashboard.arrivals.picture import Read
from services.dashboard.arrivals.reading import Newest
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


@pytest.fixture
async def desk() -> AsyncIterator[tuple[TestClient[Any, Any], Slots]]:
    app, made, slots = web.Application(), door(), Slots()
    routing = Routing(app)
    guard = Guard(
        routing, made.identities, hosts=made.hosts, cookie=made.cookie, away_page=lambda: web.Response(status=503)
    )
    app.middlewares.append(guard.answer)
    OpenViewRoutes(newest, slots.view, NotedLooks(), lambda _: None).add_to(routing)
    async with TestClient(TestServer(app)) as client:
        yield client, slots
        slots.let.set()


async def status(client: TestClient[Any, Any], who: Credential, customer: str) -> int:
    cookie = "; ".join(f"{name}={value}" for name, value in cookies(who).items())
    async with client.get(f"/v1/open-views?customer={customer}", headers={"Cookie": cookie}) as answer:
        await answer.read()
        return answer.status


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
