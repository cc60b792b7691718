"""The truth of stories written by hand, worked out on paper."""

from typing import Any

import pytest

from loadtest.clients import cmcd, mux
from loadtest.expected.truth import SimulatedBeacon, _ends_in_error, row
from loadtest.story import Moment, Story
from tests.unit.loadtest.stories import EVENTFUL, story


def all_beacons(view: Story) -> list[SimulatedBeacon]:
    if view.player.source == "mux":
        return mux.beacons(view, 1_000_000, "localhost:8080")
    return cmcd.beacons(view, 1_000_000)


def truth_of(view: Story, until_ms: int | None = None) -> dict[str, Any]:
    delivered = [b for b in all_beacons(view) if until_ms is None or b.at_ms <= until_ms]
    result = row(view, delivered)
    assert result is not None
    return result


def holds(result: dict[str, Any], **expected: object) -> None:
    assert {name: result[name] for name in expected} == expected


def test_a_view_watched_to_its_end_holds_every_measure() -> None:
    holds(
        truth_of(story(*EVENTFUL)),
        end_reason="clean",
        view_dropped=False,
        complete=True,
        startup_ms=500,
        # 500 starting, 3000 + 2000 + 1000 + 2000 + 12000 playing, 2000 rebuffering, 200 seeking
        watch_ms=22_700,
        playing_ms=20_000,
        rebuffer_count=1,
        rebuffer_ms=2_000,
        seek_count=1,
        seek_ms=200,
        # 60 s is where the seek went, and 14 s were played from there
        max_playhead_ms=74_000,
        # A stall and a pause begin no other range: the seek does.
        playback_ranges=[[0, 6_000], [60_000, 74_000]],
        # 5 s at 0.9 Mbps, 15 s at 1.8 Mbps
        bitrate_integral=5_000 * 900_000 + 15_000 * 1_800_000,
        bitrate_time_ms=20_000,
        rendition_up=1,
        rendition_down=0,
        playback_failed=False,
        startup_failed=False,
        ebvs=False,
        error_code=None,
        stream_type="vod",
        video_id="movie-1",
        cdn="fastly",
        player_name="main",
        # 8 / 8.5; one stall, 2,000 of 22,700 ms: half of 89.443 and 41.434; the root of 94.118 * 65.439
        score_startup=94.12,
        score_smooth=65.44,
        score_success=100,
        score_view=78.48,
        # networkchange playerready, viewstart renditionchange play, playing, rebuffer 2, renditionchange, seek 2, pause,
        # play playing, hb at 26700, pause ended, viewend
        beacon_count=18,
    )


def test_a_view_that_never_started_is_scored_by_why() -> None:
    start = Moment(1_000, "start")
    for moments, success, view in (
        ((Moment(1_999, "close"),), None, None),
        ((Moment(2_000, "close"),), 50, 50),
        ((Moment(1_500, "error", code="2003"), Moment(2_000, "close")), 0, 0),
        ((Moment(1_500, "error", code="1002", business_exception=True), Moment(2_000, "close")), None, None),
    ):
        found = truth_of(story(Moment(0, "load"), start, *moments))
        holds(found, score_startup=None, score_smooth=None, score_success=success, score_view=view)


def test_the_times_of_a_view_that_crashes_are_its_begin_its_end_and_its_last_beacon() -> None:
    view = story(*EVENTFUL[:-2], Moment(29_000, "crash"))
    holds(truth_of(view), started_ms=1_000, left_ms=29_000, acked_until_ms=26_700)


def test_a_crash_in_a_seek_counts_the_seek_but_not_its_time_for_mux() -> None:
    view = story(*EVENTFUL[:7], Moment(9_650, "crash"))
    holds(truth_of(view), end_reason="timeout", view_dropped=True, complete=False, seek_count=1, seek_ms=0)


def test_the_pause_that_comes_with_the_end_is_no_end_yet() -> None:
    view = story(*EVENTFUL[:-1], Moment(29_000, "crash"))
    beacons = all_beacons(view)
    assert [b.event for b in beacons[-2:]] == ["pause", "ended"]
    for delivered, end_reason in ((beacons[:-1], "timeout"), (beacons, "clean")):
        result = row(view, delivered)
        assert result is not None
        holds(result, end_reason=end_reason, watch_ms=22_700)


def test_only_what_was_delivered_before_a_crash_counts() -> None:
    view = story(*EVENTFUL[:7], Moment(9_650, "crash"))
    # The last delivered beacon is the rebufferend: the switch and the seek are lost.
    holds(
        truth_of(view, until_ms=6_500),
        watch_ms=5_500,
        playing_ms=3_000,
        rebuffer_ms=2_000,
        bitrate_integral=3_000 * 900_000,
        rendition_up=0,
        seek_count=0,
    )


@pytest.mark.parametrize("client", ["hls.js", "dash.js"])
def test_a_cmcd_player_that_is_closed_in_the_middle_times_out_at_its_last_beacon(client: str) -> None:
    view = story(*EVENTFUL[:5], Moment(9_000, "close"), client=client)
    holds(
        truth_of(view),
        source="cmcd",
        end_reason="timeout",
        watch_ms=5_500,
        playing_ms=3_000,
        rebuffer_count=1,
        max_playhead_ms=0,
        cdn=None,
        player_name=None,
    )


def test_a_reporter_sends_its_end_and_everything_else() -> None:
    view = story(*EVENTFUL[:5], Moment(9_000, "close"), client="cmcd-reporter")
    holds(truth_of(view), end_reason="clean", playing_ms=5_500, max_playhead_ms=5_500, cdn="fastly", complete=True)


def test_the_time_of_a_cmcd_request_record_measures_nothing() -> None:
    view = story(*EVENTFUL[:3], Moment(4_000, "crash"), client="hls.js", reports_requests=True)
    beacons = all_beacons(view)
    assert beacons[-1].event == "ps"
    # A request begun at 1050 is recorded at 1170, before the first frame at 1500.
    assert [(b.at_ms, b.event) for b in beacons[-2:]] == [(1_170, "rr"), (1_500, "ps")]
    until_rr = row(view, beacons[:-1])
    assert until_rr is not None
    holds(until_rr, watch_ms=0, startup_ms=None, beacon_count=4)


@pytest.mark.parametrize("client", ["mux-embed", "cmcd-reporter", "hls.js"])
def test_an_error_before_the_first_frame_is_a_startup_failure(client: str) -> None:
    view = story(*EVENTFUL[:2], Moment(3_000, "error", code="2003"), Moment(4_000, "crash"), client=client)
    holds(
        truth_of(view),
        end_reason="error",
        view_dropped=False,
        playback_failed=True,
        startup_failed=True,
        ebvs=False,
        error_code="2003",
        watch_ms=2_000,
    )


def test_a_failed_view_whose_page_closes_ended_clean_and_still_failed() -> None:
    view = story(*EVENTFUL[:3], Moment(3_000, "error", code="2003"), Moment(4_000, "close"))
    holds(truth_of(view), end_reason="clean", playback_failed=True, startup_failed=False, watch_ms=2_000)


def test_a_business_exception_is_no_failure() -> None:
    error = Moment(3_000, "error", code="1002", business_exception=True)
    view = story(*EVENTFUL[:2], error, Moment(4_000, "crash"))
    holds(
        truth_of(view), end_reason="error", playback_failed=False, startup_failed=False, ebvs=False, error_code="1002"
    )


def test_a_warning_leaves_no_error_code() -> None:
    view = story(*EVENTFUL[:3], Moment(3_000, "warning", code="101"), Moment(4_000, "close"))
    holds(truth_of(view), playback_failed=False, error_code=None)


def test_leaving_before_the_first_frame_is_an_exit_before_start() -> None:
    holds(truth_of(story(*EVENTFUL[:2], Moment(3_000, "close"))), ebvs=True, startup_ms=None, watch_ms=2_000)


@pytest.mark.parametrize("client", ["mux-embed", "cmcd-reporter", "dash.js"])
def test_a_page_load_is_no_view_even_when_it_closes(client: str) -> None:
    view = story(Moment(0, "load"), Moment(5_000, "close"), client=client)
    assert all_beacons(view)
    assert row(view, all_beacons(view)) is None


def test_a_view_of_which_only_the_page_load_was_delivered_is_no_view() -> None:
    view = story(*EVENTFUL)
    assert row(view, [b for b in all_beacons(view) if b.at_ms < 1_000]) is None
    assert row(view, []) is None


@pytest.mark.parametrize(
    ("after", "ends_in_error"),
    [
        ([], True),
        ([("t", "r", 40)], True),
        ([("t", "p", 40)], False),
        ([("rr", "p", 10)], True),
        ([("rr", "p", 30)], False),
        ([("ps", "a", 40)], False),
        ([("ps", "e", 40)], False),
        ([("t", "p", 40), ("e", "p", 50)], True),
    ],
)
def test_an_error_of_cmcd_is_fatal_unless_something_plays_after_it(
    after: list[tuple[str, str, int]], ends_in_error: bool
) -> None:
    events = [("ps", "s", 0), ("ps", "p", 1), ("e", "p", 20), *after]
    delivered = [
        SimulatedBeacon(seq, at_ms, event, line=f"e={event},sta={sta},ts={at_ms}")
        for seq, (event, sta, at_ms) in enumerate(events)
    ]
    assert _ends_in_error(delivered) is ends_in_error
    assert _ends_in_error(delivered[::-1]) is ends_in_error
