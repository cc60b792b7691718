"""The live picture of earlier of several customers together, on a real Postgres: the sum of those that may be seen."""

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from threading import Event
from typing import Any, Final
from uuid import uuid4

import msgspec
import psycopg
import pytest

from deploy.local.postgres import Postgres
from deploy.local.process import wait_until
from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.dashboard.live.landed import past_of_all
from services.dashboard.live.landed.past import AskedPast, PastPicture, Wrong, assembled, checked
from services.dashboard.live.landed.past_routes import PostgresPast
from services.finalizer.serving.database import Serving
from services.rim.database import pool
from services.rim.process.crash_points import CrashPoints
from services.serving.live.database import LiveDatabase, LiveMove
from services.serving.live.minutes import Minutes
from shared.schemas.live import BUCKET_MS, OTHER, SLICE_VALUES_MAX, UNKNOWN
from shared.schemas.live_minute import (
    GATHERED,
    GATHERED_DIMENSIONS,
    MINUTE_MS,
    REJECTED,
    STEPS,
    WHOLE,
    LiveSteps,
    minute_of,
)
from shared.schemas.received import COLLECTOR, RELEASE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FIRST: Final = 29_000_000
FIELDS: Final = "viewers_now,rebuffering_now,views_started,viewers_max"
MINUTES: Final = 3
#: Viewers at every step of a minute, by customer and minute; of acme half of the second is known, of globex nothing of the third.
VIEWERS: Final = {"acme": [4, 6, 8], "globex": [10, 20], "initech": [100, 100, 100], "": [1_000]}

#: When there are viewers by dimension, and how many of a value at the first step; each step and minute has one more.
LATER: Final = FIRST + 1_000
ALL_DIMENSIONS: Final = ("cdn", "video_title", "country,cdn", REJECTED, COLLECTOR, RELEASE)
BY_DIMENSION: Final = {
    ("acme", "cdn"): {"fastly": 30, "akamai": 20, UNKNOWN: 5, OTHER: 7},
    ("globex", "cdn"): {"akamai": 300, 'a"b': 1, OTHER: 70},
    ("initech", "cdn"): {"fastly": 3_000},
    # By title each has others: of all there are more than are named, and globex's ten are the largest.
    ("acme", "video_title"): {f"a{number:02}": 100 + number for number in range(SLICE_VALUES_MAX)},
    ("globex", "video_title"): {f"g{number:02}": 500 + number for number in range(10)} | {UNKNOWN: 1},
    ("acme", "cdn,country"): {"fastly\x1fDE": 10, f"{OTHER}\x1f{OTHER}": 4},
    # The processor was given its dimensions in another order.
    ("globex", "country,cdn"): {"DE\x1ffastly": 100, "FR\x1ffastly": 50},
    ("acme", "rejected"): {"invalid": 9},
    # A combination and the same two turned, each of its own viewers, and a customer who names them in the other order.
    ("acme", "device,os"): {f"Roku\x1f{UNKNOWN}": 40, f"{UNKNOWN}\x1fRoku": 3},
    ("globex", "device,os"): {f"{UNKNOWN}\x1fRoku": 700},
    ("initech", "os,device"): {f"{UNKNOWN}\x1fRoku": 2_000},
}


def steps(viewers: int, heard: int = STEPS) -> LiveSteps:
    of_all = [viewers if at < heard else 0 for at in range(STEPS)]
    figures = {"viewers_now": of_all, "rebuffering_now": [one // 2 for one in of_all], "views_started": [1] * STEPS}
    return LiveSteps(heard=[int(at < heard) for at in range(STEPS)], values={"": figures})


def land(connection: psycopg.Connection, customer: str, minute: int, found: LiveSteps, dimension: str = WHOLE) -> None:
    documents: dict[str, Any] = {"live_steps": found, "live_minutes": minute_of(found, found.heard)}
    for table, document in documents.items():
        connection.execute(
            f"INSERT INTO serving.{table} VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
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
        for (customer, dimension), values in BY_DIMENSION.items():
            for at in range(MINUTES):
                for of, figures in ((WHOLE, {"": sum(values.values())}), (dimension, values)):
                    found = {value: figures_by(of, viewers + at) for value, viewers in figures.items()}
                    heard = [1] * STEPS if of == WHOLE else []
                    land(connection, customer, LATER + at, LiveSteps(heard=heard, values=found), of)
    return made


def figures_by(dimension: str, amount: int) -> dict[str, list[int]]:
    return {"count": [amount] * STEPS} if dimension == REJECTED else watched(amount)


def watched(viewers: int) -> dict[str, list[int]]:
    return {"viewers_now": [viewers + at for at in range(STEPS)], "views_started": [0, viewers, *[0] * (STEPS - 2)]}


def ask(dsn: str, scope: CustomerScope, step_ms: int, customer: str = "*", **given: Any) -> PastPicture:
    seconds_max = given.pop("seconds_max", 30)
    first = given.pop("first", LATER if given else FIRST)
    asked = AskedPast(
        customer=customer,
        from_ms=first * MINUTE_MS,
        until_ms=(first + MINUTES) * MINUTE_MS,
        step_ms=step_ms,
        fields=given.pop("fields", FIELDS),
        **given,
    )
    return answered(dsn, asked, scope, seconds_max)


def answered(dsn: str, asked: AskedPast, scope: CustomerScope, seconds_max: float = 30) -> PastPicture:
    async def answer() -> PastPicture:
        postgres = pool.Postgres(dsn, service="test", connections_max=1, seconds_max=seconds_max)
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


def by_value(picture: PastPicture, field: str = "viewers_now") -> dict[str, list[Any]]:
    return {one.value: one.series[field] for one in picture.values}


@pytest.mark.parametrize("step_ms", [BUCKET_MS, MINUTE_MS, 3 * MINUTE_MS])
@pytest.mark.parametrize("dimension", ["cdn", "cdn,country", "country,cdn"])
def test_a_value_of_all_is_the_sum_of_it_of_each(dsn: str, dimension: str, step_ms: int) -> None:
    def of(customer: str) -> PastPicture:
        return ask(dsn, EVERYTHING, step_ms, customer, dimension=dimension)

    each, of_all = [of(customer) for customer in ("acme", "globex", "initech")], of("*")
    assert of_all.dimension == dimension
    for field in ("viewers_now", "rebuffering_now", "views_started"):
        found = by_value(of_all, field)
        assert found.keys() == {value for one in each for value in by_value(one, field)}
        for value, numbers in found.items():
            known = [one[value] for picture in each if value in (one := by_value(picture, field))]
            assert numbers == pytest.approx([sum(points) for points in zip(*known, strict=True)]), (value, field)
    # The largest first, then all others and what has no value.
    apart = [one.value for one in of_all.values if one.value in (OTHER, UNKNOWN)]
    assert [one.value for one in of_all.values][-len(apart) :] == apart
    assert (
        of_all.values[0].value
        == {"cdn": "fastly", "cdn,country": "fastly\x1fDE", "country,cdn": "DE\x1ffastly"}[dimension]
    )


@pytest.mark.parametrize("step_ms", [BUCKET_MS, MINUTE_MS])
@pytest.mark.parametrize("customer", ["*", "acme"])
def test_of_one_value_the_figures_are_those_among_all_values(dsn: str, customer: str, step_ms: int) -> None:
    for (_, dimension), values in BY_DIMENSION.items():
        field = "count" if dimension == REJECTED else "viewers_now"
        asked = partial(ask, dsn, EVERYTHING, step_ms, customer, dimension=dimension, fields=field)
        of_all = by_value(asked(), field)
        for value in (values.keys() & of_all.keys()) - {OTHER}:
            assert by_value(asked(value=value), field) == {value: of_all[value]}
    # One that is not among the largest has figures too; of one that nobody names nothing is known.
    a00 = ask(dsn, EVERYTHING, step_ms, customer, dimension="video_title", value="a00")
    assert by_value(a00)["a00"][-1] == 100 + MINUTES - 1 + (STEPS - 1 if step_ms == BUCKET_MS else (STEPS - 1) / 2)
    assert ask(dsn, EVERYTHING, step_ms, customer, dimension="cdn", value="nobody").values == []


@pytest.mark.parametrize("step_ms", [BUCKET_MS, MINUTE_MS])
@pytest.mark.parametrize(
    ("dimension", "value", "started"),
    [
        ("device,os", f"Roku\x1f{UNKNOWN}", 2_040),
        ("os,device", f"{UNKNOWN}\x1fRoku", 2_040),
        ("device,os", f"{UNKNOWN}\x1fRoku", 703),
    ],
)
def test_a_combination_is_not_the_one_with_its_values_turned(
    dsn: str, dimension: str, value: str, started: int, step_ms: int
) -> None:
    found = by_value(ask(dsn, EVERYTHING, step_ms, dimension=dimension, value=value), "views_started")
    assert list(found) == [value]
    assert sum(found[value][: len(found[value]) // MINUTES]) == started


@pytest.mark.parametrize("step_ms", [BUCKET_MS, MINUTE_MS])
def test_of_many_values_the_largest_have_names_and_nobody_is_lost(dsn: str, step_ms: int) -> None:
    picture = ask(dsn, EVERYTHING, step_ms, dimension="video_title")
    largest = [f"g{number:02}" for number in reversed(range(10))] + [f"a{number:02}" for number in range(19, 9, -1)]
    assert [one.value for one in picture.values] == [*largest, OTHER, UNKNOWN]
    assert sum(numbers[0] for numbers in by_value(picture, "views_started").values()) == sum(
        (viewers if step_ms == MINUTE_MS else 0)
        for (_, dimension), values in BY_DIMENSION.items()
        if dimension == "video_title"
        for viewers in values.values()
    )
    rest = [viewers for value, viewers in BY_DIMENSION["acme", "video_title"].items() if value not in largest]
    mean_of_step = (STEPS - 1) / 2 if step_ms == MINUTE_MS else 0
    assert by_value(picture)[OTHER][0] == sum(rest) + len(rest) * mean_of_step


def test_by_a_dimension_those_who_may_be_seen_count_alone(dsn: str) -> None:
    def akamai(scope: CustomerScope, customer: str = "*") -> Any:
        return by_value(ask(dsn, scope, BUCKET_MS, customer, dimension="cdn")).get("akamai", [None])[0]

    assert akamai(EVERYTHING) == 320
    assert akamai(CustomerScope(own=frozenset({"globex", "initech"}))) == 300
    assert akamai(CustomerScope(all_but=frozenset({"globex"}))) == 20
    assert akamai(CustomerScope(own=frozenset())) is None
    # What was rejected is known of customers of whom nothing else is.
    rejected = AskedPast(
        customer="*", from_ms=LATER * MINUTE_MS, until_ms=(LATER + 1) * MINUTE_MS, dimension="rejected"
    )
    assert [one.value for one in answered(dsn, rejected, EVERYTHING).values] == ["invalid"]


def test_customers_without_room_are_among_the_others_of_whom_sees_everything(dsn: str) -> None:
    # Of these minutes customer '' has 1,000 viewers, by no dimension; values of cdn are named for no customer.
    assert by_value(ask(dsn, EVERYTHING, MINUTE_MS, first=FIRST, dimension="cdn"))[OTHER][0] == 1_000
    assert OTHER not in by_value(
        ask(dsn, CustomerScope(all_but=frozenset({"x"})), MINUTE_MS, first=FIRST, dimension="cdn")
    )


def _landed_with_room_for_one(postgres: Postgres) -> str:
    """A minute in which acme has room and two others have not, with figures of every kind of dimension."""
    made = postgres.create_database(f"past_{uuid4().hex}")
    with closing(Serving(made, away_seconds_max=20, stop=Event())) as serving:
        serving.open()
    minutes: Minutes = {}
    for viewers, customer in ((900, "acme"), (40, "globex"), (2, "initech")):
        received = {"received": [viewers] * STEPS, "rejected": [viewers // 2] * STEPS}
        whole = watched(viewers) | received | {"beacons": [viewers] * STEPS}
        minutes[customer, WHOLE, FIRST] = LiveSteps(heard=[1] * STEPS, values={"": whole})
        for dimension in ALL_DIMENSIONS:
            value = "DE\x1ffastly" if "," in dimension else "one"
            figures = {REJECTED: {"count": [viewers // 2] * STEPS}}.get(dimension)
            figures = figures or (received if dimension in (COLLECTOR, RELEASE) else watched(viewers))
            minutes[customer, dimension, FIRST] = LiveSteps(values={value: figures})
    # Input of nobody is rejected too, and counts for no customer.
    minutes[GATHERED, REJECTED, FIRST] = LiveSteps(values={"key": {"count": [3] * STEPS}})
    with closing(LiveDatabase(made, 1, CrashPoints())) as database:
        database.begin({("topic", 0): 0})
        database.land(minutes, {("topic", 0): LiveMove(0, 1, FIRST * MINUTE_MS)})
    return made


def test_by_any_dimension_each_customer_without_room_counts_once(postgres: Postgres) -> None:
    made = _landed_with_room_for_one(postgres)
    with psycopg.connect(made) as connection:
        kept = connection.execute("SELECT dimension FROM serving.live_minutes WHERE customer_id = %s", (GATHERED,))
        assert sorted(row[0] for row in kept) == sorted(GATHERED_DIMENSIONS)
    fields = "beacons,count,received,rejected,viewers_now,views_started"
    of_intake = {
        "one": {"received": 900 * STEPS, "rejected": 450 * STEPS},
        OTHER: {"received": 42 * STEPS, "rejected": 21 * STEPS},
    }
    expected = {
        REJECTED: {"one": {"count": 471 * STEPS}, "key": {"count": 3 * STEPS}},
        COLLECTOR: of_intake,
        RELEASE: of_intake,
    }
    of_viewers = {"viewers_now": 900 + 5.5, "views_started": 900}, {"viewers_now": 42 + 11, "views_started": 42}
    for dimension in ALL_DIMENSIONS:
        asked = AskedPast(
            customer="*",
            from_ms=FIRST * MINUTE_MS,
            until_ms=(FIRST + 1) * MINUTE_MS,
            dimension=dimension,
            fields=fields,
        )
        found = {
            one.value: {field: numbers[0] for field, numbers in one.series.items() if numbers[0]}
            for one in answered(made, asked, EVERYTHING).values
        }
        named = "DE\x1ffastly" if "," in dimension else "one"
        assert found == expected.get(dimension, dict(zip((named, OTHER), of_viewers, strict=True))), dimension


def test_more_values_than_may_be_added_up_are_refused(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Three customers, which cost five a minute, with eight values of five numbers each.
    monkeypatch.setattr(past_of_all, "NUMBERS_MAX", 3 * (3 * 5 + 8 * 5))
    assert "fastly" in by_value(ask(dsn, EVERYTHING, MINUTE_MS, dimension="cdn"))
    monkeypatch.setattr(past_of_all, "NUMBERS_MAX", 3 * (3 * 5 + 8 * 5) - 1)
    with pytest.raises(Wrong, match="the 3 customers with figures in these 3 minutes have too many values: ask for"):
        ask(dsn, EVERYTHING, MINUTE_MS, dimension="cdn")


def test_values_of_every_minute_count_against_the_limit(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    # Many titles, and in the newest minute one.
    made = postgres.create_database(f"past_{uuid4().hex}")
    with closing(Serving(made, away_seconds_max=20, stop=Event())) as serving:
        serving.open()
    with psycopg.connect(made) as connection:
        for at, titles in enumerate((300, 40, 1)):
            land(connection, "acme", LATER + at, steps(titles))
            found = {f"t{number}": watched(1) for number in range(titles)}
            land(connection, "acme", LATER + at, LiveSteps(values=found), "video_title")
    needed = {MINUTE_MS: 3 * 5 + 341 * 5, BUCKET_MS: 3 * 5 + 341 * 5 * STEPS}
    for step_ms, numbers in needed.items():
        monkeypatch.setattr(past_of_all, "NUMBERS_MAX", numbers)
        assert len(ask(made, EVERYTHING, step_ms, dimension="video_title").values) == SLICE_VALUES_MAX + 1
        monkeypatch.setattr(past_of_all, "NUMBERS_MAX", numbers - 1)
        with pytest.raises(Wrong, match="too many values: ask for a shorter time, for one value, or for one customer"):
            ask(made, EVERYTHING, step_ms, dimension="video_title")


@pytest.mark.parametrize("customer", ["*", "acme"])
def test_a_question_that_takes_too_long_is_not_called_away(dsn: str, customer: str) -> None:
    with psycopg.connect(dsn) as other:
        # Postgres answers, and the minutes cannot be read as long as this is held.
        other.execute("LOCK TABLE serving.live_minutes IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(TimeoutError):
            ask(dsn, EVERYTHING, MINUTE_MS, customer, seconds_max=2)


def test_a_postgres_that_hangs_meanwhile_is_away(dsn: str) -> None:
    waits = "SELECT pid FROM pg_stat_activity WHERE application_name = 'playhead-test' AND wait_event_type = 'Lock'"
    with (
        psycopg.connect(dsn) as other,
        psycopg.connect(dsn, autocommit=True) as watching,
        ThreadPoolExecutor(1) as thread,
    ):
        other.execute("LOCK TABLE serving.live_minutes IN ACCESS EXCLUSIVE MODE")
        asked = thread.submit(ask, dsn, EVERYTHING, MINUTE_MS, seconds_max=8)
        wait_until(lambda: watching.execute(waits).fetchone() is not None, 20, "the question is being read")
        (backend,) = watching.execute(waits).fetchone() or (0,)
        os.kill(backend, signal.SIGSTOP)
        try:
            with pytest.raises(pool.PostgresAway):
                asked.result()
        finally:
            os.kill(backend, signal.SIGCONT)
