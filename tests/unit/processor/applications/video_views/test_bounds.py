"""Of any input: no row of state or output is larger than its limit, nothing is rejected, and every beacon is counted."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.bounds import KEYS_MAX
from services.processor.engine.driver import Driver
from services.processor.engine.state.store_spec import ROW_BYTES_MAX
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.topics import RECORD_BYTES_MAX
from tests.unit.processor.applications.video_views.beacons import FAST_RULES, SKEW_MS, T0
from tests.unit.processor.applications.video_views.counted import assert_each_is_counted_once
from tests.unit.processor.applications.video_views.test_any_order import MUX_ADS, MUX_EVENTS

DAY_MS = 86_400_000
#: What takes most room: in MessagePack 4 bytes a character, in JSON 6.
TEXTS = ("\N{PLAYING CARD BACK}", "\x01", "x")
#: Names that the sources know, and one that none does.
NAMES: dict[str, tuple[str, ...]] = {
    "mux": (
        "video_title", "video_source_url", "page_url", "player_error_message", "player_error_context",
        "player_error_code", "video_cdn", "video_playback_range", "session_id", "viewer_user_id", "video_series",
        "experiment_name", *(f"custom_{number}" for number in range(1, 21)), "unheard_of",
    ),
    "cmcd": ("cid", "cdn", "h", "ec", "cen", "com.example-x"),
    "epas": ("contentId", "contentTitle", "contentUrl", "userId", "deviceModel", "message", "code", "category"),
    "native": (
        "video_title", "source_url", "page_url", "error_message", "error_context", "cdn", "experiment", "city",
        "source_host", "viewer_id", "device", "unheard_of",
    ),
}  # fmt: skip


def large_attrs(random_: random.Random, source: str) -> dict[str, Any]:
    """Texts, lists and maps far beyond what a row may hold."""
    # Texts are cut at 500 or 2,000 characters.
    chars = random_.choice([600, 600, 600, 2_100, 5_000])
    names = random_.sample(NAMES[source], random_.randint(1, 6))
    attrs: dict[str, Any] = {name: f"{random_.randint(0, 9)}" + random_.choice(TEXTS) * chars for name in names}
    if source == "native" and random_.random() < 0.5:
        attrs["custom"] = {f"{random_.random()}" * 20: random_.choice(TEXTS) * 600 for _ in range(30)}
    if random_.random() < 0.1:
        attrs[names[0]] = [attrs[names[0]]] * 5
    if source == "mux" and random_.random() < 0.1:
        attrs["video_playback_range"] = "[" + ",".join(f'"{n}:{n + 1}"' for n in range(2_000)) + "]"
    return attrs


def hostile(random_: random.Random) -> list[Beacon]:
    """Beacons of one key by one who knows the format: gaps without end, restarts, other contents, all with large texts."""
    source: Any = random_.choice(list(NAMES))
    patterns = [large_attrs(random_, source) for _ in range(6)]
    gap, restarts, contents = random_.choice([1, 2, 5]), random_.random() < 0.5, random_.random() < 0.5
    is_backwards = random_.random() < 0.3
    beacons = []
    for number in range(random_.choice([5, 40, 40, 300])):
        seq = number * gap + (source == "mux")
        at_ms = number * random_.choice([0, 1, 1_000])
        if restarts and source == "cmcd":
            seq = random_.choice([0, seq % 7, seq])
        attrs = patterns[number % 6] | ({"cid": f"{number}" * 600} if contents and number % 3 == 0 else {})
        attrs["sta"] = random_.choice("spkraef")
        event = "viewstart" if not number else random_.choice(MUX_EVENTS)
        beacons.append(
            Beacon(
                schema_version=1, source=source, customer_id="acme", view_id="v1", event=event,
                source_event=random_.choice(MUX_ADS) if event == "ad" else event, recv_time_ms=T0 + at_ms + SKEW_MS,
                client_time_ms=T0 + (-at_ms if is_backwards else at_ms), clock_offset_ms=SKEW_MS,
                seq=None if source in ("epas", "native") else seq, attrs=attrs,
            )
        )  # fmt: skip
    return beacons


def identity(beacon: Beacon) -> tuple[Any, ...]:
    """What makes two beacons of a view the same one."""
    if beacon.source == "mux":
        return (beacon.seq,)
    if beacon.source == "cmcd":
        return (beacon.seq, beacon.client_time_ms)
    content = (beacon.source_event, beacon.playhead_ms, beacon.attrs)
    return (beacon.client_time_ms, msgspec.json.encode(content, order="sorted"))


@pytest.mark.thorough
@given(seed=st.integers(0, 1 << 32))
@example(seed=280)  # A seek that begins and ends before anything else was reported.
def test_no_row_passes_its_limit_and_every_beacon_is_counted(seed: int) -> None:
    random_ = random.Random(seed)
    # What is larger no collector stores.
    encoded = [
        (beacon, value) for beacon in hostile(random_) if len(value := codec.BEACON.encode(beacon)) <= RECORD_BYTES_MAX
    ]
    random_.shuffle(encoded)
    beacons = [beacon for beacon, _ in encoded]
    driver = Driver(application(FAST_RULES, live_dimensions=("cdn", "video_id"), exports_protobuf=True))
    key = view_key("acme", "v1")
    records = [(topics.BEACONS, key, value, T0 + n) for n, (_, value) in enumerate(encoded)]
    driver.pipe_all(records, commit_every=50)
    driver.advance_to(T0 + len(beacons) + FAST_RULES.paused_ms + 5_000)
    largest = max((len(row) for _, row in driver.changelog if row is not None), default=0)
    assert largest < ROW_BYTES_MAX * 0.9
    assert max((len(output.value) for output in driver.outputs(topics.VIEWS)), default=0) < RECORD_BYTES_MAX * 0.9
    distinct = len({identity(beacon) for beacon in beacons})
    if distinct <= KEYS_MAX:
        assert_each_is_counted_once(driver, len(beacons), distinct)
