"""Native and EPAS views: no sequence numbers, so client times put their beacons in order."""

import random
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.video_views.view.order import by_time
from services.processor.applications.video_views.view.order.by_time import ByTime
from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, SKEW_MS, T0, Drive, driver_of, pipe, rows
from tests.unit.processor.applications.video_views.test_any_order import row_of


def timed(source: Literal["native", "epas"], event: str, at_ms: int, source_event: str = "", **attrs: object) -> Beacon:
    return Beacon(
        schema_version=1,
        source=source,
        customer_id="acme",
        view_id="n1",
        event=event,
        source_event=source_event or event,
        recv_time_ms=T0 + at_ms + SKEW_MS,
        client_time_ms=T0 + at_ms,
        clock_offset_ms=SKEW_MS + at_ms % 7,
        attrs=dict(attrs),
    )


def random_view(seed: int) -> list[Beacon]:
    random_ = random.Random(seed)
    source = random_.choice(["native", "epas"])
    beacons = [timed(source, "viewstart", 0)]
    at_ms = 0
    events = [
        "play",
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
    for number in range(random_.randint(1, 80 if random_.random() < 0.1 else 14)):
        at_ms += random_.choice([0, 0, 1, 500, 2_000])
        attrs: dict[str, Any] = {"number": number, "bitrate_bps": random_.choice([1, 2, 3]) * 1_000_000}
        attrs |= {"bitrate": attrs["bitrate_bps"] // 1000, "player_width": random_.choice([640, 1280])}
        attrs |= {"player_height": 720, "source_width": 1280, "source_height": 720, "cdn": random_.choice("ab")}
        beacons.append(timed(source, random_.choice(events), at_ms, **attrs))
    return beacons


@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_any_order_and_duplication_gives_the_same_row(seed: int, data: st.DataObject) -> None:
    beacons = random_view(seed)[:64]
    shuffled = data.draw(st.permutations(beacons))
    repeated = data.draw(st.lists(st.sampled_from(beacons), max_size=5))
    assert row_of([*shuffled, *repeated]) == row_of(beacons)


@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_a_long_view_is_the_same_when_its_beacons_are_a_little_out_of_order_and_come_again(
    seed: int, data: st.DataObject
) -> None:
    random_ = random.Random(seed)
    beacons = [timed("native", "viewstart", 0)]
    beacons += [
        timed("native", random_.choice(["playing", "pause", "heartbeat"]), 100 * number) for number in range(1, 34)
    ]
    late = sorted(range(len(beacons)), key=lambda at: at + random_.random() * 10)
    repeated = data.draw(st.lists(st.sampled_from(beacons), max_size=5))
    # Fewer steps are kept than otherwise, so that a view of fewer beacons is a long one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_time, "RECENT_STEPS_MAX", 16)
        assert row_of([*(beacons[at] for at in late), *repeated]) == row_of(beacons)


def numbered(*numbers: int | None, at_ms: int = 0) -> list[Beacon]:
    """A native view whose beacons have these numbers."""
    events = ["viewstart", *["heartbeat"] * (len(numbers) - 2), "ended"]
    return [
        msgspec.structs.replace(timed("native", event, at_ms + 1_000 * at), seq=number)
        for at, (event, number) in enumerate(zip(events, numbers, strict=True))
    ]


@pytest.mark.parametrize(
    ("numbers", "lost"),
    [
        ((1, 2, 3, 4), 0),
        ((1, 2, 5, 6), 2),
        # The first beacons of a view may be lost, too.
        ((3, 4, 5), 2),
        # What is no number of a view says nothing: none at all, one from 0, a client that counts milliseconds.
        ((None, None, None), 0),
        ((0, 1, 2), 0),
        ((1, 1_790_000_000_000, 2), 0),
        # A client that numbers two beacons alike has lost none.
        ((1, 1, 2), 0),
    ],
)
def test_numbers_of_a_native_view_that_never_came_are_reported(numbers: tuple[int | None, ...], lost: int) -> None:
    row = row_of(numbered(*numbers))
    assert (row["seq_gaps"], row["complete"], row["beacon_count"]) == (lost, not lost, len(numbers))


@given(st.data())
def test_what_a_native_view_lost_is_the_same_in_any_order(data: st.DataObject) -> None:
    whole = numbered(*range(1, 12))
    kept = data.draw(st.lists(st.sampled_from(whole), min_size=1, unique_by=lambda beacon: beacon.seq))
    again = data.draw(st.lists(st.sampled_from(kept), max_size=5))
    row = row_of([*kept, *again])
    largest = max(beacon.seq or 0 for beacon in kept)
    assert row.get("seq_gaps", largest - len(kept)) == largest - len(kept)


def test_every_number_that_a_native_view_lost_counts_also_beyond_those_that_are_kept() -> None:
    """345 were reported: those that had come and were not kept counted as lost."""
    story = numbered(*range(1, 602, 2))
    row = row_of(story)
    assert (row["seq_gaps"], row["beacon_count"], row["late_count"]) == (300, 301, 0)
    # In any order they come, and where some come again.
    mixed = sorted(story, key=lambda beacon: ((beacon.seq or 0) % 20 > 10, beacon.seq))
    assert row_of([*mixed, *mixed[-100:]])["seq_gaps"] == 300


def test_a_number_of_those_that_are_not_kept_counts_until_as_many_have_come_as_never_did() -> None:
    lost = numbered(*range(1, 602))
    story, late = lost[::2], lost[1:42:2]
    row = row_of([*story, *late])
    assert (row["seq_gaps"], row["late_count"], row["complete"]) == (279, 21, False)
    # A copy that is not known as one any more is late, once, and is taken for one of those that never came.
    long = numbered(*range(1, 1_202, 2))
    row = row_of([*long, *long[:45] * 3])
    assert (row["seq_gaps"], row["late_count"], row["beacon_count"]) == (600 - 45, 45, 601 + 45)
    # A copy of what is known is none.
    assert row_of([*long, *long[-200:]])["seq_gaps"] == 600


@given(st.sets(st.integers(1, 24), min_size=1), st.data())
def test_the_numbers_that_are_not_kept_are_counted_in_any_order(numbers: set[int], data: st.DataObject) -> None:
    order = ByTime()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_time, "NUMBER_RANGES_MAX", 3)
        for number in data.draw(st.permutations(sorted(numbers))):
            order.take_number(number)
    assert order.missing(0) == max(numbers) - len(numbers)
    assert len(order.numbers) <= 3


def test_what_a_native_view_lost_shows_with_large_texts_and_when_a_beacon_comes_too_late() -> None:
    story = numbered(*range(1, 200))
    large = [msgspec.structs.replace(beacon, attrs={"video_title": "🂠" * 500}) for beacon in story]
    lossy = row_of([*large[:150], *large[151:]])
    assert (lossy["truncated"], lossy["seq_gaps"], lossy["late_count"]) == (False, 1, 0)
    late = row_of([*story[:10], *story[12:], story[10]])
    assert (late["late_count"], late["seq_gaps"]) == (1, 1)


def test_a_beacon_without_a_number_puts_the_view_in_order_by_time_for_good(drive: Drive) -> None:
    begin, newer, older = (
        msgspec.structs.replace(timed("native", "heartbeat", at_ms, video_title=title), seq=seq)
        for seq, at_ms, title in ((1, 0, "of 0 s"), (2, 6_000, "of 6 s"), (3, 3_000, "of 3 s"))
    )
    driver = driver_of(drive)
    without = timed("native", "viewend", 9_000)
    for beacon in (msgspec.structs.replace(begin, event="viewstart"), newer, older, without):
        pipe(driver, beacon, 20_000)
    driver.advance_to(T0 + HOUR_MS)
    assert [row.video_title for row in rows(driver)] == ["of 6 s"]


def test_a_native_view_may_begin_with_play_and_waits_from_then_on() -> None:
    left = row_of([timed("native", "play", 0), timed("native", "viewend", 3_000)])
    assert (left["watch_ms"], left["ebvs"], left["score_success"]) == (3_000, True, 50.0)
    events = [("play", 0), ("playing", 700), ("pause", 1_700), ("play", 9_000), ("playing", 9_100), ("viewend", 9_600)]
    seen = row_of([timed("native", event, at_ms) for event, at_ms in events])
    assert (seen["startup_ms"], seen["watch_ms"], seen["playing_ms"]) == (700, 2_200, 1_500)
    assert [event.event for event in seen["events"]] == ["viewstart", "playing", "pause", "playing", "ended"]


def test_who_seeks_while_paused_does_not_watch() -> None:
    """Watch time is from play to pause (Mux, understand metric definitions): a paused viewer may scrub for long."""
    story = [
        timed("native", "viewstart", 0), timed("native", "playing", 500), timed("native", "pause", 1_500),
        timed("native", "seekstart", 2_000), timed("native", "seekend", 62_000), timed("native", "playing", 63_000),
        timed("native", "seekstart", 64_000), timed("native", "seekend", 64_200), timed("native", "viewend", 65_000),
    ]  # fmt: skip
    row = row_of(story)
    assert (row["watch_ms"], row["playing_ms"], row["seek_count"], row["seek_ms"]) == (3_500, 2_800, 2, 60_200)


def test_a_seek_within_a_stall_ends_no_stall() -> None:
    story = [
        timed("native", "viewstart", 0),
        timed("native", "playing", 500),
        timed("native", "rebufferstart", 2_000),
        timed("native", "seekstart", 3_000),
        timed("native", "seekend", 3_400),
        timed("native", "playing", 5_000),
        timed("native", "rebufferstart", 7_000),
        timed("native", "viewend", 7_500),
    ]
    row = row_of(story)
    assert (row["rebuffer_count"], row["rebuffer_ms"], row["seek_count"], row["seek_ms"]) == (2, 3_100, 1, 400)


def test_a_native_view_is_measured_from_its_events(drive: Drive) -> None:
    driver = driver_of(drive)
    sizes = {"player_width": 1920, "player_height": 1080, "source_width": 960, "source_height": 540}
    story = [
        timed("native", "viewstart", 0, video_id="film", stream_type="live", custom={"plan": "gold"}, country="DE"),
        timed("native", "ad", 100, ad_event="adbreakstart"),
        timed("native", "ad", 100, ad_event="adplay"),
        timed("native", "ad", 300, ad_event="adplaying"),
        timed("native", "ad", 5_300, ad_event="adended"),
        timed("native", "ad", 5_400, ad_event="adbreakend"),
        timed("native", "playing", 6_000, bitrate_bps=2_000_000, cdn="x", **sizes),
        timed(
            "native",
            "request",
            6_500,
            request_outcome="completed",
            request_ms=400,
            request_ttfb_ms=50,
            request_bytes=1_000,
        ),
        timed("native", "request", 7_500, request_outcome="failed"),
        timed("native", "heartbeat", 8_000, live_latency_ms=3_000, dropped_frames=4, cdn="y"),
        timed("native", "heartbeat", 9_000, live_latency_ms=5_000, cdn="x"),
        timed("native", "rebufferstart", 10_000),
        timed("native", "rebufferend", 11_000),
        timed("native", "ended", 12_000),
        timed("native", "viewend", 12_500),
    ]
    for beacon in story:
        pipe(driver, beacon)
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    assert (row.video_id, row.stream_type, row.custom, row.country) == ("film", "live", {"plan": "gold"}, "DE")
    assert (row.startup_ms, row.content_startup_ms) == (300, 700)
    assert (row.playing_ms, row.rebuffer_count, row.rebuffer_ms, row.end_reason) == (5_000, 1, 1_000, "clean")
    assert (row.ad_breaks, row.ad_preroll_breaks, row.ad_attempts, row.ad_impressions) == (1, 1, 1, 1)
    assert (row.ad_playing_ms, row.ad_preroll_playing_ms) == (5_000, 5_000)
    assert (row.upscale_integral, row.scale_time_ms, row.max_upscale, row.max_downscale) == (5_000.0, 5_000, 1.0, 0.0)
    assert (row.req_count, row.req_failed, row.req_canceled, row.req_bytes) == (2, 1, 0, 1_000)
    assert (row.req_time_ms, row.ttfb_sum_ms, row.ttfb_max_ms) == (400, 50, 50)
    assert (row.live_latency_ms_avg, row.dropped_frames, row.cdn_trace) == (4_000, 4, ["x", "y", "x"])
    assert row.seq_gaps == 0
    assert [(event.at_ms, event.event) for event in row.events] == [
        (0, "viewstart"),
        (100, "adbreakstart"),
        (100, "adplay"),
        (300, "adplaying"),
        (5_300, "adended"),
        (5_400, "adbreakend"),
        (6_000, "playing"),
        (10_000, "rebufferstart"),
        (11_000, "playing"),
        (12_000, "ended"),
    ]


def test_an_epas_view_is_measured_from_its_events(drive: Drive) -> None:
    driver = driver_of(drive)
    story = [
        timed("epas", "viewstart", 0, "init", duration=60_000),
        timed("epas", "custom", 50, "metadata", payload={"contentId": "clip", "live": False, "contentTitle": "A clip"}),
        timed("epas", "playing", 900, payload={}),
        timed("epas", "rendition", 1_000, "bitrate_changed", payload={"bitrate": 3_000, "width": 1280, "height": 720}),
        timed("epas", "error", 5_000, payload={"category": "NETWORK", "code": "404", "message": "gone"}),
    ]
    for beacon in story:
        pipe(driver, beacon)
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    assert (row.video_id, row.video_title, row.stream_type, row.startup_ms) == ("clip", "A clip", "vod", 900)
    assert row.video_duration_ms == 60_000
    assert (row.bitrate_integral, row.bitrate_time_ms) == (3_000_000 * 4_000, 4_000)
    assert (row.playback_failed, row.error_code, row.error_context, row.end_reason) == (True, "404", "NETWORK", "error")
