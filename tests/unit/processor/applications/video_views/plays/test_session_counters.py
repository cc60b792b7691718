"""CMCD counters of a session as those of its plays, and lists of stalls (docs/view.md, "Counters of a CMCD session")."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    T0,
    Drive,
    cmcd,
    driver_of,
    pipe,
    stepped,
)
from tests.unit.processor.applications.video_views.counted import newest
from tests.unit.processor.applications.video_views.plays.test_plays import rows_of
from tests.unit.processor.applications.video_views.row.test_definitions import row_of


def play(first_seq: int, at_ms: int, content: str, *reported: dict[str, Any]) -> list[Beacon]:
    """A play whose heartbeats say this, one a second."""
    start = [
        cmcd(first_seq, "viewstart", at_ms, sta="s", cid=content),
        cmcd(first_seq + 1, "playing", at_ms + 500, sta="p", cid=content),
    ]
    beats = [
        cmcd(first_seq + 2 + n, "heartbeat", at_ms + 1_000 * (n + 1), sta="p", cid=content, **keys)
        for n, keys in enumerate(reported)
    ]
    return start + beats


def counted(rows: dict[str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        tuple(row[name] for name in ("view_id", "rebuffer_count", "rebuffer_ms", "dropped_frames"))
        for _, row in sorted(rows.items())
    ]


FIRST = play(0, 0, "a", {"bsa": [[1, None]]}, {"bsa": [[3, None]], "bsda": [[4_000, None]], "dfa": 20})
SECOND = play(4, MINUTE_MS, "b", {"bsa": [[5, None]], "bsda": [[4_700, None]], "dfa": 20})
THIRD = play(0, 2 * MINUTE_MS, "c", {"bsda": 5_000}, {"dfa": 3})


def test_each_play_has_what_the_session_counted_in_it() -> None:
    assert counted(rows_of([*FIRST, *SECOND, *THIRD])) == [
        ("s1", 3, 4_000, 20),
        ("s1.2", 2, 700, 0),
        # The frames are fewer than before: the player counts all again from 0. It gave no number of stalls.
        ("s1.3", 0, 5_000, 3),
    ]


def stalls(count: int, ms: int | None = None) -> dict[str, Any]:
    return {"bsa": [[count, None]]} | ({} if ms is None else {"bsda": [[ms, None]]})


@pytest.mark.parametrize(
    ("plays", "counted_of_last"),
    [
        # The number of stalls shows that their sum counts again, too.
        (([stalls(3, 1_000)], [stalls(1, 5_000)]), (1, 5_000)),
        # What counted again passes its former value.
        (([stalls(2, 1_000)], [stalls(1, 400), stalls(3, 1_200)]), (3, 1_200)),
        # The client began again in the second play, where it gave no sum.
        (([stalls(3, 4_000)], [stalls(1)], [stalls(2, 5_000)]), (1, 5_000)),
        (([stalls(3, 1_000)], [stalls(4, 1_500)]), (1, 500)),
    ],
)
def test_a_reset_of_one_counter_is_one_of_all(
    plays: tuple[list[dict[str, Any]], ...], counted_of_last: tuple[int, int]
) -> None:
    beacons = [one for n, reported in enumerate(plays) for one in play(4 * n, n * MINUTE_MS, f"film {n}", *reported)]
    for order in (beacons, beacons[::-1]):
        _, count, stalled_ms, _ = counted(rows_of(order))[-1]
        assert (count, stalled_ms) == counted_of_last


@given(data=st.data())
def test_counters_of_plays_are_the_same_for_any_order(data: st.DataObject) -> None:
    beacons = [*FIRST, *SECOND, *THIRD]
    shuffled = data.draw(st.permutations(beacons))
    assert counted(rows_of(shuffled)) == counted(rows_of(beacons))


def test_a_late_record_of_the_first_play_revises_the_second_and_a_closed_play_is_remembered(drive: Drive) -> None:
    driver = driver_of(drive)
    *first, last_of_first = FIRST
    for beacon in [*first, *SECOND]:
        pipe(driver, beacon)
    driver.advance_to(T0 + 10 * MINUTE_MS)
    assert (newest(driver)["s1.2"].rebuffer_count, newest(driver)["s1.2"].dropped_frames) == (4, 20)
    pipe(driver, last_of_first, 11 * MINUTE_MS)
    driver.advance_to(T0 + HOUR_MS)
    assert (newest(driver)["s1.2"].rebuffer_count, newest(driver)["s1.2"].dropped_frames) == (2, 0)
    for beacon in THIRD:
        pipe(driver, beacon, 4 * HOUR_MS + beacon.client_time_ms - T0)
    driver.advance_to(T0 + 6 * HOUR_MS)
    assert newest(driver)["s1.3"].rebuffer_ms == 5_000


@pytest.mark.parametrize(
    ("reported", "count", "ms"),
    [
        ([[800, None], [1_200, None], [300, None]], 3, 2_300),
        ([[800, "v"], [700, "a"]], 2, 1_500),
        (800, 1, 800),
        ([], 0, 0),
        ([[-5, None], ["x", None], [0, None]], 0, 0),
    ],
)
def test_every_entry_of_a_list_of_stalls_counts(drive: Drive, reported: object, count: int, ms: int) -> None:
    row = row_of(drive, [*play(0, 0, "a"), cmcd(2, "heartbeat", 9_000, sta="p", cid="a", bsd=reported)])
    assert (row.rebuffer_count, row.rebuffer_ms) == (count, ms)
    assert row.rebuffer_source == ("stalls" if count else "states")


def test_the_row_says_what_its_rebuffering_is_made_of(drive: Drive) -> None:
    stalled = [
        *play(0, 0, "a"),
        cmcd(2, "rebufferstart", 2_000, sta="r"),
        cmcd(3, "playing", 3_500, sta="p", bsd=[[9, None]]),
    ]
    row = row_of(drive, stalled)
    assert (row.rebuffer_source, row.rebuffer_count, row.rebuffer_ms, row.player_measured) == ("states", 1, 1_500, [])
    row = row_of(drive, [*stalled, cmcd(4, "heartbeat", 4_000, sta="p", bsa=2, bsda=1_700)])
    assert (row.rebuffer_source, row.rebuffer_count, row.rebuffer_ms) == ("counters", 2, 1_700)
    assert (row.rebuffer_count_difference, row.rebuffer_difference_ms) == (1, 200)


def test_the_share_of_rebuffering_has_both_denominators(drive: Drive) -> None:
    # Mux: of the watch time, start-up and seeks in it. CTA-2066: stall / (stall + play).
    story = [
        cmcd(0, "viewstart", 0, sta="s"), cmcd(1, "playing", 2_000, sta="p"), cmcd(2, "rebufferstart", 8_000, sta="r"),
        cmcd(3, "playing", 10_000, sta="p"), cmcd(4, "seekstart", 12_000, sta="k"), cmcd(5, "viewend", 20_000, sta="q"),
    ]  # fmt: skip
    row = row_of(drive, story)
    assert (row.rebuffer_ms, row.watch_ms, row.playing_ms) == (2_000, 20_000, 8_000)
    assert (row.rebuffer_fraction, row.rebuffer_ratio) == (0.1, 0.2)
    row = row_of(drive, [cmcd(0, "error", 0, sta="f")])
    assert (row.rebuffer_fraction, row.rebuffer_ratio) == (None, None)


def test_what_two_plays_counted_is_of_one_where_they_are_found_to_be_one() -> None:
    # A clock that is set back after 40 s; its first beacon alone looks like a play before the other.
    beat = cmcd(7, "heartbeat", 35_000, sta="p", playhead=30_000)
    stall = stepped(cmcd(17, "rebufferstart", 92_000, sta="r", **stalls(1, 0)), -HOUR_MS)
    first = cmcd(0, "heartbeat", 5_000)
    held = msgspec.structs.replace(first, recv_time_ms=first.recv_time_ms + 4 * MINUTE_MS)
    between = stepped(cmcd(9, "heartbeat", 55_000, sta="p"), -HOUR_MS)
    (row,) = rows_of([beat, stall, held, between]).values()
    assert (row["beacon_count"], row["rebuffer_count"], row["rebuffer_count_difference"]) == (4, 1, 0)
