"""Generated CMCD sessions of two or three plays whose clock steps and whose beginnings are lost, late or come twice.

Each play is one view, with all its beacons, in any order of their arrival.
"""

import random
from typing import NamedTuple

import msgspec
import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import MINUTE_MS, cmcd, folded_fast, stepped
from tests.unit.processor.applications.video_views.counted import newest

HEARTBEAT_MS = 10_000
STEPS_MS = (-60 * MINUTE_MS, -30 * MINUTE_MS, -5 * MINUTE_MS, -MINUTE_MS)
DELAYS_MS = (40_000, 90_000, 200_000, 600_000)
#: Whatever the clock is set by, no two plays have beacons of one number and time: those would be copies.
PAUSES_MS = (1_013, 5_027, 60_039, 600_041)


class Generated(NamedTuple):
    beacons: list[Beacon]
    #: Of each play: what it shows, and how many beacons it has.
    plays: list[tuple[str, int]]


def play(records: int, at_ms: int, content: str) -> list[Beacon]:
    """A play with a record each 10 s."""
    return [
        cmcd(n, "heartbeat" if n else "viewstart", at_ms + n * HEARTBEAT_MS, sta="p" if n else "s", cid=content)
        for n in range(records)
    ]


def delayed(beacon: Beacon, by_ms: int) -> Beacon:
    """The beacon, received so much later."""
    offset_ms = (beacon.clock_offset_ms or 0) + by_ms
    return msgspec.structs.replace(beacon, recv_time_ms=beacon.recv_time_ms + by_ms, clock_offset_ms=offset_ms)


def short_plays(seed: int) -> Generated:
    """Plays of 20 beacons each; the clock is set back between any two; beginnings are lost, late, or come once more, late."""
    random_ = random.Random(seed)
    found = Generated([], [])
    at_ms = stepped_ms = 0
    for number in range(random_.choice([2, 3])):
        content = random_.choice("ab") if random_.random() < 0.5 else "abc"[number]
        if number and random_.random() < 0.35:
            stepped_ms += random_.choice(STEPS_MS)
        first, *rest = (stepped(one, stepped_ms) for one in play(20, at_ms, content))
        if random_.random() < 0.15:
            beginnings = []
        elif random_.random() < 0.4:
            late = delayed(first, random_.choice(DELAYS_MS))
            beginnings = [first, late] if random_.random() < 0.3 else [late]
        else:
            beginnings = [first]
        found.beacons.extend([*beginnings, *rest])
        found.plays.append((content, len(rest) + bool(beginnings)))
        at_ms += 20 * HEARTBEAT_MS + random_.choice(PAUSES_MS)
    return found


def long_plays(seed: int) -> Generated:
    """Plays of up to 200 beacons, some of them lost; the clock is set once, within a play or between two.

    Two beacons by a clock show it: the last two of a play come, and are of one clock.
    """
    random_ = random.Random(seed)
    found = Generated([], [])
    at_ms = stepped_ms = 0
    for number in range(random_.choice([2, 3])):
        content = random_.choice("ab") if random_.random() < 0.5 else "abc"[number]
        records = random_.choice([15, 30, 80, 200])
        steps_at = -1 if stepped_ms else random_.choice([-1, random_.randrange(records - 1)])
        beacons = []
        for n, one in enumerate(play(records, at_ms, content)):
            if n == steps_at:
                stepped_ms = random_.choice([*STEPS_MS, 5 * MINUTE_MS, 60 * MINUTE_MS])
            beacons.append(stepped(one, stepped_ms))
        lost = {random_.randrange(records - 2) for _ in range(random_.choice([0, 0, 1, 3]))}
        kept = [one for n, one in enumerate(beacons) if n not in lost]
        found.beacons.extend(kept)
        found.plays.append((content, len(kept)))
        at_ms += records * HEARTBEAT_MS + random_.choice(PAUSES_MS)
    return found


def rows_of(beacons: list[Beacon]) -> list[tuple[str | None, int]]:
    rows = sorted(newest(folded_fast(beacons, ())).values(), key=lambda row: row.view_epoch)
    assert [row.late_count for row in rows if row.late_count] == []
    return [(row.video_id, row.beacon_count) for row in rows]


@pytest.mark.parametrize("seed", range(15))
def test_short_plays_are_whole_in_any_order_of_arrival(seed: int) -> None:
    generated = short_plays(seed)
    beacons = sorted(generated.beacons, key=lambda one: one.recv_time_ms)
    for _ in range(2):
        assert rows_of(beacons) == generated.plays
        random.Random(seed).shuffle(beacons)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(15))
def test_long_plays_are_whole_in_their_order_of_receipt(seed: int) -> None:
    generated = long_plays(seed)
    assert rows_of(sorted(generated.beacons, key=lambda one: one.recv_time_ms)) == generated.plays
