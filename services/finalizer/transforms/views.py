"""Turns records of topic `views` into one row per view: parses, finds the hour, keeps the newest revision."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StringType, StructField, StructType

from services.finalizer.transforms.spark_schema import allowed_values, bounds, defaults, required, spark_schema
from shared.measures import COUNTED_MS
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.view import SCHEMA_VERSION, View

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

_VIEW: Final = spark_schema(View)
_CORRUPT: Final = "_corrupt"
#: Why a record cannot be read.
UNKNOWN_VERSION: Final = "unknown_version"
UNDECODABLE: Final = "undecodable"
INVALID: Final = "invalid"
REASONS: Final = (UNKNOWN_VERSION, UNDECODABLE, INVALID)


@dataclass(frozen=True)
class _Steps:
    """The columns of each step of `parse`, built once: thousands of calls to the JVM build them."""

    parsed: Sequence[Column]
    flat: Sequence[Column]
    judged: Sequence[Column]
    placed: dict[str, Column]


def parse(records: DataFrame) -> DataFrame:
    """Records as the Kafka source gives them -> table `views`' columns but `landed_at_ms`, and `value`, `record_bytes`, `reason`.

    `reason` is null for a view; otherwise it says why this code cannot read the record: one of `REASONS`.
    """
    steps = _steps()
    # Steps of their own, so that the optimiser does not write the long condition out at every use.
    judged = records.select(*steps.parsed).select(*steps.flat).select(*steps.judged)
    return judged.withColumns(steps.placed)


@cache
def _steps() -> _Steps:
    schema = StructType([*_VIEW.fields, StructField(_CORRUPT, StringType())])
    text = sf.col("value").cast("string")
    used = sf.col("reason").isNull()
    kafka = ("kafka_partition", "kafka_offset", "kafka_timestamp_ms")
    # The bytes as they came: a repair needs them, and what is no text cannot be kept as one.
    value = sf.col("value")
    return _Steps(
        parsed=[
            sf.from_json(text, schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}).alias("view"),
            sf.is_valid_utf8(text).alias("is_text"),
            value,
            sf.col("partition").cast(IntegerType()).alias("kafka_partition"),
            sf.col("offset").cast(LongType()).alias("kafka_offset"),
            sf.unix_millis("timestamp").alias("kafka_timestamp_ms"),
        ],
        flat=[value, *map(sf.col, ("is_text", f"view.{_CORRUPT}")), *_columns(), *map(sf.col, kafka)],
        judged=[
            *(value, sf.octet_length("value").alias("record_bytes")),
            *map(sf.col, (*_VIEW.fieldNames(), *kafka)),
            _reason().alias("reason"),
        ],
        placed={
            "value": sf.when(~used, value),
            "hour": sf.when(used, sf.floor(rollup_end_ms() / HOUR_MS).cast(LongType())),
        },
    )


def latest_per_view(rows: DataFrame) -> DataFrame:
    """Keeps of each view the newest revision, and every row with a reason; adds `revisions`, the number of revisions it replaces.

    The order is total: of two rows with the same (generation, revision) the later record wins.
    """
    ranked = rows.select("*", *_ranks())
    return ranked.where(sf.col("reason").isNotNull() | (sf.col("rank") == 1)).drop("rank")


def pieces(views: DataFrame, size_bytes: int, bytes_max: int) -> Iterator[DataFrame]:
    """Views of so many bytes -> parts of about `bytes_max` each, by the views' keys: no view is in two."""
    count = math.ceil(size_bytes / bytes_max)
    if count <= 1:
        yield views
        return
    place = sf.pmod(sf.xxhash64("day", "customer_id", "view_id"), sf.lit(count))
    for number in range(count):
        yield views.where(place == number)


@cache
def _ranks() -> tuple[Column, Column]:
    # By day, too, as the table is merged: else a view id on two days would be one row or two, by where batches end.
    view = Window.partitionBy("reason", "day", "customer_id", "view_id")
    newest_first = view.orderBy(
        sf.col("generation").desc_nulls_last(),
        sf.col("revision").desc_nulls_last(),
        sf.col("kafka_partition").desc(),
        sf.col("kafka_offset").desc(),
    )
    revisions = sf.when(sf.col("reason").isNull(), sf.count("*").over(view)).otherwise(sf.lit(1))
    return sf.row_number().over(newest_first).alias("rank"), revisions.alias("revisions")


def may_be_stored() -> Column:
    """Whether the warehouse can have an older revision of a row's view: not if this is the first revision."""
    return (sf.col("generation") > 1) | (sf.col("revision") > 1)


def rollup_end_ms() -> Column:
    """When a view counts, ms since 1970."""
    return sf.expr(COUNTED_MS)


def minute_of_hour() -> Column:
    """The minute in which the view of a row with `hour` counts, 0 to 59."""
    return (sf.floor(rollup_end_ms() / MINUTE_MS) - sf.col("hour") * (HOUR_MS // MINUTE_MS)).cast(IntegerType())


def _columns() -> list[Column]:
    """The view's fields, an absent one as what its absence means."""
    absent = defaults(View)
    return [
        sf.coalesce(sf.col(f"view.{field.name}"), _literal(absent[field.name], field)).alias(field.name)
        if field.name in absent
        else sf.col(f"view.{field.name}").alias(field.name)
        for field in _VIEW.fields
    ]


def _reason() -> Column:
    """Why the flat row cannot be used, or null. The first that holds is given."""
    missing = _any(sf.col(name).isNull() for name in required(View))
    return (
        sf.when(sf.col("schema_version") > SCHEMA_VERSION, sf.lit(UNKNOWN_VERSION))
        .when(sf.col("value").isNull() | ~sf.col("is_text") | sf.col(_CORRUPT).isNotNull(), sf.lit(UNDECODABLE))
        .when(missing | _not_allowed(), sf.lit(INVALID))
    )


def _not_allowed() -> Column:
    foreign = [~sf.col(name).isin(*values) for name, values in allowed_values(View).items()]
    customer = ~sf.col("customer_id").rlike(f"^{CUSTOMER_ID.pattern}\\z")
    # Null where an optional field is absent, which is allowed.
    # Postgres has no text with a zero character.
    zero = sf.col("view_id").contains("\0")
    return _any(sf.coalesce(condition, sf.lit(False)) for condition in (*foreign, *_out_of_bounds(), customer, zero))


def _out_of_bounds() -> list[Column]:
    """One condition for all columns of the same bounds: dozens of them would make every plan long."""
    columns = defaultdict(list)
    for name, its_bounds in bounds(View).items():
        columns[its_bounds].append(sf.col(name))
    conditions = []
    for (least, most), alike in columns.items():
        # Of one column the functions know no least and greatest; nulls they pass over.
        twice = [*alike, alike[0]]
        conditions += [sf.least(*twice) < least, sf.greatest(*twice) > most]
    return conditions


def _any(conditions: Iterable[Column]) -> Column:
    combined = sf.lit(False)
    for condition in conditions:
        combined = combined | condition
    return combined


def _literal(value: Any, field: StructField) -> Column:
    if isinstance(field.dataType, ArrayType):
        return sf.array(*map(sf.lit, value)).cast(field.dataType)
    if isinstance(field.dataType, MapType):
        pairs = [sf.lit(part) for pair in value.items() for part in pair]
        return sf.create_map(*pairs).cast(field.dataType)
    return sf.lit(value).cast(field.dataType)
