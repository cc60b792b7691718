"""Whether and when a view played, where the beacon of its first frame was lost (docs/view.md)."""

from typing import Any

import msgspec
import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import MINUTE_MS, Drive, cmcd, folded_fast, mux
from tests.unit.processor.applications.video_views.counted import newest
from tests.unit.processor.applications.video_views.row.test_definitions import row_of
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed


def epas(event: str, at_ms: int, playhead_ms: int | None = None, **attrs: Any) -> Beacon:
    return msgspec.structs.replace(timed("epas", event, at_ms, **attrs), playhead_ms=playhead_ms)


def advertising(seq: int, at_ms: int, name: str) -> Beacon:
    return msgspec.structs.replace(mux(seq, "ad", at_ms), source_event=name)


PLAYED: dict[str, list[Beacon]] = {
    "mux: the beacon of the first frame was lost, its counter with it": [
        mux(1, "viewstart", 0),
        mux(3, "heartbeat", 30_000, view_playing_time_ms_cumulative=29_000),
        mux(4, "heartbeat", 570_000, view_playing_time_ms_cumulative=569_000),
    ],
    "cmcd: the next t says that it plays": [
        cmcd(0, "viewstart", 0, sta="s"),
        cmcd(2, "heartbeat", 30_000, sta="p"),
        cmcd(3, "heartbeat", 570_000, sta="p"),
    ],
    "epas: a stall shows that it played, by the playhead": [
        epas("viewstart", 0, 0),
        epas("rebufferstart", 30_000, 29_000),
        epas("rebufferend", 31_000, 29_000),
    ],
    "epas: the only playhead, not further than the time since the beginning": [
        epas("viewstart", 0),
        epas("viewend", 30_000, 20_000),
    ],
    "native: three times as fast": [
        msgspec.structs.replace(timed("native", "viewstart", 0), playhead_ms=0),
        msgspec.structs.replace(timed("native", "heartbeat", 30_000), playhead_ms=88_000),
    ],
}


@pytest.mark.parametrize("story", PLAYED.values(), ids=list(PLAYED))
def test_a_view_that_played_has_started_though_its_first_frame_was_lost(drive: Drive, story: list[Beacon]) -> None:
    row = row_of(drive, story)
    assert (row.ebvs, row.startup_failed, row.startup_ms, row.content_startup_ms) == (False, False, None, None)
    assert (row.startup_unknown, row.startup_ms_max) == ("first_frame_lost", 30_000)
    assert (row.score_success, row.score_startup) == (100, None)


@pytest.mark.parametrize("playhead_ms", [0, 200, 600_000])
def test_a_single_playhead_at_the_start_or_at_a_start_position_shows_no_playing(drive: Drive, playhead_ms: int) -> None:
    row = row_of(drive, [epas("viewstart", 0), epas("heartbeat", 30_000, playhead_ms)])
    assert (row.ebvs, row.startup_unknown, row.playing_ms) == (True, "not_started", 0)


def test_stalls_that_a_cmcd_client_counted_in_the_play_show_that_it_played(drive: Drive) -> None:
    first = [cmcd(0, "viewstart", 0, sta="s"), cmcd(2, "rebufferstart", 30_000, sta="r", bsa=[[2, "v"]])]
    row = row_of(drive, first)
    assert (row.ebvs, row.rebuffer_count, row.startup_unknown, row.startup_ms_max) == (
        False,
        2,
        "first_frame_lost",
        30_000,
    )
    # Those of the session before the play are none of it.
    second = [
        cmcd(0, "viewstart", 60_000, sta="s", bsa=[[2, "v"]]),
        cmcd(1, "heartbeat", 90_000, sta="s", bsa=[[2, "v"]]),
    ]
    driver = folded_fast([*first, *second], ())
    assert [(row.ebvs, row.rebuffer_count) for row in newest(driver).values()] == [(False, 2), (True, 0)]


def test_a_playhead_that_advances_shows_playing_after_a_counter_has_shown_that_it_played(drive: Drive) -> None:
    story = [
        mux(1, "viewstart", 0, playhead_ms=0, video_source_bitrate=1_000_000),
        mux(3, "rendition", 1_000, playhead_ms=0, video_source_bitrate=2_000_000, view_playing_time_ms_cumulative=50),
        mux(4, "heartbeat", 11_000, playhead_ms=9_000, view_playing_time_ms_cumulative=9_050),
        mux(5, "viewend", 13_000, playhead_ms=11_000, view_playing_time_ms_cumulative=11_050),
    ]
    row = row_of(drive, story)
    # Of the time between the third and the fourth beacon as much has played as the playhead has advanced.
    assert (row.bitrate_time_ms, row.playing_difference_ms, row.startup_ms_max) == (11_000, 50, 1_000)
    assert [event.event for event in row.events] == ["viewstart", "rendition", "playing", "ended"]


def test_the_contents_first_frame_is_lost_if_the_content_has_played_before_its_beacon(drive: Drive) -> None:
    row = row_of(drive, [
        mux(1, "viewstart", 0, view_time_to_first_frame=900),
        advertising(2, 900, "adplaying"),
        advertising(3, 4_000, "adbreakend"),
        # `playing` was lost: the stall's end shows that the content has played.
        mux(5, "rebufferstart", 8_000),
        mux(6, "rebufferend", 9_000),
        advertising(7, 20_000, "adbreakstart"),
        advertising(8, 30_000, "adbreakend"),
        mux(9, "playing", 30_100),
    ])  # fmt: skip
    assert (row.startup_ms, row.content_startup_ms, row.ad_midroll_breaks) == (900, None, 1)


def test_the_contents_startup_time_holds_no_gap(drive: Drive) -> None:
    row = row_of(drive, [
        mux(1, "viewstart", 0, view_time_to_first_frame=500),
        advertising(2, 100, "adbreakstart"),
        advertising(3, 500, "adplaying"),
        mux(4, "custom", 2_500),
        # The device slept for 10 minutes.
        advertising(5, 603_500, "adended"),
        advertising(6, 604_000, "adbreakend"),
        mux(7, "playing", 604_300),
    ])  # fmt: skip
    assert (row.gap_ms, row.content_startup_ms) == (601_000, 400)


def test_an_ad_break_after_the_player_was_closed_is_no_postroll(drive: Drive) -> None:
    story = [mux(1, "viewstart", 0), mux(2, "playing", 500), mux(3, "viewend", 9_000)]
    row = row_of(drive, [*story, advertising(4, 9_500, "adbreakstart")])
    assert (row.ad_midroll_breaks, row.ad_postroll_breaks) == (1, 0)
    row = row_of(
        drive, [*story[:2], mux(3, "ended", 8_000), mux(4, "viewend", 9_000), advertising(5, 9_500, "adbreakstart")]
    )
    assert (row.ad_midroll_breaks, row.ad_postroll_breaks) == (0, 1)


def test_an_ad_break_after_the_end_is_a_postroll_though_nothing_shows_that_the_content_played(drive: Drive) -> None:
    row = row_of(drive, [mux(1, "viewstart", 0), mux(2, "ended", 8_000), advertising(3, 9_000, "adbreakstart")])
    assert (row.ad_preroll_breaks, row.ad_postroll_breaks) == (0, 1)


def test_a_request_that_was_made_while_the_video_played_bounds_the_startup_time(drive: Drive) -> None:
    story = [
        cmcd(0, "viewstart", 0, sta="s"),
        cmcd(2, "request", 5_000, sta="p", rc=200),
        cmcd(3, "heartbeat", 30_000, sta="p"),
    ]
    row = row_of(drive, story)
    assert (row.startup_ms, row.startup_unknown, row.startup_ms_max, row.ebvs) == (
        None,
        "first_frame_lost",
        5_000,
        False,
    )
    # A later first frame is not the first one.
    row = row_of(drive, [*story[:2], cmcd(3, "playing", 30_000, sta="p")])
    assert (row.startup_ms, row.startup_ms_max) == (None, 5_000)
    # The state in a record of a request may be that of its end.
    row = row_of(drive, [story[0], cmcd(2, "request", 5_000, sta="p", ttlb=1_000), *story[2:]])
    assert row.startup_ms_max == 6_000


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        ([cmcd(0, "viewstart", 0, sta="s"), cmcd(1, "playing", 700, sta="p")], (700, None)),
        # dash.js waits before its first frame, and nothing was lost.
        (
            [
                cmcd(0, "viewstart", 0, sta="s"),
                cmcd(1, "rebufferstart", 300, sta="r"),
                cmcd(2, "playing", 700, sta="p"),
            ],
            (700, None),
        ),
        # What was lost may have been the first frame, and the stall one of playback.
        (
            [
                cmcd(0, "viewstart", 0, sta="s"),
                cmcd(2, "rebufferstart", 300, sta="r"),
                cmcd(3, "playing", 700, sta="p"),
            ],
            (None, "first_frame_lost"),
        ),
        # A request's record was lost: no state lies between.
        ([cmcd(0, "viewstart", 0, sta="s"), cmcd(2, "playing", 700, sta="p")], (700, None)),
        ([cmcd(1, "playing", 700, sta="p"), cmcd(2, "heartbeat", 900, sta="p")], (None, "start_lost")),
        ([timed("epas", "playing", 700), timed("epas", "heartbeat", 900)], (None, "start_lost")),
        ([cmcd(0, "viewstart", 0, sta="s"), cmcd(1, "heartbeat", 700, sta="s")], (None, "not_started")),
        ([timed("native", "viewstart", 0), timed("native", "viewend", 700)], (None, "not_started")),
        ([timed("native", "viewstart", 0, startup_ms=450), timed("native", "heartbeat", 700)], (450, None)),
    ],
)
def test_a_startup_time_is_measured_or_has_a_reason_why_not(
    drive: Drive, story: list[Beacon], expected: tuple[int | None, str | None]
) -> None:
    row = row_of(drive, story)
    assert (row.startup_ms, row.startup_unknown) == expected
    assert row.ebvs == (expected[1] == "not_started")


def test_a_page_that_played_before_the_sdk_had_its_session_has_played(drive: Drive) -> None:
    story = [
        epas("viewstart", 0, 0),
        epas("custom", 100, 0),
        epas("rebufferstart", 4_500, 3_900),
        epas("error", 9_000, 3_900, category="networkError", code="fragLoadError"),
        epas("viewend", 9_500, 3_900),
    ]
    row = row_of(drive, story)
    assert (row.playback_failed, row.startup_failed, row.ebvs, row.end_reason) == (True, False, False, "clean")
    assert (row.startup_ms, row.startup_unknown, row.startup_ms_max) == (None, "first_frame_lost", 4_500)
    # Of the time up to the stall as much has played as the playhead has advanced.
    assert (row.playing_ms, row.watch_ms, row.rebuffer_count, row.rebuffer_ms) == (3_900, 9_000, 1, 4_500)
    assert [(one.at_ms, one.event) for one in row.events][:2] == [(0, "viewstart"), (600, "playing")]


@pytest.mark.parametrize(
    ("playheads", "has_played"),
    [
        ((0, 249), False),
        ((0, 250), True),
        # To the live edge, or where the viewer left off: a jump.
        ((0, 3_600_000), False),
        ((3_600_000, 3_601_000), True),
        ((None, 3_600_000), False),
        ((5_000, 4_000), False),
    ],
)
def test_a_playhead_that_advances_by_itself_shows_playing(
    drive: Drive, playheads: tuple[int | None, int], has_played: bool
) -> None:
    story = [epas("viewstart", 0, playheads[0]), epas("heartbeat", 1_000, playheads[1])]
    assert row_of(drive, story).ebvs is not has_played


def test_a_playhead_that_was_sought_shows_nothing(drive: Drive) -> None:
    story = [
        epas("viewstart", 0, 0),
        epas("seekstart", 1_000, 900),
        epas("seekend", 1_500, 900),
        epas("heartbeat", 2_000, 900),
    ]
    assert row_of(drive, story).ebvs


def test_buffering_before_the_first_frame_is_over_without_a_first_frame(drive: Drive) -> None:
    story = [
        epas("viewstart", 0, 0), epas("rebufferstart", 100, 0), epas("rebufferend", 600, 0), epas("playing", 900, 0),
        epas("viewend", 5 * MINUTE_MS, 290_000),
    ]  # fmt: skip
    row = row_of(drive, story)
    assert (row.startup_ms, row.rebuffer_count, row.watch_ms) == (900, 0, 5 * MINUTE_MS)


def test_a_viewer_who_paused_before_the_first_frame_and_plays_again_waits_for_the_start(drive: Drive) -> None:
    story = [
        timed("native", "viewstart", 0), timed("native", "pause", 1_000), timed("native", "play", 5_000),
        timed("native", "playing", 7_000), timed("native", "viewend", 10_000),
    ]  # fmt: skip
    row = row_of(drive, story)
    assert (row.watch_ms, row.playing_ms) == (6_000, 3_000)
    assert [one.event for one in row.events] == ["viewstart", "pause", "viewstart", "playing", "ended"]
    row = row_of(
        drive, [mux(1, "viewstart", 0), mux(2, "pause", 1_000), mux(3, "play", 5_000), mux(4, "viewend", 8_000)]
    )
    assert [one.event for one in row.events] == ["viewstart", "pause", "viewstart", "ended"]


def test_a_gap_before_a_request_that_shows_that_it_played_is_no_start_up_time(drive: Drive) -> None:
    row = row_of(
        drive,
        [
            cmcd(0, "heartbeat", 0),
            cmcd(1, "viewstart", 1_000, sta="s"),
            cmcd(2, "request", 1_600_000, sta="p", ttlb=500),
            cmcd(3, "heartbeat", 1_601_000, sta="p"),
        ],
    )
    assert (row.gap_ms, row.startup_unknown, row.startup_ms_max) == (1_599_500, "first_frame_lost", 0)
