"""Live gauges: every 5 s of the clock, exact in sum, after any crash."""

from collections import Counter

from services.processor.applications.video_views.app import application
from services.processor.engine.driver import Driver
from shared.schemas.live import Live, LiveSlice
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    RULES,
    SKEW_MS,
    T0,
    Drive,
    cmcd,
    driver_of,
    live,
    mux,
    pipe,
    watch,
)

COUNTED = (
    "views_started",
    "views_finished",
    "views_revised",
    "playback_failures",
    "startup_failures",
    "exits_before_start",
)


def test_what_happened_is_counted_once_over_all_buckets(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
    pipe(driver, watch()[3], 14_500)
    driver.advance_to(T0 + HOUR_MS)
    buckets = live(driver)
    assert sum(bucket.beacons for bucket in buckets) == 10
    assert sum(bucket.duplicates for bucket in buckets) == 1
    assert sum(bucket.views_started for bucket in buckets) == 1
    assert sum(bucket.views_finished for bucket in buckets) == 1


def test_each_bucket_stands_once(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
    driver.advance_to(T0 + HOUR_MS)
    starts = [bucket.bucket_ms for bucket in live(driver)]
    assert len(starts) == len(set(starts))
    assert all(start % 5_000 == 0 for start in starts)


def test_viewers_are_those_who_watch_now(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch()[:4]:
        pipe(driver, beacon)
    pipe(driver, mux(1, "viewstart", 5_500, view_id="v2"))
    driver.advance_to(T0 + SKEW_MS + 10_000)
    now = live(driver)[-1]
    assert (now.viewers_now, now.rebuffering_now, now.open_now) == (2, 1, 2)
    pipe(driver, watch()[4], 12_100)
    driver.advance_to(T0 + 20_000)
    now = live(driver)[-1]
    assert (now.viewers_now, now.rebuffering_now) == (2, 0)
    assert (now.bitrate_bps_now, now.bitrate_viewers_now) == (1_000_000, 1)


def test_who_pauses_or_falls_silent_is_no_viewer(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch()[:3]:
        pipe(driver, beacon)
    pipe(driver, mux(1, "viewstart", 500, view_id="v2"))
    pipe(driver, mux(2, "pause", 600, view_id="v2"))
    driver.advance_to(T0 + 10_000)
    assert (live(driver)[-1].viewers_now, live(driver)[-1].open_now) == (1, 2)
    driver.advance_to(T0 + SKEW_MS + 400 + RULES.live_silence_ms + 5_000)
    assert (live(driver)[-1].viewers_now, live(driver)[-1].open_now) == (0, 2)


def test_zeros_are_reported_until_a_customer_has_been_quiet_for_long(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
    for minute in range(30):
        driver.advance_to(T0 + minute * 60_000)
    buckets = live(driver)
    assert (buckets[-1].viewers_now, buckets[-1].open_now, buckets[-1].beacons) == (0, 0, 0)
    last_ms = buckets[-1].bucket_ms
    driver.advance_to(T0 + 2 * HOUR_MS)
    assert live(driver)[-1].bucket_ms == last_ms


def test_slices_by_dimension_sum_to_the_whole_and_report_zeros(drive: Drive) -> None:
    driver = drive(application(RULES, live_dimensions=("cdn",)))
    for number in range(25):
        pipe(driver, mux(1, "viewstart", 10 + number, view_id=f"v{number}", video_cdn=f"cdn{number}"))
    pipe(driver, mux(2, "cdnchange", 40, view_id="v0", video_cdn="cdn1"))
    driver.advance_to(T0 + 10_000)
    now = live(driver)[-1]
    assert now.viewers_now == 25
    assert sum(one.viewers_now for one in now.slices.values()) == 25
    # Twenty values are distinguished; what one view left stays, with zero.
    assert len(now.slices) == 21
    assert now.slices["cdn=(other)"].viewers_now == 5
    assert (now.slices["cdn=cdn0"].viewers_now, now.slices["cdn=cdn1"].viewers_now) == (0, 2)
    for number in range(25):
        pipe(driver, mux(3 if number == 0 else 2, "viewend", 12_000, view_id=f"v{number}"))
    driver.advance_to(T0 + 5 * 60_000)
    buckets = live(driver)
    assert all(one.viewers_now == 0 for one in buckets[-1].slices.values())
    finished = sum(one.views_finished for bucket in buckets for one in bucket.slices.values())
    assert finished == 25
    started = [
        sum(one.views_started for bucket in buckets for name, one in bucket.slices.items() if name == at)
        for at in ("cdn=cdn0", "cdn=(other)")
    ]
    # Where it began, it counts as started, wherever it went on.
    assert started == [1, 5]


def test_viewers_and_finished_views_are_sliced_by_client(drive: Drive) -> None:
    driver = drive(application(RULES, live_dimensions=("source",)))
    pipe(driver, mux(1, "viewstart", 10))
    pipe(driver, cmcd(0, "ps", 20, sta="s"))
    driver.advance_to(T0 + 10_000)
    assert {name: one.viewers_now for name, one in live(driver)[-1].slices.items()} == {
        "source=cmcd": 1,
        "source=mux": 1,
    }
    pipe(driver, mux(2, "viewend", 12_000))
    driver.advance_to(T0 + 5 * 60_000)
    finished = Counter[str]()
    for bucket in live(driver):
        finished.update({name: one.views_finished for name, one in bucket.slices.items()})
    assert finished["source=mux"] == 1


def test_a_view_without_a_value_counts_as_unknown_so_that_each_dimension_adds_up(drive: Drive) -> None:
    driver = drive(application(RULES, live_dimensions=("cdn", "stream_type")))
    pipe(driver, mux(1, "viewstart", 10, view_id="v1", video_cdn="x"))
    pipe(driver, mux(1, "viewstart", 20, view_id="v2"))
    pipe(driver, mux(2, "error", 3_000, view_id="v2", player_error_code="1"))
    pipe(driver, mux(1, "viewstart", 30, view_id="v3", video_cdn=""))
    driver.advance_to(T0 + 10_000)
    buckets = live(driver)
    now = buckets[-1]
    assert {name: one.viewers_now for name, one in now.slices.items() if one.viewers_now} == {
        "cdn=x": 1,
        "cdn=(unknown)": 1,
        "stream_type=(unknown)": 2,
    }
    driver.advance_to(T0 + 2 * HOUR_MS)
    for dimension in ("cdn", "stream_type"):
        for field in LiveSlice.__struct_fields__:
            for bucket in live(driver):
                named = [one for name, one in bucket.slices.items() if name.startswith(f"{dimension}=")]
                assert sum(getattr(one, field) for one in named) == getattr(bucket, field), (dimension, field)


def test_buckets_follow_each_other_without_a_hole_and_crashes_change_none(drive: Drive) -> None:
    def emitted(driver: Driver) -> list[Live]:
        for beacon in watch():
            pipe(driver, beacon)
        # Nothing comes for long: the clock leaps, and the zeros in between are emitted all the same.
        driver.advance_to(T0 + 9 * 60_000)
        pipe(driver, mux(1, "viewstart", 9 * 60_000, view_id="v2"))
        driver.advance_to(T0 + 12 * 60_000)
        return live(driver)

    buckets = emitted(driver_of(drive))
    starts = [bucket.bucket_ms for bucket in buckets]
    assert starts == list(range(starts[0], T0 + 12 * 60_000, 5_000))
    assert sum(not (bucket.beacons or bucket.views_finished or bucket.open_now) for bucket in buckets) > 60
    assert buckets == emitted(Driver(application(RULES)))


def test_starts_failures_and_exits_are_counted_in_their_bucket_and_never_again(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, mux(1, "viewstart", 0, view_id="failed"))
    pipe(driver, mux(2, "error", 900, view_id="failed", player_error_code="2"))
    pipe(driver, mux(1, "viewstart", 0, view_id="left"))
    pipe(driver, mux(2, "viewend", 900, view_id="left", view_watch_time=900))
    driver.advance_to(T0 + HOUR_MS)
    # A later revision is no second failure.
    pipe(driver, mux(3, "viewend", 2_000, view_id="failed"), HOUR_MS)
    driver.advance_to(T0 + 2 * HOUR_MS)
    buckets = live(driver)
    assert [sum(getattr(bucket, name) for bucket in buckets) for name in COUNTED] == [2, 2, 1, 1, 1, 1]
