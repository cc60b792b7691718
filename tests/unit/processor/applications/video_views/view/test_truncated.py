"""Large views: a row that would be too large is truncated and goes on counting; what is replaced or waits truncates nothing."""

from services.processor.applications.video_views.bounds import TEXT_CHARS_MAX
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    T0,
    Drive,
    driver_of,
    mux,
    pipe,
    rows,
)
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed


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
    pipe(driver, timed("native", "viewstart", 0, city="Bonn"))
    for at_ms in range(1_000, 6_000, 1_000):
        pipe(driver, timed("native", "error", at_ms, **texts))
    pipe(driver, timed("native", "playing", 10_000, video_title="of later"))
    pipe(driver, timed("native", "heartbeat", 30_000))
    pipe(driver, timed("native", "pause", 20_000), 31_000)
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
