"""Stories of views: what players send, in event time, and the rows that must come of it."""

from collections.abc import Callable

import msgspec
import pytest

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.beacons import mux as mux_source
from services.processor.applications.video_views.beacons import native_epas
from services.processor.applications.video_views.bounds import TEXT_CHARS_MAX
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    RULES,
    SKEW_MS,
    T0,
    Drive,
    cmcd,
    driver_of,
    live,
    mux,
    pipe,
    rows,
    watch,
)
from tests.unit.processor.applications.video_views.test_by_time import told as told_by_time


def test_a_whole_mux_view_becomes_one_row_a_minute_after_its_clean_end(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
    driver.advance_to(T0 + SKEW_MS + 13_900 + RULES.clean_ms - 1)
    assert rows(driver) == []
    driver.advance_to(T0 + SKEW_MS + 13_900 + RULES.clean_ms)
    (row,) = rows(driver)
    assert (row.revision, row.end_reason, row.view_dropped, row.complete) == (1, "clean", False, True)
    assert (row.startup_ms, row.watch_ms, row.playing_ms) == (400, 13_900, 11_000)
    assert (row.rebuffer_count, row.rebuffer_ms) == (1, 2_000)
    assert (row.seek_count, row.seek_ms, row.max_seek_ms) == (1, 500, 500)
    # Playing at 1 Mbps for 5 s and 1 s, at 3 Mbps for 1 s, 3 s and 1 s.
    assert row.bitrate_integral == 1_000_000 * 6_000 + 3_000_000 * 5_000
    assert row.bitrate_time_ms == 11_000
    assert (row.rendition_up, row.rendition_down) == (1, 0)
    assert (row.view_start_ms, row.view_end_ms) == (T0 + SKEW_MS, T0 + 13_900 + SKEW_MS)
    assert (row.video_id, row.stream_type, row.player_name) == ("film", "vod", "main")
    assert (row.beacon_count, row.duplicate_count, row.seq_gaps) == (10, 0, 0)
    assert row.day == (T0 + SKEW_MS) // 86_400_000


def test_a_whole_cmcd_view_is_integrated_from_its_states(drive: Drive) -> None:
    driver = driver_of(drive)
    story = [
        cmcd(0, "viewstart", 0, sta="s", cid="clip", st="ll"),
        cmcd(1, "playing", 700, sta="p", br=[[5_000, "v"], [128, "a"]]),
        cmcd(2, "rebufferstart", 4_700, sta="r"),
        cmcd(3, "playing", 5_700, sta="p"),
        cmcd(4, "rendition", 6_700, sta="p", br=[[2_000, "v"]]),
        cmcd(5, "request", 5_000, sta="p", br=[[9_000, "v"]]),
        cmcd(6, "pause", 7_700, sta="a"),
        cmcd(7, "playing", 9_700, sta="p"),
        cmcd(8, "ended", 10_700, sta="e"),
    ]
    for beacon in story:
        pipe(driver, beacon, beacon.client_time_ms - T0 + SKEW_MS)
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    assert (row.startup_ms, row.playing_ms, row.watch_ms) == (700, 7_000, 8_700)
    assert (row.rebuffer_count, row.rebuffer_ms) == (1, 1_000)
    assert row.bitrate_integral == 5_000_000 * 5_000 + 2_000_000 * 2_000
    assert (row.rendition_up, row.rendition_down) == (0, 1)
    assert (row.stream_type, row.video_id, row.end_reason) == ("live", "clip", "clean")


def test_a_silent_view_finishes_as_dropped_after_five_minutes(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch()[:6]:
        pipe(driver, beacon)
    driver.advance_to(T0 + SKEW_MS + 8_400 + RULES.silent_ms - 1)
    assert rows(driver) == []
    driver.advance_to(T0 + SKEW_MS + 8_400 + RULES.silent_ms)
    (row,) = rows(driver)
    assert (row.end_reason, row.view_dropped, row.complete) == ("timeout", True, False)


def test_a_paused_view_may_be_silent_for_an_hour(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in [*watch()[:3], mux(4, "pause", 1_000)]:
        pipe(driver, beacon)
    driver.advance_to(T0 + SKEW_MS + 1_000 + RULES.paused_ms - 1)
    assert rows(driver) == []
    driver.advance_to(T0 + SKEW_MS + 1_000 + RULES.paused_ms)
    assert len(rows(driver)) == 1


def test_a_beacon_after_the_finish_makes_a_revision_and_never_a_second_view(drive: Drive) -> None:
    driver = driver_of(drive)
    *most, last = watch()
    for beacon in most:
        pipe(driver, beacon)
    driver.advance_to(T0 + 10 * MINUTE_MS)
    assert [row.revision for row in rows(driver)] == [1]
    pipe(driver, last, 20 * MINUTE_MS)
    driver.advance_to(T0 + 30 * MINUTE_MS)
    first, second = rows(driver)
    assert (second.revision, second.end_reason, second.watch_ms) == (2, "clean", 13_900)
    assert (first.day, first.view_id) == (second.day, second.view_id)


def test_a_beacon_after_the_lateness_window_is_late_and_kept(drive: Drive) -> None:
    driver = driver_of(drive)
    *most, last = watch()
    for beacon in most:
        pipe(driver, beacon)
    driver.advance_to(T0 + 10 * MINUTE_MS)
    pipe(driver, last, 10 * MINUTE_MS + RULES.lateness_ms)
    driver.advance_to(T0 + 3 * HOUR_MS)
    assert [row.revision for row in rows(driver)] == [1]
    assert len(driver.outputs(topics.LATE)) == 1
    assert sum(bucket.late for bucket in live(driver)) == 1


def test_the_lateness_window_starts_anew_with_each_revision(drive: Drive) -> None:
    driver = driver_of(drive)
    *most, ninth, tenth = watch()
    for beacon in most:
        pipe(driver, beacon)
    driver.advance_to(T0 + 10 * MINUTE_MS)
    pipe(driver, ninth, 50 * MINUTE_MS)
    pipe(driver, tenth, 105 * MINUTE_MS)
    driver.advance_to(T0 + 4 * HOUR_MS)
    assert [row.revision for row in rows(driver)] == [1, 2, 3]
    assert driver.outputs(topics.LATE) == []


def test_a_closed_view_is_forgotten_after_a_day(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
    driver.advance_to(T0 + 3 * HOUR_MS)
    driver.advance_to(T0 + 30 * HOUR_MS)
    pipe(driver, watch()[0], 30 * HOUR_MS)
    assert driver.outputs(topics.LATE) == []


def test_a_duplicate_changes_nothing_but_its_count(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
        pipe(driver, beacon)
    driver.advance_to(T0 + 10 * MINUTE_MS)
    (row,) = rows(driver)
    assert (row.beacon_count, row.duplicate_count, row.watch_ms) == (10, 10, 13_900)


def test_a_duplicate_after_the_finish_makes_no_revision(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
    driver.advance_to(T0 + 10 * MINUTE_MS)
    pipe(driver, watch()[4], 11 * MINUTE_MS)
    driver.advance_to(T0 + HOUR_MS)
    assert len(rows(driver)) == 1


def test_a_page_that_never_plays_is_no_view_and_its_beacons_are_counted(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, mux(1, "custom", 0))
    pipe(driver, mux(2, "custom", 100))
    pipe(driver, mux(2, "custom", 100))
    driver.advance_to(T0 + 2 * HOUR_MS)
    assert rows(driver) == []
    assert sum(bucket.dropped for bucket in live(driver)) == 2
    assert sum(bucket.views_started for bucket in live(driver)) == 0


def test_a_view_whose_start_comes_after_it_was_given_up_is_whole_all_the_same(drive: Drive) -> None:
    driver = driver_of(drive)
    first, *others = watch()
    for beacon in others[:4]:
        pipe(driver, beacon)
    driver.advance_to(T0 + 70 * MINUTE_MS)
    assert sum(bucket.dropped for bucket in live(driver)) == 4
    for beacon in [first, *others[4:]]:
        pipe(driver, beacon, 80 * MINUTE_MS)
    driver.advance_to(T0 + 4 * HOUR_MS)
    (row,) = rows(driver)
    assert (row.beacon_count, row.complete, row.watch_ms) == (10, True, 13_900)
    assert sum(bucket.dropped for bucket in live(driver)) == 0
    assert live(driver)[-1].open_now == 0


def test_a_gap_that_never_closes_is_counted_and_the_rest_still_tells(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        if beacon.seq != 5:
            pipe(driver, beacon)
    driver.advance_to(T0 + 10 * MINUTE_MS)
    (row,) = rows(driver)
    assert (row.seq_gaps, row.complete, row.beacon_count) == (1, False, 9)
    assert (row.watch_ms, row.end_reason) == (13_900, "clean")


def test_a_gap_is_given_up_when_too_many_wait_and_what_then_comes_is_counted_as_late(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, watch()[0])
    for seq in range(3, 3 + 257):
        pipe(driver, mux(seq, "heartbeat", seq * 10, view_watch_time=seq))
    pipe(driver, mux(2, "playing", 20), 10_000)
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    assert (row.watch_ms, row.late_count, row.seq_gaps, row.complete) == (259, 1, 0, False)


@pytest.mark.parametrize(
    ("attrs", "failed", "startup_failed", "business"),
    [
        ({"player_error_code": "27"}, True, True, False),
        ({"player_error_code": "27", "player_error_business_exception": True}, False, False, True),
    ],
)
def test_a_fatal_error_before_the_first_frame(
    drive: Drive, attrs: dict[str, object], failed: bool, startup_failed: bool, business: bool
) -> None:
    driver = driver_of(drive)
    pipe(driver, watch()[0])
    pipe(driver, mux(2, "error", 3_000, **attrs))
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    assert (row.playback_failed, row.startup_failed, row.business_exception) == (failed, startup_failed, business)
    # Who was kept out by a business exception has not left: it is neither a failure nor an exit, and has no score.
    assert (row.ebvs, row.error_code, row.end_reason) == (False, "27", "error")
    assert (row.score_success, row.score_view, row.spi_good) == ((0.0, 0.0, False) if failed else (None, None, None))


def test_a_view_left_before_its_first_frame_is_an_exit_before_start(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, watch()[0])
    pipe(driver, mux(2, "viewend", 3_000, view_watch_time=3_000))
    driver.advance_to(T0 + HOUR_MS)
    (row,) = rows(driver)
    assert (row.ebvs, row.playback_failed, row.startup_ms) == (True, False, None)


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
    return msgspec.structs.replace(told_by_time("native", event, at_ms, **attrs), seq=seq)


def epas(seq: int, event: str, at_ms: int, **attrs: object) -> Beacon:
    return told_by_time("epas", event, at_ms + seq, **attrs)


NO_MEASUREMENT = [None, -5, "", "soon", "nan", True, [], {}, [[None, None]]]


@pytest.mark.parametrize("nothing", NO_MEASUREMENT)
def test_what_is_no_measurement_is_not_told(drive: Drive, nothing: object) -> None:
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
    # What was told before still stands.
    assert (row.watch_ms, row.page_load_ms, row.player_width, row.ttfb_sum_ms) == (400, 90, 640, 80)
    assert row.player_measured == ["page_load_ms", "view_start_ms", "watch_ms"]


@pytest.mark.parametrize("nothing", NO_MEASUREMENT)
def test_what_is_no_measurement_of_the_others_is_not_told(drive: Drive, nothing: object) -> None:
    names = (
        "startup_ms", "player_startup_ms", "page_load_ms", "dropped_frames", "live_latency_ms", "video_duration_ms",
        "player_width", "asn", "request_ms", "request_ttfb_ms", "request_bytes",
    )  # fmt: skip
    driver = driver_of(drive)
    pipe(driver, native(1, "viewstart", 0, **dict.fromkeys(names, nothing)))
    pipe(driver, native(2, "playing", 700))
    pipe(driver, native(3, "request", 800, **dict.fromkeys(names, nothing)))
    for number, event in enumerate(("viewstart", "playing", "request")):
        told = dict.fromkeys(("msd", "bsa", "bsda", "dfa", "ltc", "ttfb", "ttlb"), nothing)
        pipe(driver, cmcd(number, event, 700 * number, sta="p" if number else "s", **told))
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


#: Whatever JSON, or CMCD's syntax, can write for a value.
ANYTHING = [
    None, True, 0, -1, 0.5, 1 << 60, "", "x", "x" * 3_000, [], [1], {}, {"a": 1},
    [["v", None]], [[5, "v"]], [["x", {"y": 1}]], [[[1], None]],
]  # fmt: skip
NAMES = {
    mux: {*mux_source.FIELDS, "request_start", "player_program_time", "player_live_edge_program_time", "player_error_code",
          "player_error_severity", "player_error_message", "player_error_business_exception"},
    cmcd: {"sta", "e", "cid", "h", "cdn", "st", "br", "pb", "msd", "bsa", "bsda", "bsd", "dfa", "ec", "cen", "ltc", "rc",
           "ttfb", "ttlb"},
    native: {*native_epas.NATIVE_TEXTS, *native_epas.NATIVE_NUMBERS, *native_epas.NATIVE_COUNTERS,
             *native_epas.NATIVE_SIZES, "autoplay", "stream_type", "custom", "bitrate_bps", "error_code",
             "error_message", "business_exception", "ad_event", "request_outcome", "request_ms", "live_latency_ms"},
    epas: {"contentId", "contentTitle", "contentUrl", "userId", "deviceId", "deviceModel", "live", "duration", "bitrate",
           "width", "height", "code", "category", "message", "payload"},
}  # fmt: skip


@pytest.mark.parametrize("make", NAMES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("event", ["viewstart", "request", "error", "ad"])
def test_no_value_of_any_attribute_is_set_aside_or_makes_a_row_that_nobody_reads(
    make: Callable[..., Beacon], event: str
) -> None:
    """What the collector has answered with success must fold: where the fold raises, its beacon is in no row."""
    driver = Driver(application(RULES))
    view_ids = [f"{name}-{number}" for name in NAMES[make] for number in range(len(ANYTHING))]
    for name in sorted(NAMES[make]):
        for number, value in enumerate(ANYTHING):
            view_id = f"{name}-{number}"
            for seq, what in enumerate(("viewstart", event, "playing"), make is not cmcd):
                attrs = {"sta": "s", name: value} if what == event else {"sta": "p"}
                pipe(driver, msgspec.structs.replace(make(seq, what, 10 * seq, **attrs), view_id=view_id))
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
def test_whatever_a_players_clock_says_the_row_is_within_its_bounds(
    drive: Drive, make: Callable[..., Beacon], clock_ms: int, leaps: bool
) -> None:
    """A row out of its bounds is read by nobody: the view would be lost."""

    def told(seq: int, event: str, sta: str, now_ms: int) -> Beacon:
        beacon = make(seq, event, 10 * seq, sta=sta)
        # As the collector makes it: receive time - client time.
        offset_ms = beacon.recv_time_ms - now_ms
        return msgspec.structs.replace(beacon, client_time_ms=now_ms, clock_offset_ms=offset_ms)

    driver = driver_of(drive)
    first = 0 if make is cmcd else 1
    story = [("viewstart", "s"), ("playing", "p"), ("seekstart", "k"), ("seekend", "p"), ("ended", "e")]
    for number, (event, sta) in enumerate(story):
        now_ms = T0 + number if leaps and number % 2 == 0 else clock_ms
        pipe(driver, told(first + number, event, sta, now_ms), number)
    driver.advance_to(T0 + HOUR_MS)
    # Reading it checks every bound.
    (row,) = rows(driver)
    assert row.beacon_count == len(story)
    assert max(row.startup_ms or 0, row.content_startup_ms or 0, row.max_seek_ms, row.seek_ms) <= 86_400_000


def test_two_customers_may_use_one_view_id(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
        pipe(driver, msgspec.structs.replace(beacon, customer_id="globex"))
    driver.advance_to(T0 + HOUR_MS)
    assert sorted((row.customer_id, row.beacon_count) for row in rows(driver)) == [("acme", 10), ("globex", 10)]


def test_two_kinds_of_client_under_one_id_make_one_row_and_none_is_lost_unseen(drive: Drive) -> None:
    driver = driver_of(drive)
    of_cmcd = [cmcd(0, "viewstart", 0, view_id="v1", sta="s"), cmcd(1, "playing", 500, view_id="v1", sta="p")]
    for beacon in watch()[:5]:
        pipe(driver, beacon)
    for beacon in of_cmcd:
        pipe(driver, beacon, 20_000)
    for beacon in watch()[5:]:
        pipe(driver, beacon, 21_000)
    pipe(driver, msgspec.structs.replace(of_cmcd[0], view_id="s1"), 22_000)
    pipe(driver, msgspec.structs.replace(watch()[0], view_id="s1"), 23_000)
    driver.advance_to(T0 + HOUR_MS)
    assert [(row.view_id, row.source, row.beacon_count, row.seq_gaps) for row in rows(driver)] == [
        ("v1", "mux", 10, 0),
        ("s1", "cmcd", 1, 0),
    ]
    assert len(driver.outputs(topics.REJECTED)) == 3


def test_a_beacon_of_an_unknown_source_or_without_a_number_is_set_aside(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, msgspec.structs.replace(watch()[0], source="other"))
    pipe(driver, msgspec.structs.replace(watch()[0], seq=None))
    assert len(driver.outputs(topics.REJECTED)) == 2


def test_a_view_that_cannot_be_finished_leaves_nothing_behind(drive: Drive) -> None:
    driver = driver_of(drive)
    # What is not text cannot be a row's id: it can be folded, not finished.
    for one in (mux(1, "viewstart", 0, video_title="a title"), mux(2, "playing", 500)):
        driver.pipe(topics.BEACONS, b"acme:\xff", codec.BEACON.encode(one), at_ms=T0 + SKEW_MS)
    driver.advance_to(T0 + HOUR_MS)
    assert sum(driver.rows.values()) == 0
    origins = {dict(output.headers)["origin"] for output in driver.outputs(topics.REJECTED)}
    assert origins == {b"video_views/0/store views", b"video_views/0/store dimensions"}
    assert [bucket.open_now for bucket in live(driver)][-1] == 0
    assert max(bucket.open_now for bucket in live(driver)) == 1


def full_texts(text: str) -> dict[str, str]:
    """Texts of a mux beacon that take more than a view may in the store."""
    names = ("video_source_url", "page_url", "player_error_message", "player_error_context")
    return dict.fromkeys(names, text * 2000) | {f"custom_{number}": text * 500 for number in range(1, 21)}


def test_a_view_that_grows_too_large_is_truncated_and_goes_on_counting(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, mux(1, "viewstart", 0, video_title="t"))
    pipe(driver, mux(2, "playing", 500))
    for seq in range(3, 6):
        pipe(driver, mux(seq, "error", seq * 1_000, **full_texts("\N{PLAYING CARD BACK}")))
    # From here on texts stay as they are; the rest goes on, with and without a gap.
    for seq in (*range(6, 30), *range(31, 61)):
        pipe(
            driver,
            mux(seq, "heartbeat", seq * 1_000, view_watch_time=seq * 1_000, video_title="of later", custom_1="x"),
        )
    for known in (2, 50, 59):
        pipe(driver, mux(known, "heartbeat", known * 1_000), 300_000)
    pipe(driver, mux(61, "viewend", 61_000, view_watch_time=61_000, view_rebuffer_count=2), 300_001)
    driver.advance_to(T0 + 2 * HOUR_MS)
    (row,) = rows(driver)
    assert (row.truncated, row.complete, row.end_reason) == (True, False, "clean")
    assert (row.beacon_count, row.duplicate_count, row.seq_gaps, row.late_count) == (60, 3, 1, 0)
    assert (row.watch_ms, row.rebuffer_count, row.video_title) == (61_000, 2, "t")
    assert row.custom["custom_1"] == "\N{PLAYING CARD BACK}" * TEXT_CHARS_MAX


def test_a_truncated_view_still_takes_a_beacon_in_its_place(drive: Drive) -> None:
    driver = driver_of(drive)
    long, short = (
        ("source_url", "page_url", "error_message", "error_context"),
        ("video_title", "viewer_id", "experiment"),
    )
    texts = dict.fromkeys(long, "\N{PLAYING CARD BACK}" * 2_000) | dict.fromkeys(short, "\N{PLAYING CARD BACK}" * 500)
    pipe(driver, told_by_time("native", "viewstart", 0, city="Bonn"))
    for at_ms in range(1_000, 6_000, 1_000):
        pipe(driver, told_by_time("native", "error", at_ms, **texts))
    pipe(driver, told_by_time("native", "playing", 10_000, video_title="of later"))
    pipe(driver, told_by_time("native", "heartbeat", 30_000))
    pipe(driver, told_by_time("native", "pause", 20_000), 31_000)
    driver.advance_to(T0 + 2 * HOUR_MS)
    row = rows(driver)[-1]
    assert (row.truncated, row.playing_ms, row.late_count, row.beacon_count) == (True, 10_000, 0, 9)
    assert (row.video_title, row.city) == (texts["video_title"], "Bonn")


def test_a_view_whose_gap_holds_back_too_much_is_not_truncated(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, mux(1, "viewstart", 0))
    for seq in range(3, 203):
        pipe(driver, mux(seq, "heartbeat", seq * 100, video_title=f"{seq}" * 500, view_watch_time=seq * 100))
    driver.advance_to(T0 + 2 * HOUR_MS)
    (row,) = rows(driver)
    assert (row.truncated, row.beacon_count, row.seq_gaps, row.watch_ms) == (False, 201, 1, 20_200)


def test_a_view_whose_large_titles_replace_each_other_is_not_truncated_its_titles_are_cut(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, mux(1, "viewstart", 0))
    for seq in range(2, 20):
        pipe(driver, mux(seq, "heartbeat", seq * 100, video_title=f"{seq % 10}" * 30_000))
    driver.advance_to(T0 + 2 * HOUR_MS)
    (row,) = rows(driver)
    assert (row.truncated, row.beacon_count, row.video_title) == (False, 19, "9" * TEXT_CHARS_MAX)
