"""Stories of views: what players send, in event time, and the rows that must come of it."""

import msgspec
import pytest

from shared import codec, topics
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


def test_the_lateness_window_starts_again_with_each_revision(drive: Drive) -> None:
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


def test_a_gap_that_never_closes_is_counted_and_the_rest_still_counts(drive: Drive) -> None:
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


def test_a_beacon_of_an_unknown_source_or_without_a_number_is_rejected(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, msgspec.structs.replace(watch()[0], source="other"))
    pipe(driver, msgspec.structs.replace(watch()[0], seq=None))
    assert len(driver.outputs(topics.REJECTED)) == 2


def test_a_view_id_with_a_nul_never_makes_a_row_of_the_view_that_it_begins_with(drive: Drive) -> None:
    """Its key is another one, and so may its partition be: two partitions wrote rows of one view."""
    driver = driver_of(drive)
    forged = msgspec.structs.replace(watch()[0], view_id="v1\0forged")
    for at_ms, one in enumerate([*watch(), forged, cmcd(1, "playing", 500, view_id="v1\0002")]):
        pipe(driver, one, 30_000 + at_ms)
    driver.advance_to(T0 + HOUR_MS)
    assert [(row.view_id, row.source, row.beacon_count) for row in rows(driver)] == [("v1", "mux", len(watch()))]
    details = [dict(output.headers)["detail"] for output in driver.outputs(topics.REJECTED)]
    assert details == [b"the view id has a character NUL"] * 2


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
