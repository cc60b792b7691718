"""A series beside another range: which range that is, and which of its buckets stands beside which, also where clocks change."""

import random
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from services.query.core.answer import Point, Timeseries
from services.query.core.customers import EVERY_CUSTOMER
from services.query.core.question import AskedSeries, parsed, understood
from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.query.parts.reading import ViewsInMemory
from tests.unit.query.parts.recounting import HOUR_MS, a_view

NEW_YORK = ZoneInfo("America/New_York")
#: The clocks of New York go back on 1 November 2026, and forward on 8 March.
NOW_MS = round(datetime(2026, 12, 24, tzinfo=NEW_YORK).timestamp()) * 1_000


def moment(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=NEW_YORK).timestamp()) * 1_000


def clock(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1_000, NEW_YORK):%m-%d %H:%M}"


async def asked(engine: Engine, views: list[View] | None = None, **given: str) -> Timeseries:
    parameters = {"tz": "America/New_York", "compare": "previous"} | given
    parameters = {name.rstrip("_"): value for name, value in parameters.items()}
    question = understood(parsed(AskedSeries, list(parameters.items())), lambda _: EVERY_CUSTOMER, NOW_MS)
    found = await ViewsInMemory(engine, views or []).answer(question)
    assert isinstance(found, Timeseries)
    return found


def pairs(found: Timeseries) -> list[tuple[Point, Point]]:
    assert found.compared is not None
    return list(zip(found.points, found.compared.points, strict=True))


def hours(point: Point) -> float:
    return (point.to_ms - point.from_ms) / HOUR_MS


def ended(at_ms: int) -> View:
    """A view that counts at a moment."""
    times = {"view_start_ms": at_ms - 1, "view_end_ms": at_ms, "last_append_ms": at_ms, "first_append_ms": at_ms}
    return a_view(random.Random(at_ms), f"at {at_ms}", deleted=False, **times)


async def test_whole_days_stand_beside_as_many_days_of_the_calendar_also_where_clocks_change(engine: Engine) -> None:
    found = await asked(engine, bucket="day", from_="2026-11-01", to="2026-11-17")

    beside = pairs(found)
    assert len(beside) == 16
    for own, before in beside:
        assert clock(own.from_ms).endswith("00:00")
        assert clock(before.from_ms).endswith("00:00")
        assert hours(before) == 24
    assert [hours(own) for own, _ in beside] == [25] + [24] * 15
    assert found.compared is not None
    assert found.compared.about is not None
    first, last = beside[0][1], beside[-1][1]
    assert (first.from_ms, last.to_ms) == (moment("2026-10-16"), moment("2026-11-01"))
    # No day of whole days is a part of one.
    assert not any(point.is_partial for pair in beside for point in pair)


async def test_days_from_any_midnight_on_are_as_many(engine: Engine) -> None:
    found = await asked(engine, bucket="day", from_="2026-11-10", to="2026-11-13", compare="2026-10-31")

    assert [clock(before.from_ms) for _, before in pairs(found)] == ["10-31 00:00", "11-01 00:00", "11-02 00:00"]
    assert [hours(before) for _, before in pairs(found)] == [24, 25, 24]


async def test_a_range_that_is_not_of_whole_days_stands_beside_stretches_as_long(engine: Engine) -> None:
    found = await asked(engine, bucket="day", from_="2026-09-10T10:00", to="2026-09-13T15:00")

    beside = pairs(found)
    assert [hours(own) for own, _ in beside] == [hours(before) for _, before in beside] == [14, 24, 24, 15]
    assert (
        [own.is_partial for own, _ in beside]
        == [before.is_partial for _, before in beside]
        == [True, False, False, True]
    )
    assert (beside[0][1].from_ms, beside[-1][1].to_ms) == (moment("2026-09-07T05:00"), moment("2026-09-10T10:00"))


@pytest.mark.parametrize("bucket", ["hour", "15minutes"])
async def test_hours_of_whole_days_stand_beside_those_that_clocks_say(engine: Engine, bucket: str) -> None:
    found = await asked(engine, bucket=bucket, from_="2026-11-01", to="2026-11-02")

    for own, before in pairs(found):
        assert clock(own.from_ms)[6:] == clock(before.from_ms)[6:]
        assert hours(own) == hours(before)
    twice = [own for own, _ in pairs(found) if clock(own.from_ms).endswith("01:00")]
    assert len(twice) == 2


@pytest.mark.parametrize(("bucket", "skipped_n"), [("hour", 1), ("15minutes", 4)])
async def test_an_hour_that_clocks_skip_there_has_nothing_beside_it(
    engine: Engine, bucket: str, skipped_n: int
) -> None:
    there = [moment("2026-03-08T01:00"), moment("2026-03-08T03:00"), moment("2026-03-08T03:20")]
    found = await asked(
        engine,
        [ended(at_ms) for at_ms in [*there, moment("2026-03-15T02:00")]],
        bucket=bucket,
        from_="2026-03-15",
        to="2026-03-16",
        compare="2026-03-08",
        metrics="views,rebuffer_fraction",
    )

    skipped = [(own, before) for own, before in pairs(found) if clock(own.from_ms)[6:8] == "02"]
    assert len(skipped) == skipped_n
    for own, before in skipped:
        # At the moment at which the clocks go forward, and as long as the hour is there.
        assert clock(before.from_ms) == clock(before.to_ms) == "03-08 03:00"
        assert (before.n, before.is_partial) == (0, False)
        assert {(figure.value, figure.n) for figure in before.metrics.values()} == {(None, 0)}
        assert own.metrics["views"].value is not None
    for own, before in pairs(found):
        if (own, before) not in skipped:
            assert clock(own.from_ms)[6:] == clock(before.from_ms)[6:]
            assert hours(own) == hours(before)
    # Each view there counts once.
    assert sum(before.n for _, before in pairs(found)) == len(there)


async def test_where_clocks_skip_half_an_hour_no_hour_counts_twice(engine: Engine) -> None:
    # On Lord Howe Island 02:00 becomes 02:30 on 4 October 2026.
    zone = ZoneInfo("Australia/Lord_Howe")
    first = round(datetime(2026, 10, 4, tzinfo=zone).timestamp()) * 1_000
    views = [ended(first + minutes * 60_000) for minutes in range(0, 23 * 60, 30)]
    found = await asked(
        engine, views, bucket="hour", from_="2026-10-11", to="2026-10-12", compare="2026-10-04", tz=zone.key
    )

    beside = [before for _, before in pairs(found)]
    assert len(beside) == 24
    assert len({before.from_ms for before in beside if before.n}) == sum(before.n > 0 for before in beside)
    assert sum(before.n for before in beside) == len(views)


async def test_lines_have_nothing_beside_a_skipped_hour(engine: Engine) -> None:
    views = [ended(moment("2026-03-08T03:00")), ended(moment("2026-03-15T03:00"))]
    found = await asked(
        engine, views, bucket="hour", by="customer", from_="2026-03-15", to="2026-03-16", compare="2026-03-08"
    )

    assert found.compared is not None
    (line,) = [group for group in found.compared.groups or () if group.n]
    assert line.n == 1
    assert [point.n for point in line.points or ()][:5] == [0, 0, 0, 1, 0]
    assert {figure.value for figure in (line.points or [])[2].metrics.values()} == {None}


async def test_weeks_stand_beside_weeks_that_are_cut_alike(engine: Engine) -> None:
    # From a Wednesday on, for ten days: those before end on a Tuesday.
    found = await asked(engine, bucket="week", from_="2026-09-09", to="2026-09-19")

    beside = pairs(found)
    assert [hours(own) for own, _ in beside] == [hours(before) for _, before in beside] == [5 * 24, 5 * 24]
    assert all(point.is_partial for pair in beside for point in pair)


async def test_each_view_counts_in_the_bucket_that_stands_in_its_place(engine: Engine) -> None:
    chance = random.Random(3)
    first, last = moment("2026-10-10"), moment("2026-11-18")
    views = [ended(chance.randrange(first, last)) for _ in range(400)]
    ranges = [("2026-11-01", "2026-11-17"), ("2026-11-02T10:20", "2026-11-09T15:00"), ("2026-11-01", "2026-11-03")]
    for (from_, to), bucket in zip(ranges * 2, ["day"] * 3 + ["hour", "week", "hour"], strict=True):
        found = await asked(engine, views, bucket=bucket, from_=from_, to=to)
        for pair in pairs(found):
            for point in pair:
                own = [view for view in views if point.from_ms <= view.view_end_ms < point.to_ms]
                assert point.n == len(own), (bucket, clock(point.from_ms))
