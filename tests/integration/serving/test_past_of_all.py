"""The live picture of earlier of several customers together, on a real Postgres: the sum of those that may be seen."""

import asyncio
from contextlib import closing
from threading import Event
from typing import Any, Final
from uuid import uuid4

import msgspec
import psycopg
import pytest

from deploy.local.postgres import Postgres
from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.dashboard.live import past_of_all
from services.dashboard.live.past import AskedPast, PastPicture, Wrong, assembled, checked
from services.dashboard.live.past_routes import PostgresPast
from services.finalizer.serving.database import Serving
from services.rim.database import pool
from shared.schemas.live import BUCKET_MS
from shared.schemas.live_minute import MINUTE_MS, STEPS, WHOLE, LiveSteps, minute_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FIRST: Final = 29_000_000
FIELDS: Final = "viewers_now,rebuffering_now,views_started,viewers_max"
#: Viewers at every step of a minute, by customer and minute; of acme half of the second is known, of globex nothing of the third.
VIEWERS: Final = {"acme": [4, 6, 8], "globex": [10, 20], "initech": [100, 100, 100], "": [1_000]}


def steps(viewers: int, heard: int = STEPS) -> LiveSteps:
    of_all = [viewers if at < heard else 0 for at in range(STEPS)]
    figures = {"viewers_now": of_all, "rebuffering_now": [one // 2 for one in of_all], "views_started": [1] * STEPS}
    return LiveSteps(heard=[int(at < heard) for at in range(STEPS)], values={"": figures})


def land(connection: psycopg.Connection, customer: str, minute: int, found: LiveSteps, dimension: str = WHOLE) -> None:
    documents: dict[str, Any] = {"live_steps": found, "live_minutes": minute_of(found, found.heard)}
    for table, document in documents.items():
        connection.execute(
            f"INSERT INTO serving.{table} VALUES (%s, %s, %s, %s)",
            (customer, dimension, minute, msgspec.json.encode(document).decode()),
        )


@pytest.fixture(scope="module")
def dsn(postgres: Postgres) -> str:
    made = postgres.create_database(f"past_{uuid4().hex}")
    with closing(Serving(made, away_seconds_max=20, stop=Event())) as serving:
        serving.open()
    with psycopg.connect(made) as connection:
        for customer, by_minute in VIEWERS.items():
            for at, viewers in enumerate(by_minute):
                heard = STEPS // 2 if (customer, at) == ("acme", 1) else STEPS
                land(connection, customer, FIRST + at, steps(viewers, heard))
                land(connection, customer, FIRST + at, steps(7), "cdn")
        # Outside of the range that is asked for.
        land(connection, "acme", FIRST - 1, steps(5_000))
    return made


def ask(dsn: str, scope: CustomerScope, step_ms: int, customer: str = "*") -> PastPicture:
    asked = AskedPast(
        customer=customer,
        from_ms=FIRST * MINUTE_MS,
        until_ms=(FIRST + 3) * MINUTE_MS,
        step_ms=step_ms,
        fields=FIELDS,
    )

    async def answer() -> PastPicture:
        postgres = pool.Postgres(dsn, service="test", connections_max=1, seconds_max=30)
        await postgres.open()
        try:
            return assembled(asked, checked(asked), await PostgresPast(postgres).rows(asked, scope))
        finally:
            await postgres.close()

    return asyncio.run(answer())


def series(picture: PastPicture, field: str = "viewers_now") -> list[Any]:
    assert [one.value for one in picture.values] == [""]
    return picture.values[0].series[field]


@pytest.mark.parametrize(
    ("scope", "viewers"),
    [
        (EVERYTHING, [1_114, 123, 108]),
        # What has no room of its own may be of others.
        (CustomerScope(all_but=frozenset({"initech"})), [14, 23, 8]),
        (CustomerScope(own=frozenset({"acme", "globex"})), [14, 23, 8]),
        (CustomerScope(own=frozenset({"globex", "nobody"})), [10, 20, None]),
    ],
    ids=["everything", "all but one", "two", "one"],
)
def test_viewers_of_those_who_may_be_seen_add_up(dsn: str, scope: CustomerScope, viewers: list[Any]) -> None:
    by_minute = ask(dsn, scope, MINUTE_MS)
    assert series(by_minute) == viewers
    assert series(by_minute, "rebuffering_now") == [one if one is None else one / 2 for one in viewers]
    by_step = ask(dsn, scope, BUCKET_MS)
    # The mean of the steps is that of the minute.
    for at, expected in enumerate(viewers):
        of_minute = series(by_step)[at * STEPS : (at + 1) * STEPS]
        assert of_minute == [None] * STEPS if expected is None else sum(of_minute) / STEPS == expected


def test_counts_are_sums_and_peaks_at_most_their_sum(dsn: str) -> None:
    scope = CustomerScope(own=frozenset({"acme", "globex"}))
    assert series(ask(dsn, scope, MINUTE_MS), "views_started") == [24, 24, 12]
    assert series(ask(dsn, scope, MINUTE_MS), "viewers_max") == [14, 26, 8]
    by_step = ask(dsn, scope, BUCKET_MS)
    assert series(by_step, "viewers_max") == series(by_step)


@pytest.mark.parametrize("step_ms", [MINUTE_MS, BUCKET_MS])
def test_of_one_customer_all_are_that_customer(dsn: str, step_ms: int) -> None:
    one = ask(dsn, CustomerScope(own=frozenset({"acme"})), step_ms)
    assert one == ask(dsn, EVERYTHING, step_ms, "acme")


def test_nobody_has_no_figures(dsn: str) -> None:
    assert ask(dsn, CustomerScope(own=frozenset()), MINUTE_MS).values == []


def test_more_than_may_be_read_is_refused_with_what_to_do(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two customers, three minutes, ten numbers each.
    monkeypatch.setattr(past_of_all, "NUMBERS_MAX", 2 * 3 * 10)
    assert series(ask(dsn, CustomerScope(own=frozenset({"acme", "globex"})), MINUTE_MS)) == [14, 23, 8]
    with pytest.raises(Wrong, match="more than 2 customers have figures in these 3 minutes: ask for a shorter time"):
        ask(dsn, EVERYTHING, MINUTE_MS)
