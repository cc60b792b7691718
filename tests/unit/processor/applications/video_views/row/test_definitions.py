"""Worked examples of the row's figures, from their published definitions. The source of each stands with its test.

Mux: "Understand metric definitions" and the metrics' own pages of its public guides. CTA: CTA-5004-B (CMCD version 2).
"""

from typing import Any

import msgspec
import pytest

from services.processor.engine.driver import Driver
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.applications.video_views import captured
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    SKEW_MS,
    T0,
    Drive,
    cmcd,
    driver_of,
    live,
    mux,
    pipe,
    rows,
)
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed


def row_of(drive: Drive, story: Any) -> View:
    driver = driver_of(drive)
    for number, beacon in enumerate(story):
        pipe(driver, beacon, 20_000 + number)
    driver.advance_to(T0 + 2 * HOUR_MS)
    (row,) = rows(driver)
    return row


def ad(beacon: Beacon, name: str) -> Beacon:
    return msgspec.structs.replace(beacon, event="ad", source_event=name)


#: What the player's own integration counted, or what the story did, in `captured.mux_with_ads`: field, value, how far off.
REAL_VIEW: list[tuple[str, Any, int]] = [
    # Startup: the wish to play to the first frame, which was the pre-roll's; the content's without the break.
    ("startup_ms", 478, 0),
    ("content_startup_ms", 461, 0),
    ("player_startup_ms", 214, 0),
    ("page_load_ms", 224, 0),
    ("aggregate_startup_ms", 1_019, 0),
    # Rebuffering: 2.5 s of a frozen playhead; over a watch time of 19 s.
    ("rebuffer_count", 1, 0),
    ("rebuffer_ms", 2_563, 0),
    ("watch_ms", 19_024, 0),
    ("seek_count", 1, 0),
    ("seek_ms", 710, 0),
    # Upscaling: 1920x1080 of 1280x720 for 2.4 s of playback, then of 1920x1080.
    ("max_upscale", 0.5, 0),
    ("upscale_integral", 1_200.0, 0),
    ("max_downscale", 0.0, 0),
    ("downscale_integral", 0.0, 0),
    ("scale_time_ms", 8_900, 0),
    ("playback_ranges", [[0, 6_100], [16_150, 20_600]], 0),
    ("rendition_up", 1, 0),
    ("rendition_down", 0, 0),
    # Requests: 100, 200 and 300 kB in 190 ms each, first bytes after 40, 50 and 60 ms; one failed, one was cancelled.
    ("req_count", 5, 0),
    ("req_failed", 1, 0),
    ("req_canceled", 1, 0),
    ("req_bytes", 600_000, 0),
    ("req_time_ms", 570, 0),
    ("ttfb_sum_ms", 150, 0),
    ("ttfb_max_ms", 60, 0),
    # Live: what was shown was six seconds old, by the same clock.
    ("live_latency_ms_avg", 6_000, 100),
    # Ads: two of the pre-roll, of which one failed; a mid-roll that was paused in between; a post-roll.
    ("ad_breaks", 3, 0),
    ("ad_preroll_breaks", 1, 0),
    ("ad_midroll_breaks", 1, 0),
    ("ad_postroll_breaks", 1, 0),
    ("ad_attempts", 4, 0),
    ("ad_impressions", 3, 0),
    ("ad_errors", 1, 0),
    ("ad_playing_ms", 4_112, 0),
    ("ad_preroll_playing_ms", 2_001, 0),
    # The player's counters against our integration of its states. It notes a stall a second late: that second it has played.
    ("watch_difference_ms", 0, 150),
    ("playing_difference_ms", 1_000, 50),
    ("rebuffer_difference_ms", 0, 0),
    ("rebuffer_count_difference", 0, 0),
    ("cdn_trace", ["cdn-a", "cdn-b"], 0),
    ("experiment", "variant-b", 0),
    ("custom", {"custom_1": "gold", "custom_12": "x"}, 0),
    ("sub_property", "site", 0),
    ("end_reason", "clean", 0),
    ("complete", True, 0),
]


@pytest.mark.parametrize(("field", "value", "off"), REAL_VIEW, ids=[field for field, _, _ in REAL_VIEW])
def test_a_real_view_with_ads_is_measured_as_its_player_did(field: str, value: Any, off: int) -> None:
    found = getattr(row_of(Driver, captured.mux_with_ads()), field)
    assert found == (pytest.approx(value, abs=off) if off else value)


def test_requests_that_report_only_what_changed_are_counted_whole(drive: Drive) -> None:
    # Mux, request throughput = bits / time, request latency = mean TTFB. The client sends what changed since the last.
    first = {"request_start": 1_000, "request_response_start": 1_040, "request_response_end": 1_300}
    second = {"request_start": 2_000, "request_response_start": 2_060, "request_response_end": 2_500}
    story = [
        mux(1, "viewstart", 0),
        msgspec.structs.replace(
            mux(2, "request", 1_300, request_bytes_loaded=50_000, **first), source_event="requestcompleted"
        ),
        # The same number of bytes: not sent again.
        msgspec.structs.replace(mux(3, "request", 2_500, **second), source_event="requestcompleted"),
    ]
    row = row_of(drive, story)
    assert (row.req_count, row.req_bytes, row.req_time_ms) == (2, 100_000, 800)
    assert (row.ttfb_sum_ms, row.ttfb_max_ms) == (100, 60)


@pytest.mark.parametrize(
    ("view_count", "counter", "aggregate_ms"),
    [(1, None, 100 + 200 + 400), (2, None, None), (1, 950, 950)],
    ids=["of a page's first view", "no other", "the player's own"],
)
def test_aggregate_startup(drive: Drive, view_count: int, counter: int | None, aggregate_ms: int | None) -> None:
    # Mux, aggregate startup time: page load + player startup + video startup, of the first view of a page.
    from_the_counter = {} if counter is None else {"view_aggregate_startup_time": counter}
    story = [
        mux(1, "viewstart", 0, page_load_time=100, player_startup_time=200, player_view_count=view_count),
        mux(2, "playing", 400, view_time_to_first_frame=400, **from_the_counter),
    ]
    assert row_of(drive, story).aggregate_startup_ms == aggregate_ms


@pytest.mark.parametrize(
    ("player", "source", "up", "down"),
    [
        ((1920, 1080), (1280, 720), 0.5, 0.0),
        ((640, 360), (1280, 720), 0.0, 0.5),
        ((1280, 720), (1280, 720), 0.0, 0.0),
        # The lesser of the two ratios: the picture is as large as fits.
        ((1920, 720), (1280, 720), 0.0, 0.0),
        ((3840, 1080), (1280, 720), 0.5, 0.0),
    ],
)
def test_scaling(drive: Drive, player: tuple[int, int], source: tuple[int, int], up: float, down: float) -> None:
    # Mux, upscale percentage: max(0, min(player width / source width, player height / source height) - 1), by playing time.
    sizes = dict(
        zip(("player_width", "player_height", "source_width", "source_height"), (*player, *source), strict=True)
    )
    story = [
        timed("native", "viewstart", 0, **sizes),
        timed("native", "playing", 1_000),
        timed("native", "pause", 5_000),
        timed("native", "viewend", 9_000),
    ]
    row = row_of(drive, story)
    assert (row.max_upscale, row.max_downscale) == (pytest.approx(up), pytest.approx(down))
    assert (row.upscale_integral, row.downscale_integral) == (pytest.approx(up * 4_000), pytest.approx(down * 4_000))
    assert row.scale_time_ms == 4_000


def shown(at_ms: int, behind_ms: int, edge_behind_ms: int | None = None) -> dict[str, int]:
    attrs = {"player_program_time": T0 + at_ms - behind_ms}
    return attrs if edge_behind_ms is None else attrs | {"player_live_edge_program_time": T0 + at_ms - edge_behind_ms}


def test_live_latency_is_the_mean_by_the_servers_clock_near_the_edge(drive: Drive) -> None:
    # Mux, live stream latency: server time - program time at the playhead; not of who is over 5 min behind the edge.
    story = [
        mux(1, "viewstart", 0, video_source_is_live=True),
        mux(2, "playing", 1_000, **shown(1_000, 5_000, 3_000)),
        mux(3, "heartbeat", 11_000, **shown(11_000, 7_000)),
        mux(4, "heartbeat", 21_000, **shown(21_000, 400_000, 5_000)),
        # The last beacon repeats what was last known.
        mux(5, "viewend", 900_000, **shown(11_000, 7_000)),
    ]
    assert row_of(drive, story).live_latency_ms_avg == 6_000 + SKEW_MS


def test_what_is_not_live_has_no_live_latency(drive: Drive) -> None:
    story = [mux(1, "viewstart", 0, video_source_is_live=False), mux(2, "playing", 1_000, **shown(1_000, 5_000))]
    assert row_of(drive, story).live_latency_ms_avg is None


def test_a_mean_live_latency_below_0_is_an_error_of_a_clock_and_stored_as_0(drive: Drive) -> None:
    story = [mux(1, "viewstart", 0, video_source_is_live=True), mux(2, "playing", 1_000, **shown(1_000, -9_000))]
    assert row_of(drive, story).live_latency_ms_avg == 0
    # The mean, and not each measurement.
    story.append(mux(3, "heartbeat", 2_000, **shown(2_000, 8_000)))
    assert row_of(drive, story).live_latency_ms_avg == SKEW_MS - 500


def test_request_latency_is_the_time_to_the_first_byte_of_requests_that_were_answered(drive: Drive) -> None:
    def asked(seq: int, name: str, first_ms: int, last_ms: int) -> Beacon:
        times = {"request_start": T0, "request_response_start": T0 + first_ms, "request_response_end": T0 + last_ms}
        return msgspec.structs.replace(mux(seq, "request", 100 * seq, **times), source_event=name)

    row = row_of(drive, [
        mux(1, "viewstart", 0),
        asked(2, "requestcompleted", 40, 400),
        asked(3, "requestfailed", 70, 70),
        asked(4, "requestcompleted", -30, 400),
        asked(5, "requestcompleted", 100_000_000, 100_000_001),
    ])  # fmt: skip
    assert (row.req_count, row.req_failed) == (4, 1)
    # Never below 0, and at most a day.
    assert (row.ttfb_sum_ms, row.ttfb_max_ms) == (40 + 86_400_000, 86_400_000)


def test_live_latency_of_cmcd_is_reported(drive: Drive) -> None:
    # CTA, ltc: the time between a frame's encoding and its showing, ms.
    story = [
        cmcd(0, "viewstart", 0, sta="s", st="l"),
        cmcd(1, "playing", 500, sta="p", ltc=2_000),
        cmcd(2, "heartbeat", 900, sta="p", ltc=4_000),
    ]
    assert row_of(drive, story).live_latency_ms_avg == 3_000


def test_a_view_that_rebuffers_to_its_end_for_five_minutes_ended_for_that_reason(drive: Drive) -> None:
    # Mux: a player gives up after five minutes of rebuffering in all, and ends the view.
    def ends(at_ms: int) -> View:
        start = [mux(1, "viewstart", 0), mux(2, "playing", 400), mux(3, "rebufferstart", 1_000)]
        return row_of(drive, [*start, mux(4, "viewend", 1_000 + at_ms, view_rebuffer_duration=at_ms)])

    assert [(ends(at).end_reason, ends(at).view_dropped) for at in (5 * MINUTE_MS - 1, 5 * MINUTE_MS)] == [
        ("clean", False),
        ("long_rebuffer", True),
    ]


@pytest.mark.parametrize(
    ("reported_ranges", "ranges"),
    [
        ('["0:2900","5000:6000"]', [[0, 2_900], [5_000, 6_000]]),
        ("[]", []),
        ("nonsense", []),
        ('["6:5"]', []),
        ('["1:2:3", "4:5"]', [[4, 5]]),
        (str([f"{n}:{n + 1}" for n in range(0, 400, 2)]).replace("'", '"'), [[n, n + 1] for n in range(0, 200, 2)]),
    ],
)
def test_playback_ranges(drive: Drive, reported_ranges: str, ranges: list[list[int]]) -> None:
    story = [mux(1, "viewstart", 0), mux(2, "heartbeat", 10_000, video_playback_range=reported_ranges)]
    assert row_of(drive, story).playback_ranges == ranges


def test_counters_that_disagree_with_the_states_are_reported(drive: Drive) -> None:
    story = [
        mux(1, "viewstart", 0),
        mux(2, "playing", 1_000, view_time_to_first_frame=1_000),
        mux(3, "rebufferstart", 5_000, view_rebuffer_count=3),
        mux(4, "rebufferend", 6_000, view_rebuffer_duration=1_500),
        mux(5, "pause", 8_000, view_watch_time=9_000, view_playing_time_ms_cumulative=6_500),
    ]
    row = row_of(drive, story)
    # Playing 4 s and 2 s; watched from the wish to the pause; once rebuffering, for 1 s.
    assert (row.watch_difference_ms, row.playing_difference_ms) == (1_000, 500)
    assert (row.rebuffer_difference_ms, row.rebuffer_count_difference) == (500, 2)
    assert row.player_measured == ["playing_ms", "rebuffer_count", "rebuffer_ms", "startup_ms", "watch_ms"]


def test_stalls_that_a_player_reports_one_by_one_count_where_nothing_else_reports_any(drive: Drive) -> None:
    # CTA-5004-B: `bsd`, the duration of the last buffer starvation, once for each; `bsa`, `bsda` their count and sum.
    one_by_one = [
        cmcd(0, "viewstart", 0, sta="s"),
        cmcd(1, "playing", 500, sta="p"),
        cmcd(2, "heartbeat", 5_000, sta="p", bsd=[[800, "v"]]),
        cmcd(3, "heartbeat", 9_000, sta="p", bsd=[[1_200, None]]),
    ]
    row = row_of(drive, one_by_one)
    assert (row.rebuffer_count, row.rebuffer_ms, row.player_measured) == (2, 2_000, ["rebuffer_count", "rebuffer_ms"])
    by_states = [*one_by_one, cmcd(4, "rebufferstart", 10_000, sta="r"), cmcd(5, "playing", 11_000, sta="p")]
    row = row_of(drive, by_states)
    assert (row.rebuffer_count, row.rebuffer_ms, row.player_measured) == (1, 1_000, [])
    row = row_of(drive, [*one_by_one, cmcd(4, "heartbeat", 10_000, sta="p", bsa=[[3, None]], bsda=[[2_500, None]])])
    assert (row.rebuffer_count, row.rebuffer_ms) == (3, 2_500)


def test_what_only_states_report_names_no_measure_of_the_player(drive: Drive) -> None:
    row = row_of(drive, [cmcd(0, "viewstart", 0, sta="s"), cmcd(1, "playing", 300, sta="p")])
    assert (row.startup_ms, row.player_measured, row.rebuffer_difference_ms) == (300, [], None)
    row = row_of(drive, [cmcd(0, "viewstart", 0, sta="s"), cmcd(1, "playing", 300, sta="p", msd=250)])
    assert (row.startup_ms, row.player_measured) == (250, ["startup_ms"])


def test_a_view_that_pauses_beyond_its_timeout_and_goes_on_is_one_row_with_a_higher_revision(drive: Drive) -> None:
    driver = driver_of(drive)
    before = [mux(1, "viewstart", 0), mux(2, "playing", 400), mux(3, "pause", 5_400, view_watch_time=5_400)]
    for beacon in before:
        pipe(driver, beacon)
    driver.advance_to(T0 + HOUR_MS + MINUTE_MS)
    resumed_ms = HOUR_MS + 30 * MINUTE_MS
    for beacon in [
        mux(4, "playing", resumed_ms, view_watch_time=5_400),
        mux(5, "viewend", resumed_ms + 4_600, view_watch_time=10_000),
    ]:
        pipe(driver, beacon)
    driver.advance_to(T0 + 4 * HOUR_MS)
    found = [(row.view_id, row.revision, row.end_reason, row.watch_ms, row.beacon_count) for row in rows(driver)]
    assert found == [("v1", 1, "timeout", 5_400, 3), ("v1", 2, "clean", 10_000, 5)]
    buckets = live(driver)
    assert [
        sum(getattr(one, name) for one in buckets) for name in ("views_started", "views_finished", "views_revised")
    ] == [
        1,
        1,
        1,
    ]
    assert buckets[-1].open_now == 0


@pytest.mark.parametrize("source", ["cmcd", "native"])
def test_a_seek_that_never_ends_counts_as_the_longest(drive: Drive, source: str) -> None:
    story = [
        (0, "viewstart", "s"), (500, "playing", "p"), (10_000, "seekstart", "k"), (10_400, "playing", "p"),
        (20_000, "seekstart", "k"), (29_000, "heartbeat", "k"),
    ]  # fmt: skip
    if source == "cmcd":
        beacons = [cmcd(seq, event, at_ms, sta=sta) for seq, (at_ms, event, sta) in enumerate(story)]
    else:
        beacons = [timed("native", event, at_ms) for at_ms, event, _ in story]
    row = row_of(drive, beacons)
    assert (row.seek_count, row.seek_ms, row.max_seek_ms) == (2, 9_400, 9_000)
