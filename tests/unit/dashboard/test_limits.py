"""A customer's limits over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential
from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.dashboard.limits.queries import CustomerLimits, Limit
from services.dashboard.limits.routes import QUESTIONS_MAX, LimitsRoutes
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from tests.unit.dashboard.desk import NOW_MS, Desk
from tests.unit.dashboard.door import GLOBEX_VIEWER, OWNER, door
from tests.unit.dashboard.guarded_desk import headers_of


async def test_a_customers_limits_are_answered_with_what_they_refused(desk: Desk) -> None:
    refused = Limit("beacons_per_second", 5.0, True, 3, 400.0, NOW_MS - 1_000)
    desk.limits.answer = CustomerLimits(NOW_MS, "acme", [refused], 12.0, 2, {"cdn": 7})
    answer = await desk.json("/v1/limits?customer=acme")
    assert desk.limits.asked == ["acme"]
    assert (answer["now_ms"], answer["customer_id"], answer["stored_bytes"]) == (NOW_MS, "acme", 12.0)
    assert (answer["collectors"], answer["gathered"]) == (2, {"cdn": 7})
    assert answer["limits"] == [
        {
            "name": "beacons_per_second",
            "value": 5.0,
            "is_own": True,
            "refused_requests": 3,
            "refused_amount": 400.0,
            "last_refused_ms": NOW_MS - 1_000,
        }
    ]


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (None, 404, "unknown-customer"),
        (PostgresAway("away"), 503, "postgres-away"),
        (NotPublished("no schema"), 404, "customers-off"),
        (QueryRefused("other"), 503, "refused"),
    ],
)
async def test_limits_that_cannot_be_answered_say_why(
    desk: Desk, answer: Exception | None, status: int, error: str
) -> None:
    desk.limits.answer = answer
    assert (await desk.json("/v1/limits?customer=acme", status))["type"] == f"urn:playhead:problem:{error}"


@pytest.mark.parametrize("query", ["", "?customer=", "?customer=a%20b", "?customer=" + "a" * 65, "?customer=%00"])
async def test_what_names_no_customer_is_not_looked_up(desk: Desk, query: str) -> None:
    assert (await desk.json(f"/v1/limits{query}", 400))["type"].endswith(":name")
    assert desk.limits.asked == []


class Slow:
    """Limits of globex come when the test lets them, others at once."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.under_way = self.under_way_max = 0

    async def of(self, customer_id: str, now_ms: int) -> CustomerLimits | None:
        """See `LimitsSource`."""
        if customer_id == "globex":
            self.under_way += 1
            self.under_way_max = max(self.under_way_max, self.under_way)
            await self.let.wait()
            self.under_way -= 1
        return CustomerLimits(now_ms, customer_id, [], 0.0, 1)


@pytest.fixture
async def slow_desk() -> AsyncIterator[tuple[TestClient[Any, Any], Slow]]:
    app, made, slow = web.Application(), door(), Slow()
    routing = Routing(app)
    guard = Guard(
        routing, made.identities, hosts=made.hosts, cookie=made.cookie, away_page=lambda: web.Response(status=503)
    )
    app.middlewares.append(guard.answer)
    LimitsRoutes(slow, lambda: NOW_MS).add_to(routing)
    async with TestClient(TestServer(app)) as client:
        yield client, slow
        slow.let.set()


async def status(client: TestClient[Any, Any], who: Credential, customer: str) -> int:
    async with client.get(f"/v1/limits?customer={customer}", headers=headers_of(who)) as answer:
        return answer.status


async def test_an_organisation_asks_one_question_at_a_time_and_others_are_answered(
    slow_desk: tuple[TestClient[Any, Any], Slow],
) -> None:
    client, slow = slow_desk
    beyond = 5
    many = [asyncio.create_task(status(client, GLOBEX_VIEWER, "globex")) for _ in range(QUESTIONS_MAX + beyond)]
    ended = asyncio.as_completed(many, timeout=30)
    assert [await next(ended) for _ in range(beyond)] == [429] * beyond
    assert await asyncio.wait_for(status(client, OWNER, "acme"), 30) == 200
    slow.let.set()
    assert sorted(await asyncio.gather(*many)) == [200] * QUESTIONS_MAX + [429] * beyond
    assert slow.under_way_max == 1
