"""Response reports whose request was over before the play began that reports them: they are of that play."""

import random

import msgspec
import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, T0, cmcd, folded_fast, stepped
from tests.unit.processor.applications.video_views.counted import newest


def play(records: int, at_ms: int, content: str, *, early_ms: int, stepped_ms: int) -> list[Beacon]:
    """A play with a record each 10 s; its second one reports a request that had begun so long before its first one."""
    beacons = []
    for n in range(records):
        if n != 1:
            sent_ms = at_ms + n * 10_000
            beacons.append(cmcd(n, "heartbeat" if n else "viewstart", sent_ms, sta="p" if n else "s", cid=content))
            continue
        report = cmcd(1, "request", at_ms - early_ms, e="rr", rc=200, ttlb=early_ms // 2, cid=content)
        received = msgspec.structs.replace(report, source_event="rr", recv_time_ms=T0 + at_ms + 2_000)
        beacons.append(received)
    return [stepped(one, stepped_ms) for one in beacons]


@pytest.mark.thorough
@pytest.mark.parametrize("early_ms", [400, 3_000, 20_000])
@pytest.mark.parametrize("by_ms", [0, -MINUTE_MS, -5 * MINUTE_MS, -HOUR_MS])
def test_a_request_that_was_over_before_its_play_began_is_of_it(by_ms: int, early_ms: int) -> None:
    first = play(30, 0, "a", early_ms=early_ms, stepped_ms=0)
    beacons = [*first, *play(20, 305_000, "b", early_ms=early_ms, stepped_ms=by_ms)]
    for seed in range(4):
        found = sorted(newest(folded_fast(beacons, ())).values(), key=lambda row: row.view_epoch)
        assert [(row.video_id, row.beacon_count, row.seq_gaps) for row in found] == [("a", 30, 0), ("b", 20, 0)]
        random.Random(seed).shuffle(beacons)


@pytest.mark.parametrize("records", [20, 200])
def test_copies_of_such_reports_and_of_the_last_ones_of_a_play_are_copies(records: int) -> None:
    first = play(30, 0, "a", early_ms=400, stepped_ms=0)
    begun_ms = 305_000
    # The last report of the first play came with the beginning of the second one.
    last = cmcd(30, "request", begun_ms - 3_000, e="rr", rc=200, ttlb=900, cid="a")
    last = msgspec.structs.replace(last, source_event="rr", recv_time_ms=T0 + begun_ms + 2_000)
    second = play(records, begun_ms, "b", early_ms=400, stepped_ms=0)
    beacons = [*first, last, *second, last, second[1], first[1]]
    found = sorted(newest(folded_fast(beacons, ())).values(), key=lambda row: row.view_epoch)
    assert [(row.view_id, row.beacon_count, row.duplicate_count, row.late_count) for row in found] == [
        ("s1", 31, 2, 0),
        ("s1.2", records, 1, 0),
    ]
    for seed in range(4):
        random.Random(seed).shuffle(beacons)
        found = sorted(newest(folded_fast(beacons, ())).values(), key=lambda row: row.view_epoch)
        assert sum(row.beacon_count + row.duplicate_count for row in found) == len(beacons)
        if records == 20:
            assert [(row.view_id, row.beacon_count) for row in found] == [("s1", 31), ("s1.2", records)]
