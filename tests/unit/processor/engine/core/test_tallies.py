"""Numbers that an application keeps: committed with everything else, dropped by an abort, there again after a takeover."""

from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    RULES,
    T0,
    Drive,
    cmcd,
    driver_of,
    mux,
    pipe,
    watch,
)


def test_open_views_are_those_that_have_begun_and_not_finished(drive: Drive) -> None:
    driver = driver_of(drive)
    assert driver.tallies == {"open_views": 0}
    pipe(driver, mux(1, "viewstart", 0, view_start=T0))
    pipe(driver, mux(2, "heartbeat", 1_000))
    pipe(driver, mux(1, "heartbeat", 1_000, view_id="never begun"))
    assert driver.tallies == {"open_views": 1}
    for seq, at_ms in ((0, 2_000), (1, 3_000), (0, 9_000)):
        pipe(driver, cmcd(seq, "playing", at_ms, sta="p"))
    assert driver.tallies == {"open_views": 3}, "two plays of one session"
    driver.advance_to(T0 + HOUR_MS)
    assert driver.tallies == {"open_views": 0}
    pipe(driver, mux(3, "heartbeat", 4_000), HOUR_MS + 1)
    assert driver.tallies == {"open_views": 1}, "it is open again"


def test_a_view_that_is_reported_twice_is_open_once(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch() + watch():
        pipe(driver, beacon, 20_000)
    assert driver.tallies == {"open_views": 1}
    driver.advance_to(T0 + 20_000 + RULES.clean_ms + 1)
    assert driver.tallies == {"open_views": 0}
