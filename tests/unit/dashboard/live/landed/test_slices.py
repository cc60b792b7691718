"""Slices of many customers: asked for once a landed minute and scope, kept while Postgres is away, and never waited for."""

import asyncio
from collections import defaultdict
from typing import Any

import pytest

from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.dashboard.live import streams
from services.dashboard.live.landed.slices import (
    AFTER_MS,
    AGAIN_MS,
    FAILED_MS,
    KEPT_MAX,
    KEPT_OF_SCOPE_MAX,
    UNWANTED_MS,
    KeptSlices,
    LandedSlices,
)
from services.dashboard.live.landed.sums import LandedSlice
from services.dashboard.live.slices import CUSTOMERS_MAX, FIELDS
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from shared.schemas.live import BUCKET_MS, OTHER
from shared.schemas.live_minute import MINUTE_MS
from tests.unit.dashboard.desk import NOW_MS, Desk, FakeLanded, next_picture
from tests.unit.dashboard.records import live

MINUTE = 1_000
NOBODY: dict[str, int] = dict.fromkeys(FIELDS, 0)
OF_ACME = CustomerScope(own=frozenset({"acme"}))


def viewers(count: int) -> dict[str, int]:
    return NOBODY | {"viewers_now": count}


class Landing:
    """Slices, what they are asked of, and a clock."""

    def __init__(self) -> None:
        self.now_ms = (MINUTE + 1) * MINUTE_MS + AFTER_MS
        self.landed = FakeLanded()
        self.landed.minutes = {MINUTE: {"cdn=x": viewers(5)}}
        self.slices = LandedSlices(self.landed, now_ms=lambda: self.now_ms)

    async def look(self, scope: CustomerScope = EVERYTHING, slice_name: str = "") -> KeptSlices:
        """What is known when the answer has come."""
        one = self.slices.newest(scope, slice_name)
        while one.asking is not None:
            await asyncio.wait({one.asking})
        return one


@pytest.fixture
async def landing() -> Landing:
    return Landing()


def by_value(one: KeptSlices, dimension: str = "cdn") -> dict[Any, int]:
    assert one.slices is not None
    return {value["value"]: value["viewers_now"] for value in one.slices[dimension]}


async def test_a_minute_is_added_up_once_for_all_who_see_the_same_customers(landing: Landing) -> None:
    # A minute that is not over yet may be there in part.
    landing.landed.minutes[MINUTE + 1] = {"cdn=x": viewers(7)}
    first = landing.slices.newest(EVERYTHING, "")
    assert (first.state, first.slices, first.as_of_ms) == ("coming", None, None)
    for _ in range(20):
        found = await landing.look()
        landing.now_ms += 1_000
    assert (found.state, by_value(found), found.as_of_ms) == ("by_minute", {"x": 5}, (MINUTE + 1) * MINUTE_MS)
    assert landing.landed.asked == [EVERYTHING]
    await landing.look(OF_ACME)
    assert landing.landed.asked == [EVERYTHING, OF_ACME]
    version = landing.slices.version
    # It is over, and its last records may be on their way.
    landing.now_ms = (MINUTE + 2) * MINUTE_MS + AFTER_MS - 1
    assert by_value(await landing.look()) == {"x": 5}
    landing.now_ms += 1
    assert by_value(await landing.look()) == {"x": 7}
    assert landing.landed.asked == [EVERYTHING, OF_ACME, EVERYTHING]
    assert landing.slices.version == version + 1


async def test_a_minute_that_is_late_is_asked_for_every_few_seconds(landing: Landing) -> None:
    landing.landed.minutes = {}
    found = await landing.look()
    assert (found.state, found.slices) == ("none", None)
    for _ in range(AGAIN_MS // 1_000):
        landing.now_ms += 1_000
        await landing.look()
    assert len(landing.landed.asked) == 2
    landing.landed.minutes = {MINUTE: {"cdn=x": viewers(5)}}
    landing.now_ms += AGAIN_MS
    assert by_value(await landing.look()) == {"x": 5}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("error", "state", "again_ms"),
    [
        (PostgresAway("deadline"), "away", AGAIN_MS),
        (TimeoutError(), "failed", FAILED_MS),
        (QueryRefused("why"), "failed", FAILED_MS),
        (ValueError("what nobody expected"), "failed", FAILED_MS),
        (NotPublished("why"), "none", AGAIN_MS),
    ],
)
async def test_what_was_known_stays_with_its_age_while_nothing_newer_can_be_had(
    landing: Landing, error: Exception, state: str, again_ms: int
) -> None:
    landing.landed.error = error
    found = await landing.look()
    assert (found.state, found.slices) == (state, None)
    landing.now_ms += again_ms - 1
    await landing.look()
    assert len(landing.landed.asked) == 1
    landing.landed.error = None
    landing.now_ms += 1
    # A minute more may have ended meanwhile.
    assert by_value(await landing.look()) == {"x": 5}
    landing.landed.error = error
    landing.now_ms += 2 * MINUTE_MS
    found = await landing.look()
    assert (found.state, by_value(found), found.as_of_ms) == (state, {"x": 5}, (MINUTE + 1) * MINUTE_MS)


async def test_a_slice_is_of_the_minute_of_its_whole_and_has_figures_of_its_own(landing: Landing) -> None:
    landing.landed.minutes = {MINUTE: {"cdn=x": viewers(5), "cdn=y": viewers(3), "country=DE": viewers(8)}}
    series: dict[str, list[int | None]] = {field: [None, 0] for field in FIELDS} | {"viewers_now": [None, 3]}
    landing.landed.within["cdn=y"] = LandedSlice(
        {"cdn=y": viewers(3), "cdn,country=y\x1fDE": viewers(2)}, series, others_now=4
    )
    for _ in range(3):
        found = await landing.look(slice_name="cdn=y")
    assert (found.state, found.series["viewers_now"], found.others_now) == ("by_minute", [None, 3], 4)
    assert by_value(found) == {"x": 5, "y": 3}
    assert by_value(found, "country") == {"DE": 2, OTHER: 1}
    assert (landing.landed.asked_within, landing.landed.asked) == ([("cdn=y", MINUTE)], [EVERYTHING])
    # The next minute is late.
    landing.now_ms += MINUTE_MS
    await landing.look(slice_name="cdn=y")
    assert (len(landing.landed.asked_within), len(landing.landed.asked)) == (1, 2)
    # Of the whole nothing newer can be had: the slice is as old, and says why.
    landing.landed.error = PostgresAway("deadline")
    landing.now_ms += MINUTE_MS
    found = await landing.look(slice_name="cdn=y")
    assert (found.state, by_value(found, "country")) == ("away", {"DE": 2, OTHER: 1})


async def test_a_value_that_is_not_among_the_largest_is_not_counted_twice(landing: Landing) -> None:
    landing.landed.minutes = {MINUTE: {"cdn=x": viewers(5), f"cdn={OTHER}": viewers(30)}}
    landing.landed.within["cdn=rare"] = LandedSlice({"cdn=rare": viewers(1)}, {}, 0)
    assert by_value(await landing.look(slice_name="cdn=rare")) == {"x": 5, "rare": 1, OTHER: 29}


async def test_a_pair_has_no_more_viewers_without_a_name_than_its_first_value_has(landing: Landing) -> None:
    landing.landed.minutes = {MINUTE: {"cdn=x": viewers(50), "country=DE": viewers(50)}}
    sums = {"cdn=x": viewers(50), "cdn,country=x\x1fDE": viewers(44)}
    landing.landed.within["cdn,country=x\x1fFR"] = LandedSlice(sums, {}, others_now=9_000)
    assert (await landing.look(slice_name="cdn,country=x\x1fFR")).others_now == 6


async def test_questions_come_one_after_the_other_and_what_is_kept_is_bounded(landing: Landing) -> None:
    landing.landed.may_answer.clear()
    scopes = [CustomerScope(own=frozenset({str(number)})) for number in range(KEPT_MAX)]
    asked = [landing.slices.newest(scope, "") for scope in scopes]
    await asyncio.sleep(0.01)
    assert len(landing.landed.asked) == 1
    landing.landed.may_answer.set()
    await asyncio.wait({one.asking for one in asked if one.asking is not None})
    assert len(landing.landed.asked) == KEPT_MAX
    assert landing.slices.newest(OF_ACME, "").state == "failed"
    # What nobody looks at any more gives its room.
    landing.now_ms += UNWANTED_MS + 1
    assert by_value(await landing.look(OF_ACME)) == {"x": 5}


async def test_whoever_names_slice_after_slice_takes_the_room_of_nobody_else(landing: Landing) -> None:
    others = await landing.look(OF_ACME)
    names = [f"cdn={number}" for number in range(2 * KEPT_MAX)]
    landing.landed.within = defaultdict(lambda: LandedSlice({}, {}, 0))
    for name in names:
        landing.now_ms += 1
        assert (await landing.look(slice_name=name)).state == "by_minute"
    asked = list(landing.landed.asked_within)
    assert await landing.look(OF_ACME) is others
    for name in names[1 - KEPT_OF_SCOPE_MAX :]:
        await landing.look(slice_name=name)
    assert (landing.landed.asked, landing.landed.asked_within) == ([EVERYTHING, OF_ACME][::-1], asked)
    landing.landed.may_answer.clear()
    waiting = [landing.slices.newest(EVERYTHING, f"country={number}").state for number in range(2 * KEPT_OF_SCOPE_MAX)]
    assert waiting[-1] == "failed"
    assert waiting.count("coming") < KEPT_OF_SCOPE_MAX
    landing.landed.may_answer.set()


async def test_closing_ends_what_is_asked(landing: Landing) -> None:
    landing.landed.may_answer.clear()
    one = landing.slices.newest(EVERYTHING, "")
    asking = one.asking
    assert asking is not None
    landing.slices.close()
    await asyncio.wait({asking}, timeout=5)
    assert asking.cancelled()


@pytest.mark.thorough
async def test_the_picture_of_many_customers_comes_at_once_and_its_slices_when_they_are_there(desk: Desk) -> None:
    minute = NOW_MS // MINUTE_MS - 1
    desk.landed.minutes = {minute: {"cdn=x": viewers(5)}}
    desk.landed.within["cdn=x"] = LandedSlice({"cdn=x": viewers(5)}, {field: [3, 5] for field in FIELDS}, others_now=2)
    desk.landed.may_answer.clear()
    bucket = NOW_MS // BUCKET_MS
    records = [live(bucket, customer_id=f"c{number}", viewers_now=2) for number in range(CUSTOMERS_MAX)]
    desk.board.take_records(records)
    stream = await desk.client.get("/v1/live/stream")
    while (picture := await next_picture(stream))["state"] != "live":
        pass
    # As many as are summed here.
    assert (picture["slices"], picture["slices_state"]) == ({}, "live")
    assert picture["slices_as_of_ms"] == picture["shown_until_ms"]
    desk.board.take_records([live(bucket, customer_id="one more", viewers_now=2)])
    picture = await next_picture(stream)
    assert (picture["now"]["viewers_now"], picture["slices"], picture["slices_state"]) == (42, None, "coming")
    assert picture["slices_as_of_ms"] is None
    desk.landed.may_answer.set()
    while (picture := await next_picture(stream))["slices"] is None:
        pass
    stream.close()
    assert (picture["slices_state"], picture["slices_as_of_ms"]) == ("by_minute", (minute + 1) * MINUTE_MS)
    assert [(one["value"], one["viewers_now"]) for one in picture["slices"]["cdn"]] == [("x", 5)]
    assert (picture["bucket_ms"], picture["now"]["viewers_now"]) == (BUCKET_MS, 42)
    # A single answer waits a little.
    picture = await desk.json("/v1/live?slice=cdn%3Dx")
    assert (picture["now"]["viewers_now"], picture["series"]["viewers_now"], picture["others_now"]) == (5, [3, 5], 2)
    assert (picture["bucket_ms"], picture["from_ms"]) == (MINUTE_MS, (minute - 1) * MINUTE_MS)
    assert picture["totals"]["views_started"] == 8
    assert desk.landed.asked == [EVERYTHING]


async def test_slices_come_to_an_open_page_also_while_nothing_new_is_counted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "ALIVE_SECONDS", 0.05)
    bucket = NOW_MS // BUCKET_MS
    desk.board.take_records([live(bucket, customer_id=f"c{number}") for number in range(CUSTOMERS_MAX + 1)])
    stream = await desk.client.get("/v1/live/stream")
    while (await next_picture(stream))["slices_state"] != "none":
        pass
    desk.landed.minutes = {NOW_MS // MINUTE_MS - 1: {"cdn=x": viewers(5)}}
    desk.now_ms += AGAIN_MS
    assert (await next_picture(stream))["slices_state"] == "by_minute"
    stream.close()
