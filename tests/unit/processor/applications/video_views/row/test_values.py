"""Values of any kind: what is no measurement is not reported, and no value or clock makes a row that nobody can read."""

from collections.abc import Callable

import msgspec
import pytest

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.beacons import mux as mux_source
from services.processor.applications.video_views.beacons import native_epas
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.schemas.view import INTEGRAL_MAX, NUMBER_MAX
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    RULES,
    SKEW_MS,
    T0,
    Drive,
    cmcd,
    driver_of,
    mux,
    pipe,
    rows,
    watch,
)
from tests.unit.processor.applications.video_views.test_any_order import row_of
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed

DAY_MS = 86_400_000
BPS_MAX = 10_000_000_000


@pytest.mark.parametrize("nonsense", [-5, 1 << 62, 1 << 64, 1e300, "1e999", "nan", "-inf", "x", None, True, [], {}])
def test_numbers_that_are_no_measurement_never_stop_a_partition(drive: Drive, nonsense: object) -> None:
    driver = driver_of(drive)
    names = ("video_source_bitrate", "view_watch_time", "view_start", "player_width")
    pipe(driver, watch()[0])
    pipe(driver, mux(2, "playing", 10, **dict.fromkeys(names, nonsense)))
    pipe(driver, mux(3, "heartbeat", 10_000))
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    assert row.watch_ms >= 0
    assert row.bitrate_integral < 1 << 62


def native(seq: int, event: str, at_ms: int, **attrs: object) -> Beacon:
    return msgspec.structs.replace(timed("native", event, at_ms, **attrs), seq=seq)


def epas(seq: int, event: str, at_ms: int, **attrs: object) -> Beacon:
    return timed("epas", event, at_ms + seq, **attrs)


NO_MEASUREMENT = [None, -5, "", "soon", "nan", True, [], {}, [[None, None]]]


@pytest.mark.parametrize("nothing", NO_MEASUREMENT)
def test_what_is_no_measurement_is_not_reported(drive: Drive, nothing: object) -> None:
    """A startup of 0 ms would be the best there is."""
    counters = (
        "view_time_to_first_frame", "view_watch_time", "view_rebuffer_count", "player_startup_time", "page_load_time",
        "view_dropped_frame_count", "view_total_upscaling", "view_max_upscale_percentage", "video_source_duration",
        "player_width", "request_response_start",
    )  # fmt: skip
    driver = driver_of(drive)
    pipe(driver, watch()[0])
    pipe(driver, mux(2, "request", 10, request_start=T0, request_response_start=T0 + 40, player_width=640))
    pipe(driver, mux(3, "playing", 400, view_watch_time=400, page_load_time=90))
    pipe(driver, mux(4, "request", 500, **dict.fromkeys(counters, nothing)))
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    assert (row.startup_ms, row.player_startup_ms, row.dropped_frames, row.video_duration_ms) == (None,) * 4
    assert (row.upscale_integral, row.max_upscale, row.score_quality) == (None, None, None)
    # What was emitted before still stands.
    assert (row.watch_ms, row.page_load_ms, row.player_width, row.ttfb_sum_ms) == (400, 90, 640, 80)
    assert row.player_measured == ["page_load_ms", "view_start_ms", "watch_ms"]


@pytest.mark.parametrize("nothing", NO_MEASUREMENT)
def test_what_is_no_measurement_of_the_others_is_not_reported(drive: Drive, nothing: object) -> None:
    names = (
        "startup_ms", "player_startup_ms", "page_load_ms", "dropped_frames", "live_latency_ms", "video_duration_ms",
        "player_width", "asn", "request_ms", "request_ttfb_ms", "request_bytes",
    )  # fmt: skip
    driver = driver_of(drive)
    pipe(driver, native(1, "viewstart", 0, **dict.fromkeys(names, nothing)))
    pipe(driver, native(2, "playing", 700))
    pipe(driver, native(3, "request", 800, **dict.fromkeys(names, nothing)))
    for number, event in enumerate(("viewstart", "playing", "request")):
        fields = dict.fromkeys(("msd", "bsa", "bsda", "dfa", "ltc", "ttfb", "ttlb"), nothing)
        pipe(driver, cmcd(number, event, 700 * number, sta="p" if number else "s", **fields))
    driver.advance_to(T0 + HOUR_MS)
    measured = {
        name: getattr(row, name)
        for row in rows(driver)
        for name in ("startup_ms", "player_startup_ms", "page_load_ms", "dropped_frames", "live_latency_ms_avg",
                     "video_duration_ms", "player_width", "asn", "req_time_ms", "req_bytes", "ttfb_sum_ms")
    }  # fmt: skip
    assert measured.pop("startup_ms") == 700
    assert set(measured.values()) == {None}
    assert {tuple(row.player_measured) for row in rows(driver)} == {()}


#: What JSON, or CMCD's syntax, can write for a value.
ANYTHING = [
    None, True, 0, -1, 0.5, 1 << 60, "", "x", "x" * 3_000, [], [1], {}, {"a": 1},
    [["v", None]], [[5, "v"]], [["x", {"y": 1}]], [[[1], None]],
]  # fmt: skip


NAMES = {
    mux: {*mux_source.FIELDS, "request_start", "player_program_time", "player_live_edge_program_time", "player_error_code",
          "player_error_severity", "player_error_message", "player_error_business_exception"},
    cmcd: {"sta", "e", "cid", "h", "cdn", "st", "br", "pb", "msd", "bsa", "bsda", "bsd", "dfa", "ec", "cen", "ltc", "rc",
           "ttfb", "ttlb"},
    native: {*native_epas.NATIVE_FIELDS, "error_code", "error_message", "business_exception", "ad_event",
             "request_outcome", "request_ms"},
    epas: {"contentId", "contentTitle", "contentUrl", "userId", "deviceId", "deviceModel", "live", "duration", "bitrate",
           "width", "height", "code", "category", "message", "payload"},
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("make", NAMES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("event", ["viewstart", "request", "error", "ad"])
def test_no_value_of_any_attribute_is_rejected_or_makes_a_row_that_nobody_reads(
    make: Callable[..., Beacon], event: str
) -> None:
    """What the collector has answered with success must fold: where the fold raises, its beacon is in no row."""
    driver = Driver(application(RULES))
    view_ids = [f"{name}-{number}" for name in NAMES[make] for number in range(len(ANYTHING))]
    records = []
    for name in sorted(NAMES[make]):
        for number, value in enumerate(ANYTHING):
            view_id = f"{name}-{number}"
            for seq, what in enumerate(("viewstart", event, "playing"), make is not cmcd):
                attrs = {"sta": "s", name: value} if what == event else {"sta": "p"}
                beacon = msgspec.structs.replace(make(seq, what, 10 * seq, **attrs), view_id=view_id)
                key = view_key(beacon.customer_id, view_id)
                records.append((topics.BEACONS, key, codec.BEACON.encode(beacon), beacon.client_time_ms + SKEW_MS))
    driver.pipe_all(records, commit_every=100)
    driver.advance_to(T0 + HOUR_MS)
    assert driver.outputs(topics.REJECTED) == []
    # Reading them checks every type and bound.
    assert sorted(row.view_id for row in rows(driver)) == sorted(view_ids)


def test_a_players_clock_that_leaps_by_years_counts_a_day_at_the_most(drive: Drive) -> None:
    driver = driver_of(drive)
    for seq, event, at_ms in (
        (0, "viewstart", 0),
        (1, "playing", 5),
        (2, "heartbeat", 1 << 50),
        (3, "heartbeat", 1 << 51),
    ):
        sta = "s" if event == "viewstart" else "p"
        pipe(driver, cmcd(seq, event, at_ms, sta=sta, br=[[1 << 62, "v"]]), seq)
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    assert row.playing_ms <= 86_400_000
    assert row.bitrate_integral <= 86_400_000 * 10_000_000_000


@pytest.mark.parametrize("make", [mux, cmcd, native])
@pytest.mark.parametrize("clock_ms", [0, 1 << 53])
@pytest.mark.parametrize("leaps", [False, True])
def test_with_any_clock_of_a_player_the_row_is_within_its_bounds(
    drive: Drive, make: Callable[..., Beacon], clock_ms: int, leaps: bool
) -> None:
    """A row out of its bounds is read by nobody: the view would be lost."""

    def beacon_at(seq: int, event: str, sta: str, now_ms: int) -> Beacon:
        beacon = make(seq, event, 10 * seq, sta=sta)
        # As the collector makes it: receive time - client time.
        offset_ms = beacon.recv_time_ms - now_ms
        return msgspec.structs.replace(beacon, client_time_ms=now_ms, clock_offset_ms=offset_ms)

    driver = driver_of(drive)
    first = 0 if make is cmcd else 1
    story = [("viewstart", "s"), ("playing", "p"), ("seekstart", "k"), ("seekend", "p"), ("ended", "e")]
    for number, (event, sta) in enumerate(story):
        now_ms = T0 + number if leaps and number % 2 == 0 else clock_ms
        pipe(driver, beacon_at(first + number, event, sta, now_ms), number)
    driver.advance_to(T0 + HOUR_MS)
    # Reading it checks every bound.
    (row,) = rows(driver)
    assert row.beacon_count == len(story)
    assert max(row.startup_ms or 0, row.content_startup_ms or 0, row.max_seek_ms, row.seek_ms) <= 86_400_000


def in_one_post(*events: tuple[str, int]) -> list[Beacon]:
    """Native beacons without numbers that all give the highest bitrate, sent together at the last of their times."""
    sent_ms = events[-1][1]
    return [
        msgspec.structs.replace(
            timed("native", event, at_ms, bitrate_bps=BPS_MAX),
            recv_time_ms=T0 + sent_ms + SKEW_MS,
            sent_time_ms=T0 + sent_ms,
            clock_offset_ms=SKEW_MS,
        )
        for event, at_ms in events
    ]


@pytest.mark.parametrize("rhythm_ms", [10_000, 60_000])
def test_silences_of_days_at_the_highest_bitrate_leave_a_row_that_can_be_read(rhythm_ms: int) -> None:
    """Its sum of bitrates was below zero, since more was taken back than had been added."""
    days = [("rendition", DAY_MS), ("rendition", 2 * DAY_MS)]
    beats = [("heartbeat", 2 * DAY_MS + number * rhythm_ms) for number in range(1, 6)]
    row = row_of(in_one_post(("viewstart", 0), ("playing", 10), *days, *beats))
    # The heartbeats show that both days were gaps.
    assert (row["gap_ms"], row["gap_count"], row["playing_ms"]) == (2 * DAY_MS - 10, 2, 5 * rhythm_ms)
    assert (row["bitrate_integral"], row["bitrate_time_ms"]) == (BPS_MAX * 5 * rhythm_ms, 5 * rhythm_ms)
    assert row["avg_bitrate_bps"] == BPS_MAX


def test_a_sum_of_bitrates_that_is_too_large_for_a_row_is_the_largest_that_a_row_has() -> None:
    """No heartbeat shows a rhythm: days of silence count as playing."""
    days = [("rendition", number * DAY_MS) for number in range(1, 31)]
    row = row_of(in_one_post(("viewstart", 0), ("playing", 10), *days))
    assert (row["bitrate_integral"], row["bitrate_time_ms"]) == (INTEGRAL_MAX, 30 * DAY_MS - 10)
    assert row["avg_bitrate_bps"] == INTEGRAL_MAX // row["bitrate_time_ms"]
    # Heartbeats of a rhythm take back the silences that are kept: what is left is as large.
    beats = [("heartbeat", 30 * DAY_MS + 10_000 * number) for number in range(1, 6)]
    row = row_of(in_one_post(("viewstart", 0), ("playing", 10), *days, *beats))
    assert (row["bitrate_integral"], row["gap_count"]) == (INTEGRAL_MAX, 8)


@pytest.mark.parametrize("make", [mux, native])
def test_a_first_request_sent_in_another_age_is_a_gap_of_a_day(make: Callable[..., Beacon]) -> None:
    """Its row had a gap of 285 years, which nobody can read."""
    events = [("viewstart", 0), *(("heartbeat", 10_000 * number) for number in range(1, 6)), ("adbreakstart", 51_000)]
    story = [make(seq, event, at_ms) for seq, (event, at_ms) in enumerate((*events, ("playing", 60_000)), 1)]
    story[-2] = msgspec.structs.replace(
        story[-2], event="ad", source_event="adbreakstart", attrs={"ad_event": "adbreakstart"}
    )
    story.append(make(len(story) + 1, "viewend", 70_000))
    age_ms = 1 << 53
    for at, beacon in enumerate(story):
        sent_ms = beacon.client_time_ms if at else age_ms
        offset_ms = beacon.recv_time_ms - sent_ms
        story[at] = msgspec.structs.replace(beacon, view_id="v1", sent_time_ms=sent_ms, clock_offset_ms=offset_ms)
    row = row_of(story)
    assert (row["gap_ms"], row["gap_count"], row["clock_step_count"]) == (DAY_MS, 1, 1)
    assert row["view_end_ms"] == T0 + 70_000 + SKEW_MS
    if make is native:
        # All that is missing is taken out of what was measured meanwhile.
        assert (row["startup_ms"], row["content_startup_ms"], row["watch_ms"]) == (60_000, 51_000, 70_000)


@pytest.mark.parametrize("make", [mux, native])
def test_time_goes_on_behind_a_first_request_that_was_sent_in_another_age(make: Callable[..., Beacon]) -> None:
    """Its corrected time is beyond what a client may claim. No time passed there between beacons 30 s apart."""
    events = [("viewstart", 0), ("playing", 1_000), *(("heartbeat", 30_000 * number) for number in range(1, 21))]
    story = [
        make(seq, event, at_ms, bitrate_bps=1_000_000, video_source_bitrate=1_000_000)
        for seq, (event, at_ms) in enumerate((*events, ("viewend", 620_000)), 1)
    ]
    for at, beacon in enumerate(story):
        sent_ms = beacon.client_time_ms if at else 1 << 53
        offset_ms = beacon.recv_time_ms - sent_ms
        story[at] = msgspec.structs.replace(beacon, view_id="v1", sent_time_ms=sent_ms, clock_offset_ms=offset_ms)
    row = row_of(story)
    assert (row["bitrate_time_ms"], row["clock_step_count"], row["gap_count"]) == (619_000, 1, 1)
    assert row["view_end_ms"] == T0 + 620_000 + SKEW_MS


def test_a_slow_request_behind_a_playhead_of_years_counts_a_day_at_the_most() -> None:
    """The playhead was taken at its word where the request was slow."""
    years_ms = T0 - DAY_MS
    clocks = (("viewstart", 0, 0, 0), ("playing", 1_000, 1_000, 0), ("heartbeat", 500, years_ms + 5_000, years_ms))
    story = [
        msgspec.structs.replace(
            native(seq, event, at_ms, heartbeat_interval_ms=NUMBER_MAX),
            sent_time_ms=1,
            playhead_ms=playhead_ms,
            recv_time_ms=T0 + 1_000 * seq,
            clock_offset_ms=server_ms - at_ms,
        )
        for seq, (event, at_ms, server_ms, playhead_ms) in enumerate(clocks, 1)
    ]
    row = row_of(story)
    assert (row["watch_ms"], row["clock_step_count"]) == (1_000 + DAY_MS, 1)


def test_a_view_that_ends_in_another_age_by_several_clocks_can_be_read() -> None:
    """Its end was later than any row may say."""
    story = []
    for number, event in enumerate(("viewstart", "playing", *["heartbeat"] * 12)):
        at_ms = 6_000 * number
        # The first requests say that they were sent in 1970, the next two in the year 2255, all others in 1970 again.
        sent_ms = 1 << 53 if number in (2, 3, 4) else at_ms
        beacon = native(number + 1, event, at_ms)
        story.append(
            msgspec.structs.replace(
                beacon,
                client_time_ms=NUMBER_MAX - HOUR_MS + at_ms,
                sent_time_ms=sent_ms,
                clock_offset_ms=beacon.recv_time_ms - sent_ms,
            )
        )
    row = row_of(story)
    assert row["view_end_ms"] == 2 * NUMBER_MAX
    assert row["clock_step_count"] >= 1
