"""The finished row is the same for any order and any duplication of a view's beacons, generated or of real players."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.applications.video_views import captured
from tests.unit.processor.applications.video_views.beacons import (
    FAST_RULES,
    MINUTE_MS,
    T0,
    cmcd,
    folded_fast,
    mux,
    rows,
    watch,
)

#: What says when and how beacons came, not what they say.
ARRIVAL_FIELDS = {"duplicate_count", "revision", "first_append_ms", "last_append_ms", "day"}
#: All that a story of arrivals may take, so that its last beacon is within the lateness window.
PAUSES_MS = 50 * MINUTE_MS


@st.composite
def pauses(draw: st.DrawFn) -> list[tuple[float, int]]:
    """Where in a story nothing comes for so long that the view finishes: shares of its length, and ms."""
    found = draw(st.lists(st.tuples(st.floats(0, 1), st.integers(6 * MINUTE_MS, PAUSES_MS)), max_size=3))
    return [(share, pause_ms // len(found)) for share, pause_ms in found]


def row_of(beacons: list[Beacon], silent: list[tuple[float, int]] | None = None) -> dict[str, Any]:
    """The last revision; empty where there is no view. While it is `silent`, it may finish before its next beacon comes."""
    found = rows(folded_fast(beacons, silent or (), replace(FAST_RULES, paused_ms=FAST_RULES.silent_ms)))
    if not found:
        return {}
    row: View = found[-1]
    return {name: value for name, value in msgspec.structs.asdict(row).items() if name not in ARRIVAL_FIELDS}


MUX_EVENTS = (
    "playing",
    "pause",
    "rebufferstart",
    "rebufferend",
    "seekstart",
    "seekend",
    "rendition",
    "heartbeat",
    "error",
    "ended",
    "ad",
    "request",
    "custom",
)
MUX_ADS = ("adbreakstart", "adplay", "adplaying", "adpause", "adended", "aderror", "adbreakend")
MUX_REQUESTS = ("requestcompleted", "requestfailed", "requestcanceled")


def mux_attrs(random_: random.Random, at_ms: int) -> dict[str, Any]:
    """What a beacon may say, each with some chance: only what changed is sent."""
    said: dict[str, Any] = {
        "video_id": random_.choice("ab"),
        "video_cdn": random_.choice("xyz"),
        "view_watch_time": at_ms,
        "view_rebuffer_count": at_ms // 2_000,
        "view_total_upscaling": at_ms / 3,
        "view_max_upscale_percentage": random_.random(),
        "video_source_bitrate": random_.choice([1, 2, 3]) * 1_000_000,
        "video_source_is_live": random_.random() < 0.5,
        "player_program_time": T0 + at_ms - random_.randint(0, 9_000),
        "video_playback_range": f'["0:{at_ms}"]',
        f"custom_{random_.randint(1, 20)}": random_.choice("pq"),
        "experiment_name": random_.choice("kl"),
        "request_start": T0 + at_ms,
        "request_response_start": T0 + at_ms + random_.randint(0, 50),
        "request_response_end": T0 + at_ms + random_.randint(50, 500),
        "request_bytes_loaded": random_.randint(0, 9_999),
        "player_error_code": random_.choice("12"),
        "player_error_business_exception": random_.random() < 0.5,
    }
    share = random_.random()
    return {name: value for name, value in said.items() if random_.random() < share}


def random_mux(random_: random.Random) -> list[Beacon]:
    at_ms, beacons = 0, []
    for number in range(random_.randint(2, 16)):
        at_ms += random_.randint(0, 3_000)
        event = "viewstart" if number == 0 else random_.choice(MUX_EVENTS)
        names = {"ad": MUX_ADS, "request": MUX_REQUESTS}.get(event, (event,))
        beacon = mux(number + 1, event, at_ms, playhead_ms=at_ms // 2, **mux_attrs(random_, at_ms))
        beacons.append(msgspec.structs.replace(beacon, source_event=random_.choice(names)))
    if random_.random() < 0.5:
        beacons.append(mux(len(beacons) + 1, "viewend", at_ms + 100, view_watch_time=at_ms))
    return beacons


def random_cmcd(random_: random.Random) -> list[Beacon]:
    at_ms, beacons = 0, []
    for number in range(random_.randint(2, 14)):
        at_ms += random_.randint(0, 3_000)
        event = (
            "viewstart" if number == 0 else random_.choice(["custom", "rendition", "error", "request", "ad", "playing"])
        )
        beacon = cmcd(number, event, at_ms, **cmcd_attrs(random_, at_ms, "s" if number == 0 else None))
        name = {"ad": random_.choice(["abs", "as", "ae", "sk", "abe"]), "playing": "ps"}.get(event, event)
        beacons.append(msgspec.structs.replace(beacon, source_event=name))
    return beacons


def cmcd_attrs(random_: random.Random, at_ms: int, sta: str | None) -> dict[str, Any]:
    """What a record may say, each with some chance; some players never report their state."""
    said: dict[str, Any] = {
        "sta": random_.choice("pkrawefqsd"),
        "e": random_.choice(["ps", "ce", "t"]),
        "br": [[at_ms + 1, "v"]],
        "pb": random_.randint(1, 3) * 1_000,
        "msd": random_.randint(1, 900),
        "bsa": at_ms // 2_000,
        "bsda": at_ms // 9,
        "ec": random_.choice("12"),
        "cen": "playhead-error:27",
        "cdn": random_.choice("xy"),
        "ltc": random_.randint(0, 5_000),
        "rc": random_.choice([200, 404]),
        "ttfb": random_.randint(0, 90),
        "ttlb": random_.randint(0, 900),
    }
    share = random_.random()
    kept = {name: value for name, value in said.items() if random_.random() < share}
    return kept if sta is None else kept | {"sta": sta}


def random_view(seed: int) -> list[Beacon]:
    """A view of random events with random counters and dimensions, mux or CMCD; of some views beacons are lost."""
    random_ = random.Random(seed)
    beacons = random_mux(random_) if random_.random() < 0.7 else random_cmcd(random_)
    lost = random_.choice([0.0, 0.0, 0.2])
    return [beacon for beacon in beacons if random_.random() >= lost] or beacons[:1]


def again(data: st.DataObject, beacons: Sequence[Beacon]) -> list[Beacon]:
    """Some of the beacons a second time; what is sent again travels at another speed."""
    repeated = data.draw(st.lists(st.sampled_from(beacons), max_size=5))
    return [msgspec.structs.replace(b, clock_offset_ms=data.draw(st.integers(1_000, 3_000))) for b in repeated]


@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_any_order_and_duplication_gives_the_same_row(seed: int, data: st.DataObject) -> None:
    beacons = random_view(seed)
    twice = again(data, beacons)
    shuffled = data.draw(st.permutations([*beacons, *twice]))
    assert row_of(shuffled, data.draw(pauses())) == row_of([*beacons, *twice])


@pytest.mark.parametrize("story", [captured.mux_watched, captured.mux_with_ads, captured.cmcd_stalled])
@given(data=st.data())
def test_any_order_and_duplication_of_a_real_view_gives_the_same_row(
    story: Callable[[], tuple[Beacon, ...]], data: st.DataObject
) -> None:
    beacons = story()
    twice = again(data, beacons)
    shuffled = data.draw(st.permutations([*beacons, *twice]))
    expected = row_of([*beacons, *twice])
    assert expected["beacon_count"] == len({beacon.seq for beacon in beacons})
    assert row_of(shuffled, data.draw(pauses())) == expected


@given(data=st.data())
def test_any_order_of_a_whole_view_with_a_hole_gives_the_same_row(data: st.DataObject) -> None:
    hole = data.draw(st.integers(2, 9))
    beacons = [beacon for beacon in watch() if beacon.seq != hole]
    shuffled = data.draw(st.permutations(beacons))
    assert row_of(shuffled) == row_of(beacons)
