"""What real players were seen to send, and the row that it must become. The bodies are captures (tests/fixtures)."""

from pathlib import Path

import pytest

from services.collector.intake.cmcd import cmcd
from services.collector.intake.post import Rules
from shared.schemas.view import View
from tests.unit.collector.intake.bodies import post
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, T0, Drive, driver_of, mux, pipe, rows

FIXTURES = Path(__file__).parents[4] / "fixtures"


def row_of(drive: Drive, capture: str) -> View:
    """The row of a captured session, its beacons in the order in which they were sent."""
    parsed = cmcd.parse_records(post((FIXTURES / capture).read_bytes(), key="acme", origin="/cmcd/acme"), Rules())
    assert parsed.rejected == []
    driver = driver_of(drive)
    at_ms = 0
    for beacon in parsed.accepted:
        at_ms = max(at_ms, beacon.client_time_ms)
        pipe(driver, beacon, at_ms - T0)
    driver.advance_to(at_ms + 2 * HOUR_MS)
    (row,) = rows(driver)
    assert (row.beacon_count, row.seq_gaps, row.video_id) == (len(parsed.accepted), 0, "my-video")
    return row


def test_waiting_for_what_was_sought_is_the_seeks_and_no_rebuffering(drive: Drive) -> None:
    row = row_of(drive, "cmcd-hls.js-1.7.4-seek.txt")
    assert (row.startup_ms, row.playing_ms) == (9_505, 16_245)
    assert (row.rebuffer_count, row.rebuffer_ms) == (1, 2_911)
    assert (row.seek_count, row.seek_ms, row.max_seek_ms) == (1, 20, 20)
    assert (row.rendition_up, row.rendition_down) == (1, 1)
    assert (row.end_reason, row.playback_failed) == ("timeout", False)


def test_our_own_event_reports_a_fatal_error_that_the_player_keeps_to_itself(drive: Drive) -> None:
    row = row_of(drive, "cmcd-hls.js-1.7.4-error.txt")
    assert (row.playback_failed, row.startup_failed, row.error_code) == (True, False, "fragLoadError")
    assert (row.end_reason, row.view_dropped) == ("error", False)
    # A heartbeat after the error still says that the player waits.
    assert (row.rebuffer_count, row.rebuffer_ms) == (1, 12_221)


def test_an_error_after_which_nothing_plays_was_fatal_under_any_name(drive: Drive) -> None:
    row = row_of(drive, "cmcd-dash.js-5.2.1-error.txt")
    assert (row.playback_failed, row.startup_failed, row.error_code) == (True, False, "27")
    assert row.end_reason == "error"
    assert (row.playing_ms, row.rebuffer_count, row.rebuffer_ms) == (4_687, 1, 15_705)


def test_a_startup_time_reported_before_the_first_frame_and_a_first_byte_after_the_last_are_no_measurements(
    drive: Drive,
) -> None:
    row = row_of(drive, "cmcd-dash.js-5.2.1-error.txt")
    assert (row.startup_ms, row.req_count, row.req_failed) == (9_380, 20, 13)
    # For no request that succeeded did it report a possible first byte.
    assert (row.ttfb_max_ms, row.ttfb_sum_ms) == (None, None)


def test_a_player_that_says_what_failed_by_its_state_alone(drive: Drive) -> None:
    row = row_of(drive, "cmcd-shaka-5.2.12-error.txt")
    assert (row.playback_failed, row.error_code, row.end_reason) == (True, None, "error")
    assert (row.startup_ms, row.playing_ms) == (8_319, 3_819)
    assert (row.rebuffer_count, row.rebuffer_ms) == (2, 7_762)


def test_a_player_that_never_reports_its_state_has_a_view_once_it_reports_its_startup_time(drive: Drive) -> None:
    row = row_of(drive, "cmcd-shaka-5.2.12-minified.txt")
    assert (row.startup_ms, row.req_count, row.avg_bitrate_bps) == (1_850, 7, 448_000)
    # Its last record is an error.
    assert (row.playback_failed, row.startup_failed, row.ebvs, row.end_reason) == (True, False, False, "error")


@pytest.mark.parametrize(
    ("reported", "preload"),
    [("metadata", "metadata"), ("none", "none"), ("auto", "auto"), (True, "auto"), (False, "none")],
)
def test_mux_embed_names_its_software_and_how_it_preloads(drive: Drive, reported: object, preload: str) -> None:
    driver = driver_of(drive)
    beacon = mux(1, "viewstart", 0, player_software="HTML5 Video Element", player_preload_on=reported)
    pipe(driver, beacon)
    driver.advance_to(beacon.client_time_ms + 2 * HOUR_MS)
    (row,) = rows(driver)
    assert (row.player_software, row.preload) == ("HTML5 Video Element", preload)
