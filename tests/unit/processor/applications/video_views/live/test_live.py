"""Live gauges: every 5 s of the clock, exact in sum, after any crash."""

from collections import Counter

import msgspec
import pytest

from services.dashboard.live.slices import slices_of, summed
from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.live.cohorts import COHORTS_MAX
from services.processor.applications.video_views.live.rows import LIVE_ROWS
from services.processor.engine.driver import Driver
from shared import codec
from shared.schemas.live import BUCKET_MS, Live, LiveSlice
from shared.topics import VIEWS
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


def test_a_slice_has_no_zero_character_though_players_send_one() -> None:
    # Postgres keeps no such text: an incident of that slice ended the service that sends messages, at each of its starts.
    driver = Driver(application(RULES, live_dimensions=("cdn", "video_title")))
    pipe(driver, mux(1, "viewstart", 10, video_title="a\0b", video_cdn="x\0\x1f"))
    driver.advance_to(T0 + 10_000)
    names = {name for bucket in live(driver) for name in bucket.slices}
    assert {"video_title=a b", "cdn=x  "} <= names
    assert not any("\0" in name for name in names)


def test_slices_by_dimension_sum_to_the_whole(drive: Drive) -> None:
    driver = drive(application(RULES, live_dimensions=("cdn",)))
    for number in range(25):
        pipe(driver, mux(1, "viewstart", 10 + number, view_id=f"v{number}", video_cdn=f"cdn{number}"))
    pipe(driver, mux(2, "cdnchange", 40, view_id="v0", video_cdn="cdn1"))
    driver.advance_to(T0 + 10_000)
    started, now = live(driver)[0], live(driver)[-1]
    assert now.viewers_now == 25
    assert sum(one.viewers_now for one in now.slices.values()) == 25
    # Twenty values are named, those with the most viewers; what one view left is zero, and not named.
    assert len(now.slices) == 21
    assert now.slices["cdn=(other)"].viewers_now == 4
    assert now.slices["cdn=cdn1"].viewers_now == 2
    assert "cdn=cdn0" not in now.slices
    # Where it began, it counts as started, wherever it went on.
    assert sum(one.views_started for one in started.slices.values()) == 25
    assert started.slices["cdn=cdn1"].views_started == 1
    for number in range(25):
        pipe(driver, mux(3 if number == 0 else 2, "viewend", 12_000, view_id=f"v{number}"))
    driver.advance_to(T0 + 5 * 60_000)
    buckets = live(driver)
    assert not buckets[-1].slices
    finished = sum(one.views_finished for bucket in buckets for one in bucket.slices.values())
    assert finished == 25


def test_pairs_of_dimensions_are_counted_too(drive: Drive) -> None:
    driver = drive(application(RULES, live_dimensions=("cdn", "country", "device")))
    for number, (cdn, country) in enumerate([("a", "DE"), ("a", "DE"), ("a", "FR"), ("b", "DE"), ("b", None)]):
        beacon = mux(1, "viewstart", 10 + number, view_id=f"v{number}", video_cdn=cdn)
        pipe(driver, msgspec.structs.replace(beacon, country=country))
    driver.advance_to(T0 + 10_000)
    viewers = {name: one.viewers_now for name, one in live(driver)[-1].slices.items() if name.startswith("cdn,")}
    assert viewers == {
        "cdn,country=a\x1fDE": 2,
        "cdn,country=a\x1fFR": 1,
        "cdn,country=b\x1fDE": 1,
        "cdn,country=b\x1f(unknown)": 1,
        "cdn,device=a\x1f(unknown)": 3,
        "cdn,device=b\x1f(unknown)": 2,
    }


@pytest.mark.thorough
def test_slices_add_up_however_many_values_there_are() -> None:
    dimensions = ("cdn", "video_title")
    driver = Driver(application(RULES, live_dimensions=dimensions))
    many = COHORTS_MAX + 40
    for number in range(many):
        beacon = mux(1, "viewstart", 10, view_id=f"v{number}", video_cdn=f"c{number % 3}", video_title=f"t{number}")
        pipe(driver, beacon, 10)
    driver.advance_to(T0 + 10_000)
    buckets = live(driver)
    for group in ("cdn", "video_title", "cdn,video_title"):
        for field in LiveSlice.__struct_fields__:
            for bucket in buckets:
                named = [one for name, one in bucket.slices.items() if name.startswith(f"{group}=")]
                assert sum(getattr(one, field) for one in named) == getattr(bucket, field), (group, field)
    # Without room of their own, views are still told apart by what has few values.
    now = buckets[-1].slices
    assert [now[f"cdn=c{at}"].viewers_now for at in range(3)] == [len(range(at, many, 3)) for at in range(3)]
    assert driver.rows["cohorts"] == COHORTS_MAX + 3
    driver.advance_to(T0 + 3 * HOUR_MS)
    assert driver.rows["cohorts"] == 0


def test_start_up_times_and_failures_count_when_they_are_reported(drive: Drive) -> None:
    driver = drive(application(RULES, live_dimensions=("cdn",)))
    for beacon in watch()[:4]:
        pipe(driver, beacon)
    pipe(driver, mux(1, "viewstart", 500, view_id="v2", video_cdn="x"))
    pipe(driver, mux(2, "error", 900, view_id="v2", player_error_code="2"))
    driver.advance_to(T0 + 20_000)
    buckets = live(driver)
    assert sum(bucket.startups for bucket in buckets) == 1
    assert sum(bucket.startup_ms for bucket in buckets) > 0
    # Long before the view finishes.
    assert sum(bucket.failures for bucket in buckets) == 1
    assert sum(bucket.slices["cdn=x"].failures for bucket in buckets if "cdn=x" in bucket.slices) == 1
    assert sum(bucket.views_finished for bucket in buckets) == 0


def test_a_failure_is_taken_back_if_playback_goes_on(drive: Drive) -> None:
    driver = drive(application(RULES, live_dimensions=("cdn",)))
    pipe(driver, cmcd(0, "ps", 0, sta="s"))
    pipe(driver, cmcd(1, "playing", 500, sta="p"))
    pipe(driver, cmcd(2, "error", 20_000, sta="f"))
    driver.advance_to(T0 + 30_000)
    assert sum(bucket.failures for bucket in live(driver)) == 1
    pipe(driver, cmcd(3, "heartbeat", 30_000, sta="p"))
    driver.advance_to(T0 + 40_000)
    buckets = live(driver)
    assert sum(bucket.failures for bucket in buckets) == 0
    assert sum(one.failures for bucket in buckets for one in bucket.slices.values()) == 0


def test_slices_of_a_former_release_and_of_other_dimensions_do_no_harm() -> None:
    former = [5_000, 6_000, 3, 1, 4, 7, 1, *[0] * 10, {"cdn=x": [6_000, 3]}]
    row = LIVE_ROWS.decode(msgspec.msgpack.encode(former))
    assert (row.viewers_now, row.open_now, row.startups, row.cohorts) == (3, 4, 0, 0)
    driver = Driver(application(RULES, live_dimensions=("cdn",)))
    pipe(driver, mux(1, "viewstart", 10, video_cdn="x"))
    driver.restart_with(application(RULES, live_dimensions=("cdn", "country")))
    pipe(driver, mux(1, "viewstart", 20, view_id="v2", video_cdn="y"))
    driver.advance_to(T0 + 20_000)
    assert live(driver)[-1].slices["cdn=(unknown)"].viewers_now == 1
    pipe(driver, mux(2, "hb", 21_000, video_cdn="x"), 21_000)
    driver.advance_to(T0 + 40_000)
    for bucket in live(driver):
        assert bucket.viewers_now == sum(
            one.viewers_now for name, one in bucket.slices.items() if name.startswith("cdn=")
        )
    assert live(driver)[-1].slices["cdn=x"].viewers_now == 1


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


def test_the_cdns_of_166_viewers_of_whom_25_have_none_add_up_to_166(drive: Drive) -> None:
    """The page once showed CDNs that added up to 141 of 166 viewers: views without one were in no slice."""
    cdns = ["akamai"] * 80 + ["fastly"] * 40 + ["cloudfront"] * 21 + [None] * 20 + [""] * 5
    driver = drive(application(RULES, live_dimensions=("cdn",)))
    for number, cdn in enumerate(cdns):
        attrs = {} if cdn is None else {"video_cdn": cdn}
        pipe(driver, mux(1, "viewstart", 10 + number, view_id=f"v{number}", **attrs))
    driver.advance_to(T0 + 10_000)
    records = live(driver)[-1:]
    assert records[0].viewers_now == 166
    shown = {
        one["value"]: one["viewers_now"] for one in slices_of(summed([records], BUCKET_MS, has_pairs=False))["cdn"]
    }
    assert shown == {"akamai": 80, "fastly": 40, "cloudfront": 21, "(unknown)": 25}
    assert sum(shown.values()) == 166


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
        "cdn,stream_type=x\x1f(unknown)": 1,
        "cdn,stream_type=(unknown)\x1f(unknown)": 1,
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


def test_what_only_finished_views_have_is_in_the_bucket_and_its_slices_and_later_revisions_add_nothing(
    drive: Drive,
) -> None:
    driver = drive(application(RULES, live_dimensions=("cdn",)))
    for beacon in watch():
        pipe(driver, beacon)
    pipe(driver, mux(1, "viewstart", 0, view_id="good"))
    pipe(driver, mux(2, "playing", 500, view_id="good", view_time_to_first_frame=500))
    pipe(driver, mux(3, "viewend", 60_500, view_id="good", view_watch_time=60_500))
    # A startup failure: no good view.
    pipe(driver, mux(1, "viewstart", 0, view_id="failed", video_cdn="x"))
    pipe(driver, mux(2, "error", 900, view_id="failed", player_error_code="2"))
    driver.advance_to(T0 + HOUR_MS)
    # A second revision of the row.
    pipe(driver, mux(3, "viewend", 2_000, view_id="failed"), HOUR_MS)
    driver.advance_to(T0 + 2 * HOUR_MS)
    rows = [codec.VIEW.decode(output.value or b"") for output in driver.outputs(VIEWS)]
    first = [row for row in rows if row.revision == 1]
    assert len(rows) > len(first) == 3
    wanted = {
        "finished_watch_ms": sum(row.watch_ms for row in first),
        "finished_rebuffer_ms": sum(row.rebuffer_ms for row in first),
        "finished_rated": sum(row.spi_good is not None for row in first),
        "finished_bad": sum(row.spi_good is False for row in first),
    }
    assert wanted["finished_watch_ms"] > 0
    assert 0 < wanted["finished_bad"] < wanted["finished_rated"]
    buckets = live(driver)
    assert {name: sum(getattr(bucket, name) for bucket in buckets) for name in wanted} == wanted
    of_x = [bucket.slices["cdn=x"] for bucket in buckets if "cdn=x" in bucket.slices]
    assert (sum(one.finished_rated for one in of_x), sum(one.finished_bad for one in of_x)) == (1, 1)
