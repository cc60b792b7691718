"""The benchmark's input: views and beacons of real shape in any number, made inside Spark, and a year of served rollups."""

from typing import Any, Final

import psycopg
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from bench.finalizer.timing import expect
from services.finalizer.serving.published import Slice
from services.finalizer.transforms.rollups import MEASURES
from services.finalizer.transforms.views import HOUR_MS, parse
from services.finalizer.warehouse import tables
from shared.codec import BEACON, VIEW
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from shared.topics import BEACONS

DAY_MS: Final = 86_400_000
DAY: Final = 20_000
#: The day, in table bronze, of the beacons that are reprocessed.
BRONZE_DAY: Final = 21_000
VIEWS_A_DAY: Final = 100_000
CUSTOMERS: Final = 20
BEACONS_A_VIEW: Final = 10
PARTITIONS: Final = 8
PLAYED_MS: Final = 60_000
SERVED_UNTIL_S: Final = 1_790_000_000 // 3600 * 3600

#: Numbers that are placeholders in the templates for values that differ from row to row.
_DAY, _START, _END, _REVISION, _WATCH, _STARTUP = (700_000_000_001 + number for number in range(6))


def view_records(
    spark: SparkSession,
    first: int,
    count: int,
    *,
    revision: int = 1,
    day: int | None = None,
    like: int | None = None,
    spread_ms: int = DAY_MS,
    begin_ms: int = 0,
) -> DataFrame:
    """Records of topic `views` as the Kafka source gives them: views number `first` and on, in order of their days.

    All of `day`, or of the day that view number `like` is of, where one is given. They end within `spread_ms` from `begin_ms` on.
    """
    number = sf.col("id")
    if like is not None:
        day = day_of(like)
    values = _values(sf.lit(day).cast("bigint") if day is not None else _day(number), revision, spread_ms, begin_ms)
    value = _filled(sf.lit(VIEW.encode(A_VIEW).decode()), values)
    return spark.range(first, first + count).select(
        sf.encode(value, "utf-8").alias("value"),
        sf.encode(sf.concat(sf.lit("acme:"), number.cast("string")), "utf-8").alias("key"),
        sf.lit("views").alias("topic"),
        (number % PARTITIONS).cast("int").alias("partition"),
        number.alias("offset"),
        sf.timestamp_millis(values[_END]).alias("timestamp"),
    )


def day_of(number: int) -> int:
    """The day of view number `number`."""
    return DAY + number // VIEWS_A_DAY


def _day(number: Column) -> Column:
    return (sf.lit(DAY) + number / VIEWS_A_DAY).cast("bigint")


def _values(day: Column, revision: int, spread_ms: int = DAY_MS, begin_ms: int = 0) -> dict[Any, Column]:
    """The value of each placeholder in view number `id`."""
    number = sf.col("id")
    # All end on their day.
    start = day * DAY_MS + begin_ms + sf.pmod(sf.hash(number), sf.lit(spread_ms - PLAYED_MS)).cast("bigint")
    return {
        "@id": number.cast("string"),
        "@customer": sf.concat(sf.lit("customer_"), (number % CUSTOMERS).cast("string")),
        "@cdn": sf.element_at(sf.array(*map(sf.lit, ("fast", "near", "own"))), (number % 3 + 1).cast("int")),
        _DAY: day,
        _START: start,
        _END: start + PLAYED_MS,
        _REVISION: sf.lit(revision),
        _WATCH: sf.pmod(sf.hash(number), sf.lit(600_000)),
        _STARTUP: sf.pmod(sf.hash(number), sf.lit(5_000)),
    }


def fill_views(
    spark: SparkSession, warehouse: str, count: int, *, day: int | None = None, spread_ms: int = DAY_MS
) -> None:
    """Appends the first `count` views to table `views`, a file or two a day; `day` and `spread_ms` as for `view_records`.

    The same rows as `view_records` parsed, made of one that is parsed: reading millions from JSON would take most of a run.
    """
    rows = _stored_views(spark, count, sf.lit(day).cast("bigint") if day is not None else _day(sf.col("id")), spread_ms)
    few = min(count, 5)
    wanted = (
        parse(view_records(spark, 0, few, day=day, spread_ms=spread_ms))
        .drop("value", "reason")
        .orderBy("kafka_offset")
        .collect()
    )
    made = rows.where(sf.col("kafka_offset") < few).drop("landed_at_ms").orderBy("kafka_offset").collect()
    expect("views of the table", [one.asDict() for one in made], [one.asDict() for one in wanted])
    rows.write.format("delta").mode("append").save(tables.VIEWS.path(warehouse))


def _stored_views(spark: SparkSession, count: int, day: Column, spread_ms: int) -> DataFrame:
    columns = tables.VIEWS.schema
    template = spark.createDataFrame(
        [(VIEW.encode(A_VIEW), "", 0, 0)], "value binary, topic string, partition int, offset bigint"
    )
    parsed = parse(template.withColumn("timestamp", sf.timestamp_millis(sf.lit(0)))).withColumn(
        "landed_at_ms", sf.lit(0)
    )
    constant = parsed.select(columns.fieldNames()).collect()[0]
    values = _values(day, 1, spread_ms)
    made = {
        field.name: _filled(sf.lit(value), values) if isinstance(value, str) else values[value]
        for field in columns.fields
        if (isinstance(value := constant[field.name], str) and "@" in value)
        or (isinstance(value, int) and value in values)
    }
    made |= {
        "hour": sf.floor(values[_END] / HOUR_MS),
        "kafka_partition": sf.col("id") % PARTITIONS,
        "kafka_offset": sf.col("id"),
        "kafka_timestamp_ms": values[_END],
        "landed_at_ms": values[_END],
    }
    typed = {name: column.cast(columns[name].dataType) for name, column in made.items()}
    days = -(-count // VIEWS_A_DAY)
    return (
        spark.range(0, count, numPartitions=days)
        .crossJoin(sf.broadcast(spark.createDataFrame([constant], columns)))
        .withColumns(typed)
        .select(columns.fieldNames())
    )


def as_beacons(records: DataFrame) -> DataFrame:
    """The same records as if they were of topic `beacons`."""
    none = sf.lit(None).cast("array<struct<key:string,value:binary>>")
    return records.withColumns({"topic": sf.lit(BEACONS.name), "headers": none})


def slices_of(spark: SparkSession, warehouse: str, count: int) -> list[Slice]:
    """So many slices of the newest day of table `views`."""
    views = spark.read.format("delta").load(tables.VIEWS.path(warehouse))
    newest = views.agg(sf.max("hour")).collect()[0][0] // 24
    found = views.where(sf.floor(sf.col("hour") / 24) == newest).select("hour", "customer_id").distinct()
    return [
        Slice(row["hour"], row["customer_id"]) for row in found.orderBy("hour", "customer_id").limit(count).collect()
    ]


def fill_bronze(spark: SparkSession, warehouse: str, views: int) -> None:
    """Whole views, ten beacons each a second apart, many at once; a beacon a partition lets its clock run past their ends."""
    number = (sf.col("id") / BEACONS_A_VIEW).cast("bigint")
    seq = (sf.col("id") % BEACONS_A_VIEW).cast("int")
    start = sf.lit(BRONZE_DAY * DAY_MS) + (number * 20)
    whole = spark.range(views * BEACONS_A_VIEW).select(number.alias("number"), seq.alias("seq"), start.alias("start"))
    after = BRONZE_DAY * DAY_MS + DAY_MS // 2
    # Begun and never ended: no view is made of them.
    last = spark.range(PARTITIONS).select((sf.col("id") - PARTITIONS).alias("number"), sf.lit(0), sf.lit(after))
    at_ms = sf.col("start") + sf.col("seq") * 1_000
    templates = sf.array(*(sf.lit(BEACON.encode(one).decode()) for one in _BEACONS))
    value = _filled(
        sf.element_at(templates, sf.col("seq") + 1),
        {"@id": sf.col("number").cast("string"), _START: at_ms, _END: sf.col("start")},
    )
    records = whole.unionAll(last).select(
        sf.lit(BEACONS.name).alias("topic"),
        sf.pmod("number", sf.lit(PARTITIONS)).cast("int").alias("kafka_partition"),
        # Interleaved by time, as they come in.
        (at_ms * 1_000 + sf.col("seq") * 100 + sf.pmod("number", sf.lit(100))).alias("kafka_offset"),
        at_ms.alias("kafka_timestamp_ms"),
        sf.lit(BRONZE_DAY).cast("bigint").alias("day"),
        sf.encode(sf.concat(sf.lit("acme:"), sf.col("number").cast("string")), "utf-8").alias("key"),
        sf.encode(value, "utf-8").alias("value"),
        sf.array().cast("array<struct<key:string,value:binary>>").alias("headers"),
        sf.lit(0).cast("bigint").alias("landed_at_ms"),
        sf.lit("bench").alias("topic_id"),
    )
    records.write.format("delta").mode("append").save(tables.BRONZE.path(warehouse))


def fill_serving(connection: psycopg.Connection, days: int) -> None:
    """Hourly rollups of 100 customers, each hour with fifty buckets of start-up times, and the blocks of hours they are in."""
    ones = ", ".join("1" for _ in MEASURES)
    connection.execute(
        "INSERT INTO serving.rollups (grain, start, customer_id, dimensions, members,"  # noqa: S608 - our own names
        f" {', '.join(MEASURES)}, uniques, startup_ms_buckets, startup_ms_counts, rebuffer_ms_buckets, rebuffer_ms_counts)"
        f" SELECT 'hour', to_timestamp({SERVED_UNTIL_S} - hour * 3600), 'year_' || customer, '', '{{}}', {ones}, '',"
        f" buckets, counts, buckets, counts FROM generate_series(0, {24 * days}) AS hour,"
        " generate_series(1, 100) AS customer,"
        " (SELECT array_agg(n) AS buckets, array_agg(n::bigint) AS counts FROM generate_series(300, 349) AS n) AS histogram"
    )
    # As `finalizer.refresh_blocks` would make them, which for a whole year at once takes minutes: all hours are alike here.
    columns = "views, started, startup_failures, playback_failures, exits_before_start"
    sums = "watch_ms, playing_ms, rebuffer_ms, bitrate_integral, bitrate_time_ms"
    times = ", ".join(f"n * {name}" for name in f"{columns}, {sums}".split(", "))
    connection.execute(
        f"INSERT INTO serving.blocks (level, block, customer_id, {columns}, {sums},"  # noqa: S608 - our own names
        " startup_ms_buckets, startup_ms_counts)"
        f" SELECT level, block, customer_id, {times}, startup_ms_buckets,"
        " (SELECT array_agg(n * count ORDER BY at) FROM unnest(startup_ms_counts) WITH ORDINALITY AS one (count, at))"
        " FROM (SELECT level, hour >> level AS block, count(*) AS n FROM generate_series(0, 13) AS level,"
        f" generate_series({SERVED_UNTIL_S // 3600 - 24 * days}::bigint, {SERVED_UNTIL_S // 3600}) AS hour GROUP BY 1, 2) AS b,"
        f" serving.rollups WHERE start = to_timestamp({SERVED_UNTIL_S})"
    )
    newest = SERVED_UNTIL_S // 3600
    blocks = "SELECT * FROM serving.blocks WHERE customer_id = 'year_1' AND block = %s::bigint >> level ORDER BY level"
    made = connection.execute(blocks, (newest,)).fetchall()
    connection.execute("SELECT finalizer.refresh_blocks(ARRAY[%s::bigint], ARRAY['year_1'])", (newest,))
    assert connection.execute(blocks, (newest,)).fetchall() == made, "the blocks are not those that the finalizer makes"
    connection.execute("VACUUM ANALYZE serving.rollups, serving.blocks")


#: A finished view of common size.
A_VIEW: Final = View(
    schema_version=1,
    revision=_REVISION,
    customer_id="@customer",
    view_id="@id",
    source="mux",
    day=_DAY,
    first_append_ms=_START,
    last_append_ms=_END,
    view_start_ms=_START,
    view_end_ms=_END,
    end_reason="clean",
    view_dropped=False,
    session_id="5d2c0b6e-7c1f-4f0e-9d0b-000000000000",
    viewer_id="viewer-@id",
    video_id="a-film",
    video_title="A film of some length",
    stream_type="vod",
    cdn="@cdn",
    player_name="main",
    device="TV",
    os="Linux",
    browser="Chrome",
    country="DE",
    page_url="https://example.org/watch/a-film-of-some-length",
    startup_ms=_STARTUP,
    watch_ms=_WATCH,
    playing_ms=_WATCH,
    playback_ranges=[[0, 60_000]],
    bitrate_integral=_WATCH,
    bitrate_time_ms=_WATCH,
    beacon_count=12,
    complete=True,
)
#: A whole view of mux's player: each beacon has the fields that changed since the last one.
_TOLD: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("viewstart", {"view_start": _END, "player_name": "main", "video_id": "a-film", "video_source_bitrate": 1_000_000}),
    ("playing", {"view_time_to_first_frame": 1_000}),
    ("heartbeat", {}),
    ("rebufferstart", {"view_rebuffer_count": 1}),
    ("rebufferend", {"view_rebuffer_duration": 1_000}),
    ("rendition", {"video_source_bitrate": 2_000_000}),
    ("seekstart", {}),
    ("seekend", {"view_seek_count": 1, "view_seek_duration": 1_000}),
    ("heartbeat", {}),
    ("viewend", {"view_playing_time_ms_cumulative": 6_000}),
)
_BEACONS: Final = tuple(
    Beacon(
        schema_version=1,
        source="mux",
        customer_id="acme",
        view_id="@id",
        event=event,
        source_event=event,
        recv_time_ms=_START,
        client_time_ms=_START,
        clock_offset_ms=0,
        seq=number + 1,
        attrs={"view_watch_time": number * 1_000, **attrs},
    )
    for number, (event, attrs) in enumerate(_TOLD)
)


def _filled(text: Column, values: dict[Any, Column]) -> Column:
    for placeholder, value in values.items():
        text = sf.replace(text, sf.lit(str(placeholder)), value.cast("string"))
    return text
