"""The whole timeline of a view as it is answered: of its own beacons, no further than they were read, and bounded."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import pytest

from services.query.core.resources.view import timeline_of_view
from services.query.core.resources.view.timeline_of_view import EVENTS_MAX, TEXT_CHARS_MAX, TimelineOfView
from services.rim.turns.thread_work import CpuTime
from shared import codec
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.applications.video_views.beacons import T0, cmcd, folded_fast, mux, rows
from tests.unit.processor.applications.video_views.plays.test_plays_generated import short_plays
from tests.unit.processor.applications.video_views.test_whole_timeline import LONG, STALLS, long_mux, long_session

#: When `folded_fast` appends the first beacon; each later one a millisecond after the one before.
FIRST_MS: Final = T0 + 20_000


def go_on() -> bool:
    return True


def row_of(beacons: Sequence[Beacon]) -> View:
    """The newest revision of the last view."""
    return rows(folded_fast(beacons, ()))[-1]


def made(
    row: View | dict[str, Any],
    beacons: Sequence[Beacon],
    *,
    is_cut: bool = False,
    may_go_on: Callable[[], bool] = go_on,
    first_ms: int = FIRST_MS,
) -> TimelineOfView:
    stored = row if isinstance(row, dict) else msgspec.to_builtins(row)
    values = [
        {"appended_ms": first_ms + number, "value": codec.BEACON.encode(one)} for number, one in enumerate(beacons)
    ]
    return timeline_of_view.timeline(stored, may_go_on, values, is_cut)


@pytest.mark.parametrize("client", LONG)
def test_it_begins_with_the_events_of_the_row_and_goes_on_to_the_end(client: str) -> None:
    beacons = LONG[client]()
    row = row_of(beacons)
    found = made(row, beacons)
    first = [msgspec.convert(msgspec.to_builtins(one), timeline_of_view.ToldEvent) for one in row.events]
    assert found.events[: len(first)] == first
    assert len(found.events) > STALLS > len(first)
    assert (found.view_id, found.agrees, found.is_cut) == (row.view_id, True, False)
    assert found.beacons_n == row.beacon_count
    assert found.known_to_ms == row.view_end_ms - row.view_start_ms


def test_of_a_session_it_is_that_of_the_play_that_the_row_is_of() -> None:
    beacons = long_session()
    first, second = ({row.view_id: row for row in rows(folded_fast(beacons, ()))}[one] for one in ("s1", "s1.2"))
    assert [one.at_ms for one in made(first, beacons).events] == [one.at_ms for one in first.events]
    assert made(second, beacons).beacons_n == second.beacon_count
    # Beacons of the plays before it may be gone.
    assert made(second, beacons[8:], first_ms=FIRST_MS + 8).events == made(second, beacons).events


def exits(at_ms: int, content: str) -> list[Beacon]:
    """A play of which one beacon came."""
    return [cmcd(0, "viewstart", at_ms, sta="s", cid=content)]


def rows_by_id(beacons: Sequence[Beacon]) -> dict[str, View]:
    return {row.view_id: row for row in rows(folded_fast(beacons, ()))}


def test_a_play_that_ends_before_its_start_has_no_events_of_another_one() -> None:
    watched = [
        cmcd(at, "playing" if at else "viewstart", 1_000 * at, sta="p" if at else "s", cid="one") for at in range(20)
    ]
    beacons = [*watched, *exits(30_000, "two")]
    of_session = rows_by_id(beacons)
    first, second = of_session["s1"], of_session["s1.2"]
    assert (first.beacon_count, second.beacon_count, len(second.events)) == (20, 1, 1)
    found = made(second, beacons)
    assert (found.agrees, found.beacons_n, len(found.events)) == (True, 1, 1)
    assert made(first, beacons).beacons_n == 20
    # Its own beacon is gone, and what is left begins alike.
    gone = made(second, watched)
    assert (gone.agrees, gone.events) == (False, [])
    # A row that has no events proves nothing.
    for row, count in ((first, 20), (second, 1)):
        bare = made(msgspec.to_builtins(row) | {"events": []}, beacons)
        assert (bare.agrees, bare.events, bare.beacons_n) == (False, [], count)


def test_a_play_is_found_where_those_before_it_are_gone_and_others_follow() -> None:
    beacons = [*exits(0, "one"), *exits(30_000, "two"), *exits(60_000, "three")]
    second = msgspec.to_builtins(rows_by_id(beacons)["s1.2"])
    # All came in one body: the first beacons of all have one time.
    body = second | {"first_append_ms": FIRST_MS, "last_append_ms": FIRST_MS}

    def of_body(some: Sequence[Beacon], row: dict[str, Any]) -> TimelineOfView:
        values = [{"appended_ms": FIRST_MS, "value": codec.BEACON.encode(one)} for one in some]
        return timeline_of_view.timeline(row, go_on, values, False)

    assert made(second, beacons[1:], first_ms=FIRST_MS + 1).agrees
    # What is left is of the next one.
    assert not made(second | {"last_append_ms": FIRST_MS + 2}, beacons[2:], first_ms=FIRST_MS + 2).agrees
    for some in (beacons, beacons[1:]):
        assert (of_body(some, body).agrees, of_body(some, body).beacons_n) == (True, 1)
    # Which of them it is cannot be told.
    unknown = of_body(beacons, body | {"view_start_ms": 1})
    assert (unknown.agrees, unknown.events) == (False, [])


@pytest.mark.parametrize("seed", range(30))
def test_each_play_of_a_generated_session_has_the_timeline_of_its_row(seed: int) -> None:
    beacons = short_plays(seed).beacons
    for row in rows_by_id(beacons).values():
        if not row.deleted:
            found = made(msgspec.to_builtins(row) | {"last_append_ms": FIRST_MS + len(beacons)}, beacons)
            assert found.agrees
            assert [(one.at_ms, one.event) for one in found.events] == [(one.at_ms, one.event) for one in row.events]


def test_more_beacons_than_the_row_counts_are_not_shown() -> None:
    beacons = long_mux()
    row = msgspec.to_builtins(row_of(beacons))
    found = made(row | {"beacon_count": len(beacons) - 1}, beacons)
    assert (found.agrees, found.events, found.beacons_n) == (False, [], len(beacons))


def test_it_ends_where_reading_ended_and_says_so() -> None:
    beacons = long_mux()
    row = row_of(beacons)
    cut = made(row, beacons[:500], is_cut=True)
    assert (cut.beacons_n, cut.is_cut, cut.agrees) == (500, True, True)
    assert cut.known_to_ms == beacons[499].client_time_ms - T0
    # Beacons that have not reached the warehouse yet, or that nobody has any more.
    missing = made(row, beacons[:500])
    assert (missing.beacons_n, missing.is_cut, missing.known_to_ms) == (500, False, cut.known_to_ms)
    assert missing.beacons_n < row.beacon_count
    none = made(row, [])
    assert (none.events, none.beacons_n, none.known_to_ms, none.agrees) == ([], 0, 0, True)


def test_a_fold_that_takes_too_long_ends() -> None:
    beacons, left = long_mux(), iter(range(300))
    found = made(row_of(beacons), beacons, may_go_on=lambda: next(left, None) is not None)
    assert (found.beacons_n, found.is_cut) == (300, True)
    worked = CpuTime(0.001)
    assert worked.is_left()
    while worked.is_left():
        sum(range(1_000))
    assert not worked.is_left()


def test_other_events_than_those_of_the_row_are_not_shown() -> None:
    beacons = long_mux()
    row = row_of(beacons)
    # The first hundred are no longer kept: what follows them cannot be told from what they said.
    found = made(row, [beacons[0], *beacons[100:]])
    assert (found.agrees, found.events, found.known_to_ms) == (False, [], 0)
    assert made(msgspec.to_builtins(row) | {"source": "another"}, beacons).agrees is False


def test_what_came_after_the_last_beacon_of_the_row_is_of_something_else() -> None:
    beacons = long_mux()
    row = msgspec.to_builtins(row_of(beacons[:-1])) | {"last_append_ms": FIRST_MS + len(beacons) - 2}
    found = made(row, beacons, is_cut=True)
    assert (found.beacons_n, found.is_cut) == (len(beacons) - 1, False)
    assert found.events[-1].event != "ended"


@pytest.mark.thorough
def test_an_answer_has_a_bound() -> None:
    text = "x" * 2_000
    errors = [
        mux(4 + at, "error", 1_000 + at, player_error_code=text, player_error_message=text)
        for at in range(EVENTS_MAX + 10)
    ]
    beacons = [*long_mux()[:3], *errors]
    row = row_of(beacons)
    found = made(row, beacons)
    assert (len(found.events), found.is_cut) == (EVENTS_MAX, True)
    assert found.known_to_ms == found.events[-1].at_ms
    assert (len(found.events[3].code or ""), len(found.events[3].message or "")) == (TEXT_CHARS_MAX, TEXT_CHARS_MAX)
    assert len(msgspec.json.encode(found)) < 3_000_000
