"""The whole timeline of a view from its beacons: what its row would have if it had room for every event."""

import random
from collections.abc import Sequence
from typing import Final

import msgspec
import pytest

from services.processor.applications.video_views.bounds import HELD_STEPS_MAX, RECENT_STEPS_MAX, TIMELINE_EVENTS_MAX
from services.processor.applications.video_views.view.progress import timeline
from services.processor.applications.video_views.whole_timeline import Refolding, WholeTimeline
from shared import codec
from shared.schemas.beacon import Beacon
from shared.schemas.view import TimelineEvent, View
from tests.unit.processor.applications.video_views import captured
from tests.unit.processor.applications.video_views.beacons import (
    MINUTE_MS,
    T0,
    cmcd,
    folded_fast,
    mux,
    rows,
    stepped,
    watch,
)
from tests.unit.processor.applications.video_views.plays.test_delay_of_plays import FIRST, SECOND, stepped_from
from tests.unit.processor.applications.video_views.plays.test_plays_generated import short_plays
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed

#: Stalls of a long view: more than four times the events that a row keeps.
STALLS: Final = 450


def refolded(beacons: Sequence[Beacon], *, are_all: bool = True) -> list[WholeTimeline]:
    found = Refolding(beacons[0].source)
    for number, one in enumerate(beacons):
        found.take(T0 + number, codec.BEACON.encode(one))
    return found.timelines(are_all=are_all)


def rows_of(beacons: Sequence[Beacon]) -> list[View]:
    return list({row.view_id: row for row in rows(folded_fast(beacons, ()))}.values())


def rows_with_room(beacons: Sequence[Beacon], monkeypatch: pytest.MonkeyPatch) -> list[View]:
    """The rows that the processor would write if a row had room for every event."""
    with monkeypatch.context() as patch:
        patch.setattr(timeline, "events_max", 100_000)
        return rows_of(beacons)


def long_mux() -> list[Beacon]:
    stalls = [
        (mux(4 + 2 * at, "rebufferstart", 1_000 + 20 * at), mux(5 + 2 * at, "rebufferend", 1_010 + 20 * at))
        for at in range(STALLS)
    ]
    end = mux(4 + 2 * STALLS, "viewend", 60_000)
    return [*watch()[:3], *(one for pair in stalls for one in pair), end]


def long_native() -> list[Beacon]:
    names = ("pause", "playing", "seekstart", "seekend", "rebufferstart", "rebufferend")
    return [
        timed("native", "viewstart", 0),
        timed("native", "playing", 300),
        *(timed("native", names[at % len(names)], 500 + 100 * at, playhead_ms=100 * at) for at in range(STALLS)),
    ]


def long_session() -> list[Beacon]:
    """Two plays of one CMCD session, the second one with more events than a row keeps."""
    first = [cmcd(at, "playing", 1_000 * at, sta="p" if at else "s", cid="one") for at in range(8)]
    second = [cmcd(0, "viewstart", 20_000, sta="s", cid="two")]
    second += [
        cmcd(1 + at, "custom", 20_500 + 100 * at, sta="p" if at % 2 == 0 else "r", cid="two", br=[[1_000 + at, "v"]])
        for at in range(STALLS)
    ]
    return [*first, *second]


LONG: Final = {"mux": long_mux, "native": long_native, "cmcd": long_session}


@pytest.mark.thorough
@pytest.mark.parametrize("client", LONG)
@pytest.mark.parametrize("order", ["as they came", "out of order and twice"])
def test_it_has_every_event_that_a_row_with_room_for_it_would_have(
    client: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beacons = LONG[client]()
    if order != "as they came":
        chance = random.Random(7)
        # Up to thirty later than it was sent, and some again.
        late = sorted((at + chance.randrange(30), at) for at in range(len(beacons)))
        beacons = [one for _, at in late for one in [beacons[at]] * chance.choice((1, 1, 2))]
    with_room = rows_with_room(beacons, monkeypatch)
    found = refolded(beacons)
    assert [[told.event for told in one.events] for one in found] == [row.events for row in with_room]
    assert [one.beacon_count for one in found] == [row.beacon_count for row in with_room]
    assert len(found[-1].events) > 2 * TIMELINE_EVENTS_MAX
    # The first ones are what the row keeps.
    kept = rows_of(beacons)[-1].events
    assert len(kept) == TIMELINE_EVENTS_MAX
    assert [told.event for told in found[-1].events][:TIMELINE_EVENTS_MAX] == kept


def test_events_keep_their_times_where_the_clock_stepped(monkeypatch: pytest.MonkeyPatch) -> None:
    beacons = long_mux()
    beacons = [*beacons[:300], *(stepped(one, -3_600_000) for one in beacons[300:])]
    (row,) = rows_with_room(beacons, monkeypatch)
    (found,) = refolded(beacons)
    assert row.clock_step_count == 1
    assert [told.event for told in found.events] == row.events


def by_start(timelines: Sequence[Sequence[TimelineEvent]]) -> list[Sequence[TimelineEvent]]:
    return sorted(timelines, key=repr)


@pytest.mark.parametrize("seed", range(30))
def test_plays_of_generated_sessions_have_the_timelines_of_their_rows(seed: int) -> None:
    beacons = short_plays(seed).beacons
    rows_of_plays = [row.events for row in rows_of(beacons) if not row.deleted]
    assert by_start([[told.event for told in one.events] for one in refolded(beacons)]) == by_start(rows_of_plays)


def test_a_play_knows_the_delay_of_those_before_it() -> None:
    pausing = [
        msgspec.structs.replace(one, attrs=one.attrs | {"sta": "a"}) if number > 2 and number % 2 else one
        for number, one in enumerate(SECOND)
    ]
    beacons = [*FIRST, *stepped_from(pausing, 1, MINUTE_MS)]
    first, second = rows_of(beacons)
    assert second.clock_step_count == 1
    assert [[told.event for told in one.events] for one in refolded(beacons)] == [first.events, second.events]


@pytest.mark.parametrize("capture", ["watched", "ads", "stalled"])
def test_a_captured_view_has_the_timeline_of_its_row(capture: str) -> None:
    of_player = {"watched": captured.mux_watched, "ads": captured.mux_with_ads, "stalled": captured.cmcd_stalled}
    beacons = list(of_player[capture]())
    (row,) = rows_of(beacons)
    (found,) = refolded(beacons)
    assert [told.event for told in found.events] == row.events


def test_each_error_and_warning_has_what_its_own_beacon_says() -> None:
    beacons = [
        *long_mux()[:-1],
        mux(904, "warning", 20_000, player_error_code="W1", player_error_message="slow"),
        mux(905, "error", 21_000, player_error_code="E1"),
        mux(906, "error", 22_000, player_error_code="E2", player_error_message="gone"),
        mux(906, "error", 22_000, player_error_code="E2", player_error_message="gone"),
        mux(907, "error", 22_000, player_error_code="E3"),
        mux(908, "error", 23_000),
    ]
    (found,) = refolded(beacons)
    said = [
        (told.event.event, told.said and (told.said.code, told.said.message))
        for told in found.events
        if told.event.event in ("error", "warning")
    ]
    assert said == [
        ("warning", ("W1", "slow")),
        ("error", ("E1", None)),
        ("error", ("E2", "gone")),
        ("error", ("E3", None)),
        ("error", None),
    ]


def texts(found: WholeTimeline) -> list[str | None]:
    """The codes of its errors and warnings, in the order of the events."""
    told = (one for one in found.events if one.event.event in ("error", "warning"))
    return [None if one.said is None else one.said.code for one in told]


def failing(seq: int, code: str, at_ms: int = 5_000, event: str = "error") -> Beacon:
    return mux(seq, event, at_ms, player_error_code=code)


#: Enough beacons that those before them can change no more.
AFTER: Final = [mux(6 + at, "heartbeat", 6_000 + at) for at in range(RECENT_STEPS_MAX + 10)]


@pytest.mark.parametrize("is_settled", [True, False])
@pytest.mark.parametrize("event", ["error", "warning"])
def test_errors_of_one_moment_keep_the_order_of_their_beacons(event: str, is_settled: bool) -> None:
    errors = [failing(5, "DECODE", event=event), failing(4, "NET", event=event)]
    (found,) = refolded([*watch()[:3], *errors, *(AFTER if is_settled else [])])
    assert texts(found) == ["NET", "DECODE"]


@pytest.mark.parametrize("event", ["error", "warning"])
def test_what_the_fold_rejects_says_nothing_of_an_error(event: str) -> None:
    copy = failing(4, "EVIL", event=event)
    (found,) = refolded([*watch()[:3], failing(4, "A", event=event), copy, failing(5, "C", event=event), *AFTER])
    assert texts(found) == ["A", "C"]
    # One that came when its place was settled, before an error that says nothing.
    lost = [*watch()[:3], mux(5, event, 5_000), *(mux(6 + at, "heartbeat", 6_000) for at in range(HELD_STEPS_MAX + 10))]
    (late,) = refolded([*lost, failing(4, "LATE", event=event)])
    assert texts(late) == [None]


def test_an_error_says_what_its_beacon_says_where_the_clock_stepped() -> None:
    beacons = [*long_mux()[:300], failing(301, "BEFORE", 8_000), failing(302, "BEHIND", 9_000)]
    beacons = [*beacons[:301], *(stepped(one, -3_600_000) for one in beacons[301:])]
    (found,) = refolded(beacons)
    assert texts(found) == ["BEFORE", "BEHIND"]


def test_plays_of_one_session_share_no_texts() -> None:
    first = [cmcd(0, "viewstart", 0, sta="s", cid="one"), cmcd(1, "error", 1_000, sta="f", cid="one", ec="A")]
    # Its error says nothing, in the same millisecond.
    second = [cmcd(0, "viewstart", 900, sta="s", cid="two"), cmcd(1, "playing", 950, sta="p", cid="two")]
    second += [cmcd(2, "error", 1_000, sta="f", cid="two")]
    for beacons in ([*first, *second], [*second, *first]):
        assert [found for one in refolded(beacons) if (found := texts(one))] == [["A"], [None]]


def test_what_was_not_read_is_not_made_up() -> None:
    beacons = long_mux()
    (found,) = refolded(beacons[:400], are_all=False)
    last = beacons[399]
    assert (found.beacon_count, found.known_to_ms) == (400, last.client_time_ms - T0)
    # What stands behind a gap may follow on something else: it waits.
    (waits,) = refolded([*beacons[:400], *beacons[401:500]], are_all=False)
    assert waits.known_to_ms == found.known_to_ms
    assert [told.event for told in waits.events] == [told.event for told in found.events]


def test_a_lost_beacon_costs_no_other_event(monkeypatch: pytest.MonkeyPatch) -> None:
    # A gap that is given up folds all that waited behind it at once: more events than a timeline has room for.
    assert HELD_STEPS_MAX > TIMELINE_EVENTS_MAX
    beacons = long_mux()
    for lost in ([*beacons[:10], *beacons[11:]], [*beacons[:850], *beacons[851:]]):
        (row,) = rows_with_room(lost, monkeypatch)
        (found,) = refolded(lost)
        assert [told.event for told in found.events] == row.events


def test_bytes_that_are_no_beacon_and_beacons_of_another_client_change_nothing() -> None:
    beacons = watch()
    found = Refolding("mux")
    for number, one in enumerate(beacons):
        found.take(T0 + number, codec.BEACON.encode(one))
        found.take(T0 + number, b"\xff")
        found.take(T0 + number, codec.BEACON.encode(msgspec.structs.replace(one, source="native")))
    assert found.timelines(are_all=True) == refolded(beacons)
    assert Refolding("mux").timelines(are_all=True) == []
