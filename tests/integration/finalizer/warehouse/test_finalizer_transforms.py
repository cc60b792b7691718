"""What the finalizer's transforms make of extreme rows, without Kafka and without tables."""

from typing import Any

import msgspec
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.transforms.rollups import (
    DIMENSIONS,
    MEASURES,
    beyond,
    coarser,
    counted,
    gathered,
    minutes,
    narrow,
    wide,
)
from services.finalizer.transforms.views import HOUR_MS, latest_per_view, parse
from shared.codec import VIEW
from shared.schemas.view import INTEGRAL_MAX, NUMBER_MAX, View
from tests.integration.finalizer.finalizing import MORNING_MS, a_view

#: With several tasks: sums, sketches and buckets are made of the parts of each.
pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("several_tasks")]

#: As much as a client may claim, in every field that is summed.
MOST = {
    **dict.fromkeys(("watch_ms", "playing_ms", "rebuffer_count", "rebuffer_ms", "seek_count", "seek_ms"), NUMBER_MAX),
    **dict.fromkeys(("bitrate_time_ms", "beacon_count", "duplicate_count"), NUMBER_MAX),
    "bitrate_integral": INTEGRAL_MAX,
}
#: Enough of them for the sum of integrals to leave 64 bits.
COPIES = 2**63 // INTEGRAL_MAX + 1


def records(spark: SparkSession, *views: View) -> DataFrame:
    """The views as records of topic `views`, as the Kafka source gives them."""
    rows = [(bytearray(VIEW.encode(view)), 0, offset) for offset, view in enumerate(views)]
    frame = spark.createDataFrame(rows, "value binary, partition int, offset long")
    return frame.withColumn("timestamp", sf.timestamp_seconds(sf.lit(1_770_000_000)))


def parsed(spark: SparkSession, *views: View) -> DataFrame:
    """The views as rows. Computed here, so that what is made of them is planned without how they were read."""
    return parse(records(spark, *views)).localCheckpoint()


def test_a_group_sums_exactly_what_64_bits_do_not_hold(spark: SparkSession) -> None:
    views = parsed(spark, *[a_view(f"most-{number}", **MOST) for number in range(COPIES)])

    days = wide(coarser(coarser(minutes(counted(views), ((),)), "hour"), "day"))
    (sums,) = days.collect()

    assert sums["views"] == COPIES
    assert sums["bitrate_integral"] == INTEGRAL_MAX * COPIES > 2**63
    renamed = {"beacons": "beacon_count", "duplicates": "duplicate_count"}
    for name, kind in MEASURES.items():
        field = renamed.get(name, name)
        if field in MOST:
            assert sums[name] == MOST[field] * COPIES, name
            # A million views would bring any of them beyond 64 bits.
            assert kind == days.schema[name].dataType.simpleString() == "decimal(38,0)", name


def test_groups_widened_and_narrowed_again_add_up_to_the_same(spark: SparkSession) -> None:
    views = parsed(
        spark,
        *[
            a_view(f"v{n}", hour=n % 3, cdn=["a", "b", None][n % 3], startup_ms=n * 10, viewer_id=f"viewer {n % 7}")
            for n in range(30)
        ],
    )
    by_hour = coarser(minutes(counted(views), ((), ("cdn",))), "hour").map(lambda frame: frame.localCheckpoint())

    straight = wide(coarser(by_hour, "day")).collect()
    stored = wide(by_hour)
    merged = wide(coarser(narrow(stored), "day")).localCheckpoint()
    around = merged.collect()

    def values_of(rows: list[Row]) -> list[tuple[Any, ...]]:
        return sorted(
            (row["dimensions"], str(row["members"]), row["views"], sorted(row["startup_ms_histogram"].items()))
            for row in rows
        )

    assert values_of(straight) == values_of(around)
    assert [row["views"] for row in straight if row["dimensions"] == ""] == [30]
    estimate = merged.where(sf.col("dimensions") == "").select(sf.hll_sketch_estimate("uniques"))
    assert estimate.collect()[0][0] == 7


def test_a_view_that_played_has_started_without_a_startup_time_and_sources_are_kept_apart(spark: SparkSession) -> None:
    views = [
        a_view("measured", startup_ms=700),
        a_view("of another client", startup_ms=9, source="cmcd"),
        a_view("lost", startup_ms=None, startup_unknown="first_frame_lost", startup_ms_max=5_000),
        a_view("begun unseen", startup_ms=None, startup_unknown="start_lost"),
        a_view("left", startup_ms=None, startup_unknown="not_started", ebvs=True),
    ]
    rows = wide(minutes(counted(parsed(spark, *views)), ((), ("source",)))).collect()
    assert sum(row["started"] for row in rows if row["dimensions"] == "") == 4
    by_source = {row["members"][0]: row for row in rows if row["dimensions"] == "source"}
    assert {name: sum(row["startup_ms_histogram"].values()) for name, row in by_source.items()} == {"mux": 1, "cmcd": 1}
    assert "source" in DIMENSIONS


def test_views_whose_value_is_unknown_are_a_row_of_their_own_in_rollups(spark: SparkSession) -> None:
    cdns = ["fast"] * 141 + [None] * 25
    views = [a_view(f"v{n}", cdn=cdn, watch_ms=10) for n, cdn in enumerate(cdns)]
    rows = wide(coarser(minutes(counted(parsed(spark, *views)), ((), ("cdn",))), "hour")).collect()
    found = {(row["dimensions"], *row["members"]): (row["views"], row["watch_ms"]) for row in rows}
    # The API labels the member null "(unknown)".
    assert found == {("",): (166, 1_660), ("cdn", "fast"): (141, 1_410), ("cdn", None): (25, 250)}


def test_the_members_with_the_most_views_are_kept_apart_and_the_rest_adds_up(spark: SparkSession) -> None:
    named = [("a", 3), ("b", 2), ("c", 2), (None, 4), ("d", 1), ("(other)", 1)]
    views = [
        a_view(f"{cdn}-{n}", hour=1, cdn=cdn, watch_ms=10, startup_ms=100, viewer_id=f"viewer {cdn}-{n}")
        for cdn, count in named
        for n in range(count)
    ]
    # In another hour, or of another customer, others have the most.
    views += [a_view("d-other hour", hour=2, cdn="d"), a_view("c-else", customer="else", hour=1, cdn="c")]
    sets = ((), ("cdn",), ("cdn", "country"))
    by_minute = minutes(counted(parsed(spark, *views)), sets)
    bounded = gathered(by_minute, beyond(coarser(by_minute, "hour"), 3))
    rows = [row.asDict() for row in wide(coarser(bounded, "hour")).collect()]
    hour = (MORNING_MS + HOUR_MS) // HOUR_MS
    mine = {
        (row["dimensions"], *row["members"]): row
        for row in rows
        if row["customer_id"] == "acme" and row["hour"] == hour
    }
    assert {place: row["views"] for place, row in mine.items()} == {
        ("",): 13,
        **{("cdn", name): count for name, count in ((None, 4), ("a", 3), ("b", 2), ("(other)", 4))},
        **{("cdn+country", name, None): count for name, count in ((None, 4), ("a", 3), ("b", 2))},
        ("cdn+country", "(other)", "(other)"): 4,
    }
    other = mine["cdn", "(other)"]
    assert (other["watch_ms"], sum(other["startup_ms_histogram"].values())) == (40, 4)
    assert [row["views"] for row in rows if row not in mine.values() and row["dimensions"] == "cdn"] == [1, 1]


@pytest.mark.parametrize("field", ["watch_ms", "rebuffer_count", "startup_ms", "duplicate_count", "bitrate_integral"])
def test_a_number_outside_its_meaning_makes_no_view(spark: SparkSession, field: str) -> None:
    most = INTEGRAL_MAX if field == "bitrate_integral" else NUMBER_MAX
    given = [a_view(str(value), **{field: value}) for value in (-1, 0, most, most + 1)]

    found = parse(records(spark, *given)).select("view_id", "reason").collect()

    assert {row["view_id"]: row["reason"] for row in found} == {
        "-1": "invalid",
        "0": None,
        str(most): None,
        str(most + 1): "invalid",
    }


def test_a_client_clock_that_is_off_by_decades_is_payload_and_no_reason(spark: SparkSession) -> None:
    view = msgspec.structs.replace(a_view("old"), view_start_ms=-NUMBER_MAX, view_end_ms=-NUMBER_MAX)
    (row,) = parse(records(spark, view)).select("reason", "hour").collect()
    assert (row["reason"], row["hour"]) == (None, view.first_append_ms // 3_600_000 - 24)


def test_a_view_id_on_two_days_is_a_view_of_each_wherever_batches_end(spark: SparkSession) -> None:
    first = [a_view("again", day=20_000, revision=revision) for revision in (1, 3)]
    second = [a_view("again", day=20_001, revision=revision) for revision in (1, 2)]

    def rows(*views: View) -> list[tuple[int, int]]:
        found = latest_per_view(parse(records(spark, *views))).select("day", "revision").collect()
        return sorted((row["day"], row["revision"]) for row in found)

    # The table is merged by day, so two batches make a row of each day.
    assert rows(*first, *second) == [*rows(*first), *rows(*second)] == [(20_000, 3), (20_001, 2)]
