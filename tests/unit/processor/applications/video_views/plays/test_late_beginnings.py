"""The first record of a play comes late, in any number after the others: the play is one view, and the record is in it."""

import pytest

from services.processor.applications.video_views.bounds import HELD_STEPS_MAX, RECENT_STEPS_MAX
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.applications.video_views.beacons import cmcd, folded_fast
from tests.unit.processor.applications.video_views.counted import newest

#: Records of a play beside the one that comes late: all can be moved, some are settled, all waited and the gap was given up.
OTHERS = (RECENT_STEPS_MAX - 10, RECENT_STEPS_MAX + 10, HELD_STEPS_MAX + 1, 2 * HELD_STEPS_MAX)
SECOND_MS = 1_000


def play(records: int, at_ms: int, content: str, *, first_seq: int = 0) -> list[Beacon]:
    """A play with a record a second, of which the first says that it starts."""
    return [
        cmcd(
            first_seq + n, "heartbeat" if n else "viewstart", at_ms + n * SECOND_MS, sta="p" if n else "s", cid=content
        )
        for n in range(records)
    ]


def row_of_each(beacons: list[Beacon]) -> list[View]:
    return list(newest(folded_fast(beacons, ())).values())


def watched(rows: list[View]) -> list[tuple[str, int, int, str | None]]:
    return sorted((row.view_id, row.beacon_count, row.seq_gaps, row.video_id) for row in rows)


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("is_followed", [False, True])
def test_of_the_only_play_of_its_numbers(others: int, is_followed: bool) -> None:
    first, *rest = play(1 + others, 1_000, "a")
    following = play(20, 1_000_000, "b") if is_followed else []
    for came in ([*rest, first, *following], [*rest, *following, first]):
        found = row_of_each(came)
        expected = [("s1", 1 + others, 0, "a"), ("s1.2", 20, 0, "b")][: 1 + is_followed]
        assert watched(found) == expected
        assert sum(row.late_count for row in found) == (others > HELD_STEPS_MAX)


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("is_followed", [False, True])
def test_of_a_play_whose_numbers_begin_again(others: int, is_followed: bool) -> None:
    before = play(100, 1_000, "a")
    first, *rest = play(1 + others, 200_000, "a")
    following = play(20, 1_000_000, "b") if is_followed else []
    for came in ([*before, *rest, first, *following], [*before, *rest, *following, first]):
        found = row_of_each(came)
        expected = [("s1", 100, 0, "a"), ("s1.2", 1 + others, 0, "a"), ("s1.3", 20, 0, "b")]
        assert watched(found) == expected[: 2 + is_followed]
        assert sum(row.late_count for row in found) == (others > HELD_STEPS_MAX)


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("is_followed", [False, True])
def test_of_a_play_that_continues_the_numbers(others: int, is_followed: bool) -> None:
    before = play(100, 1_000, "a")
    first, *rest = play(1 + others, 200_000, "b", first_seq=100)
    following = play(20, 1_000_000, "c", first_seq=101 + others) if is_followed else []
    for came in ([*before, *rest, first, *following], [*before, *rest, *following, first]):
        found = row_of_each(came)
        expected = [("s1", 100, 0, "a"), ("s1.2", 1 + others, 0, "b"), ("s1.3", 20, 0, "c")]
        assert watched(found) == expected[: 2 + is_followed]
        assert sum(row.late_count for row in found) <= 1
