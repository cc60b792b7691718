"""The warehouse's tables, each once: its place, columns, partitions, clustering and properties."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from services.finalizer import row_topics
from services.finalizer.failures import JobFailed
from services.finalizer.row_topics import RowTopic
from services.finalizer.transforms import forgotten
from services.finalizer.transforms.rollups import MEASURES
from services.finalizer.transforms.rows import columns_of
from services.finalizer.transforms.spark_schema import spark_schema
from services.finalizer.warehouse.table_log import described
from shared import topics
from shared.measures import HISTOGRAMS
from shared.schemas.view import View

log = structlog.get_logger(__name__)


class TableDiffers(JobFailed):
    """A table that is there has a column of another type than this code writes; the text names both."""


@dataclass(frozen=True)
class Table:
    """One Delta table. Columns are only ever added: a new meaning, or another type, is a new column under a new name."""

    name: str
    schema: StructType
    partition_by: tuple[str, ...] = ()
    #: What rows that are read together have in common: compaction lays them side by side.
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def path(self, warehouse: str) -> str:
        """The table's folder."""
        return f"{warehouse}/{self.name}"

    def sql_name(self, warehouse: str) -> str:
        """The table as SQL names it."""
        return "delta.`" + self.path(warehouse).replace("`", "``") + "`"

    def columns(self) -> dict[str, str]:
        """Types by name, as SQL writes them."""
        return types_by_name(self.schema)


def types_by_name(schema: StructType) -> dict[str, str]:
    """Types by name, as SQL writes them."""
    return {column.name: column.dataType.simpleString() for column in schema.fields}


def _fields(**types: DataType) -> list[StructField]:
    return [StructField(name, data_type) for name, data_type in types.items()]


_LONG: Final = LongType()
_TEXT: Final = StringType()

#: A revision marks the old row as deleted instead of copying its file.
_MARKS_DELETED: Final = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "50"}

#: Where a row came from: its place in topic `views` and the broker's append time. And when it landed: the wall clock just
#: before the write that brought this revision. Of a row that was reprocessed, the place of the last record folded into it.
PROVENANCE: Final = _fields(
    kafka_partition=IntegerType(), kafka_offset=_LONG, kafka_timestamp_ms=_LONG, landed_at_ms=_LONG
)

#: One row a view: its newest revision. `hour` (hours since 1970) is the rollup slice that the view counts in. A view that was
#: taken back stays, as `deleted`, so that an older revision cannot bring it back.
VIEWS: Final = Table(
    name="views",
    schema=StructType([*spark_schema(View).fields, *_fields(hour=_LONG), *PROVENANCE]),
    # The day never changes in a view's life, so no revision moves between partitions.
    partition_by=("day",),
    cluster_by=("customer_id", "hour"),
    # Bounds of what rows are looked up by; of a hundred columns they would only cost.
    properties={**_MARKS_DELETED, "delta.dataSkippingStatsColumns": "hour,customer_id,view_id"},
)

#: A new generation of views, made from `bronze`, beside the one that is read: the rows, by generation and view. `is_partial`
#: marks views of which `bronze` holds only a part: they are reported, and never swapped in.
REPROCESSED: Final = Table(
    name="reprocessed",
    schema=StructType([*VIEWS.schema.fields, *_fields(is_partial=BooleanType())]),
    partition_by=("generation", "day"),
    properties=VIEWS.properties,
)

#: What a swap has put aside, so that it can be taken back: the rows of `views` as they would be without `for_generation`.
#: `swapped_revision` is what the swap has put in its place; `absent` marks a view that had no row.
REPLACED: Final = Table(
    name="replaced",
    schema=StructType(
        [*VIEWS.schema.fields, *_fields(for_generation=_LONG, swapped_revision=_LONG, absent=IntegerType())]
    ),
    partition_by=("for_generation", "day"),
    properties=VIEWS.properties,
)

#: One row a group (`transforms.rollups`): minutes and hours of a slice, and days. `day` counts from 1970.
ROLLUPS: Final = Table(
    name="rollups",
    schema=StructType(
        [
            *_fields(grain=_TEXT, day=_LONG, start_ms=_LONG, hour=_LONG, customer_id=_TEXT),
            *_fields(dimensions=_TEXT, members=ArrayType(_TEXT)),
            *(StructField(name, _LONG if kind == "bigint" else DecimalType(38, 0)) for name, kind in MEASURES.items()),
            StructField("uniques", BinaryType()),
            *(StructField(f"{metric}_histogram", MapType(IntegerType(), _LONG)) for metric in HISTOGRAMS),
        ]
    ),
    partition_by=("day",),
    cluster_by=("customer_id", "dimensions"),
    properties={**_MARKS_DELETED, "delta.dataSkippingStatsColumns": "grain,hour,customer_id,dimensions,start_ms"},
)

_RECORD: Final = [
    *_fields(topic=_TEXT, kafka_partition=IntegerType(), kafka_offset=_LONG, kafka_timestamp_ms=_LONG, day=_LONG),
    *_fields(key=BinaryType(), value=BinaryType()),
    StructField(
        "headers", ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
    ),
    StructField("landed_at_ms", LongType()),
    # The cluster's id of the topic: one that is recreated counts its offsets again.
    StructField("topic_id", StringType()),
]
_RAW_PROPERTIES: Final = {
    "delta.checkpointInterval": "50",
    "delta.enableDeletionVectors": "true",
    "delta.dataSkippingStatsColumns": "kafka_partition,kafka_offset,kafka_timestamp_ms",
}

#: Every record of topic `beacons` as it was: bytes, headers, place and append time. `day` is that of the append.
BRONZE: Final = Table(
    "bronze", StructType(_RECORD), ("day",), ("kafka_partition", "kafka_offset"), properties=_RAW_PROPERTIES
)
#: The same of topic `late`: beacons of views that are closed.
LATE_RECORDS: Final = Table("late", StructType(_RECORD), ("day",), properties=_RAW_PROPERTIES)
#: The same of topic `rejected`, and of its headers the reason.
REJECTED: Final = Table(
    "rejected", StructType([*_RECORD, StructField("reason", StringType())]), ("day",), properties=_RAW_PROPERTIES
)

#: What is kept as it came, by topic. Each has a stream of its own, with the table's name.
RAW: Final[Mapping[str, Table]] = {
    topics.BEACONS.name: BRONZE,
    topics.LATE.name: LATE_RECORDS,
    topics.REJECTED.name: REJECTED,
}

#: Records of topic `views` that this code cannot read: kept whole, with the reason, until they are repaired.
UNPARSED: Final = Table(
    name="unparsed",
    schema=StructType([StructField("reason", StringType()), StructField("value", BinaryType()), *PROVENANCE]),
)


def _rows_of(topic: RowTopic) -> Table:
    fields = [*columns_of(topic).fields, *PROVENANCE]
    if topic.tombstone_of is not None:
        fields += _fields(deleted=BooleanType())
    if topic.day_of is not None:
        fields += _fields(day=_LONG)
    return Table(
        name=topic.name,
        schema=StructType(fields),
        partition_by=() if topic.day_of is None else ("day",),
        cluster_by=() if topic.day_of is None else topic.cluster_by,
        properties={
            **_MARKS_DELETED,
            "delta.dataSkippingStatsColumns": ",".join({**dict.fromkeys(topic.key), **dict.fromkeys(topic.cluster_by)}),
        },
    )


#: The outputs of applications, by topic (`row_topics`).
ROWS: Final[Mapping[str, Table]] = {topic.name: _rows_of(topic) for topic in row_topics.ALL}


#: Of recordings, its rows.
RECORDING_INDEX: Final = topics.RECORDING_INDEX.name

#: The same of applications' topics as `unparsed` of topic `views`. All their streams append to it.
UNPARSED_ROWS: Final = Table(
    name="unparsed_rows", schema=StructType([StructField("topic", StringType()), *UNPARSED.schema.fields])
)

#: Viewers who were forgotten: a serving database that is lost gets the list from here.
FORGOTTEN: Final = Table(name="forgotten", schema=forgotten.SCHEMA)

#: How far streams had come before rows were deleted, by topic and its id: a stream that begins again begins there.
LANDED: Final = Table(
    name="landed",
    schema=StructType(_fields(topic=_TEXT, topic_id=_TEXT, kafka_partition=IntegerType(), next_offset=_LONG)),
)

#: What no job expires.
_KEPT: Final = (FORGOTTEN, LANDED)
OF_VIEWS: Final = (VIEWS, REPROCESSED, REPLACED, ROLLUPS, BRONZE, LATE_RECORDS, REJECTED, UNPARSED)
OF_APPLICATIONS: Final = (*ROWS.values(), UNPARSED_ROWS)
ALL: Final = (*OF_VIEWS, *_KEPT, *OF_APPLICATIONS)


def those_of(rows_of: Collection[RowTopic]) -> list[Table]:
    """The tables of views, and those of these topics."""
    return [*OF_VIEWS, *_KEPT, *(ROWS[topic.name] for topic in rows_of), *([UNPARSED_ROWS] if rows_of else [])]


def layout_of(table: Table) -> dict[str, Any]:
    """A table's partition columns and column types as plain data, to be compared with another version's."""
    return {"partition_by": list(table.partition_by), "columns": table.columns()}


def ensure(
    spark: SparkSession,
    warehouse: str,
    *,
    auto_compact: bool,
    rows_of: Collection[RowTopic] = (),
    before_each: Callable[[], None] = lambda: None,
) -> None:
    """Creates what is missing: tables, and columns and properties that this version has; of applications those of `rows_of`.

    A table that has them all gets no commit. `before_each` is called before each table, and may raise. Raises `TableDiffers`.
    """
    for table in those_of(rows_of):
        before_each()
        properties = {**table.properties, "delta.autoOptimize.autoCompact": str(auto_compact).lower()}
        there = described(spark, table.path(warehouse))
        if there is None:
            # Also where its creation was interrupted. If something else is wrong with the folder, it fails with that.
            _create(spark, warehouse, table, properties)
            continue
        _add_columns(spark, warehouse, table, types_by_name(there.schema))
        _set_properties(spark, warehouse, table, properties, there.properties)


def _create(spark: SparkSession, warehouse: str, table: Table, properties: Mapping[str, str]) -> None:
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {table.sql_name(warehouse)} ({_columns(table.columns())}) USING delta"
        + (f" PARTITIONED BY ({', '.join(table.partition_by)})" if table.partition_by else "")
        + f" TBLPROPERTIES ({_pairs(properties)})"
    )


def _add_columns(spark: SparkSession, warehouse: str, table: Table, present: Mapping[str, str]) -> None:
    for name, wanted in table.columns().items():
        if present.get(name, wanted) != wanted:
            raise TableDiffers(
                f"column {name} of table {table.name} is {present[name]}, this version writes {wanted}:"
                " run the version that wrote it, or give FINALIZER_WAREHOUSE_DIR another folder"
            )
    gained = {name: kind for name, kind in table.columns().items() if name not in present}
    if gained:
        spark.sql(f"ALTER TABLE {table.sql_name(warehouse)} ADD COLUMNS ({_columns(gained)})")
        log.info("columns_added", table=table.name, columns=list(gained))


def _set_properties(
    spark: SparkSession, warehouse: str, table: Table, wanted: Mapping[str, str], present: Mapping[str, str]
) -> None:
    """Sets what is not as this version has it; other properties stay."""
    changed = {key: value for key, value in wanted.items() if present.get(key) != value}
    if changed:
        spark.sql(f"ALTER TABLE {table.sql_name(warehouse)} SET TBLPROPERTIES ({_pairs(changed)})")
        log.info("properties_set", table=table.name, properties=changed)


def _pairs(properties: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())


def _columns(types: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in types.items())
