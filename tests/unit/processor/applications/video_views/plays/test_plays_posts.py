"""A client's clock that steps within one request of several CMCD records: they have one time of receipt."""

import random

import pytest

from services.collector.intake.cmcd import cmcd
from services.collector.intake.post import Rules
from shared.schemas.beacon import Beacon
from tests.unit.collector.intake.bodies import post
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, T0, folded_fast
from tests.unit.processor.applications.video_views.counted import newest

HEARTBEAT_MS = 10_000


def session(*, steps_at: int, by_ms: int, batch: int) -> list[Beacon]:
    """Two plays of 20 records, sent `batch` at a time; the clock is set before one of the records."""
    beacons: list[Beacon] = []
    lines: list[str] = []
    for n in range(40):
        number, content = n % 20, "ab"[n // 20]
        sent_ms = n * HEARTBEAT_MS + n // 20 * 1_013
        stepped_ms = by_ms if n >= steps_at else 0
        state = "p" if number else "s"
        lines.append(f'cid="{content}",e=t,sid="s1",sn={number},sta={state},ts={T0 + sent_ms + stepped_ms},v=2')
        if len(lines) == batch or n == 39:
            body = "\n".join(lines).encode()
            request = post(body, key="acme", origin="/cmcd/acme", recv_time_ms=T0 + sent_ms + 100)
            beacons += cmcd.parse_records(request, Rules()).accepted
            lines = []
    return beacons


def rows_of(beacons: list[Beacon]) -> list[tuple[str, str | None, int, int]]:
    found = newest(folded_fast(beacons, ())).values()
    return sorted((row.view_id, row.video_id, row.beacon_count, row.watch_ms) for row in found)


@pytest.mark.parametrize("by_ms", [-HOUR_MS, -5 * MINUTE_MS, -MINUTE_MS])
@pytest.mark.parametrize("batch", [3, 6])
@pytest.mark.parametrize("steps_at", [13, 20, 22, 31])
def test_a_clock_that_is_set_back_within_a_request_splits_no_play(steps_at: int, by_ms: int, batch: int) -> None:
    beacons = session(steps_at=steps_at, by_ms=by_ms, batch=batch)
    expected = rows_of(session(steps_at=0, by_ms=0, batch=batch))
    assert [one[1:3] for one in expected] == [("a", 20), ("b", 20)]
    found = rows_of(beacons)
    assert [one[:3] for one in found] == [one[:3] for one in expected]
    # What elapsed between the last record before the step and the first one after it is not known.
    for one, other in zip(found, expected, strict=True):
        assert other[3] - HEARTBEAT_MS <= one[3] <= other[3] + HEARTBEAT_MS
    random.Random(steps_at).shuffle(beacons)
    assert rows_of(beacons) == found
