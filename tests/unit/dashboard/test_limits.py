"""A customer's limits over HTTP."""

import pytest

from services.dashboard.limits.queries import CustomerLimits, Limit
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from tests.unit.dashboard.desk import NOW_MS, Desk


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
