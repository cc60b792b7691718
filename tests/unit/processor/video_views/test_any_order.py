"""The finished row is the same for any order and any duplication of a view's beacons."""

import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.finish import FinishRules
from services.processor.engine.driver import Driver
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.video_views.beacons import HOUR_MS, MINUTE_MS, T0, cmcd, mux, pipe, rows, watch

#: What says when and how beacons came, not what they say.
ARRIVAL_FIELDS = {"duplicate_count", "revision", "first_append_ms", "last_append_ms", "day"}


def row_of(beacons: list[Beacon], *, finish_between: bool = False) -> dict[str, Any]:
    """The last revision; with `finish_between` the view has finished before its last beacon comes."""
    driver = Driver(application(FinishRules(paused_ms=5 * MINUTE_MS)))
    for number, beacon in enumerate(beacons):
        is_last = number == len(beacons) - 1
        pipe(driver, beacon, 20_000 + number + (10 * MINUTE_MS if finish_between and is_last else 0))
    driver.advance_to(T0 + 5 * HOUR_MS)
    row: View = rows(driver)[-1]
    return {name: value for name, value in msgspec.structs.asdict(row).items() if name not in ARRIVAL_FIELDS}


def random_view(seed: int) -> list[Beacon]:
    """A view of random events with random counters and dimensions, mux or CMCD."""
    random_ = random.Random(seed)
    at_ms = 0
    beacons = []
    is_mux = random_.random() < 0.5
    for number in range(random_.randint(2, 14)):
        at_ms += random_.randint(0, 3_000)
        if is_mux:
            event = (
                "viewstart"
                if number == 0
                else random_.choice(
                    [
                        "playing",
                        "pause",
                        "rebufferstart",
                        "rebufferend",
                        "seekstart",
                        "seekend",
                        "rendition",
                        "heartbeat",
                        "error",
                    ]
                )
            )
            attrs: dict[str, Any] = {"video_id": random_.choice("ab"), "view_watch_time": at_ms}
            if random_.random() < 0.4:
                attrs["video_source_bitrate"] = random_.choice([1, 2, 3]) * 1_000_000
            beacons.append(mux(number + 1, event, at_ms, playhead_ms=at_ms // 2, **attrs))
        else:
            sta = "s" if number == 0 else random_.choice("pkrawef")
            beacons.append(cmcd(number, random_.choice(["custom", "rendition"]), at_ms, sta=sta, br=[[at_ms + 1, "v"]]))
    return beacons


@settings(deadline=None)
@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_any_order_and_duplication_gives_the_same_row(seed: int, data: st.DataObject) -> None:
    beacons = random_view(seed)
    shuffled = data.draw(st.permutations(beacons))
    repeated = data.draw(st.lists(st.sampled_from(beacons), max_size=5))
    # What was sent again travelled at another speed.
    again = [msgspec.structs.replace(b, clock_offset_ms=data.draw(st.integers(1_000, 3_000))) for b in repeated]
    assert row_of([*shuffled, *again], finish_between=data.draw(st.booleans())) == row_of([*beacons, *again])


@settings(deadline=None)
@given(data=st.data())
def test_any_order_of_a_whole_view_with_a_hole_gives_the_same_row(data: st.DataObject) -> None:
    hole = data.draw(st.integers(2, 9))
    beacons = [beacon for beacon in watch() if beacon.seq != hole]
    shuffled = data.draw(st.permutations(beacons))
    assert row_of(shuffled) == row_of(beacons)
