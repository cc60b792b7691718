"""The warehouse's tables, each once: where it lives, its columns, partitions and properties."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from services.finalizer.spark_schema import spark_schema
from shared.schemas.view import View

log = structlog.get_logger(__name__)


class TableDiffers(RuntimeError):
    """A table that is there has a column of another type than this code writes; the text names both."""


@dataclass(frozen=True)
class Table:
    """One Delta table. Columns are only ever added: a new meaning, or another type, is a new column under a new name."""

    name: str
    schema: StructType
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def path(self, warehouse_dir: Path) -> str:
        """The table's folder."""
        return str(warehouse_dir.absolute() / self.name)

    def sql_name(self, warehouse_dir: Path) -> str:
        """The table as SQL names it."""
        return "delta.`" + self.path(warehouse_dir).replace("`", "``") + "`"


#: Where a row came from: its place in topic `views` and the broker's append time. And when it landed: the wall clock just
#: before the write that brought this revision.
PROVENANCE: Final = (
    StructField("kafka_partition", IntegerType()),
    StructField("kafka_offset", LongType()),
    StructField("kafka_timestamp_ms", LongType()),
    StructField("landed_at_ms", LongType()),
)

#: One row a view: its newest revision. `hour` (hours since 1970) is the rollup slice that the view counts in.
VIEWS: Final = Table(
    name="views",
    schema=StructType([*spark_schema(View).fields, StructField("hour", LongType()), *PROVENANCE]),
    # The day never changes in a view's life, so no revision moves between partitions.
    partition_by=("day",),
    properties={
        # A revision marks the old row as deleted instead of copying its file.
        "delta.enableDeletionVectors": "true",
        # Bounds of what rows are looked up by; of a hundred columns they would only cost.
        "delta.dataSkippingStatsColumns": "hour,customer_id,view_id",
        "delta.checkpointInterval": "50",
    },
)

#: Records of topic `views` that are none this code knows: kept whole, with the reason, until someone repairs them.
UNPARSED: Final = Table(
    name="unparsed",
    schema=StructType([StructField("reason", StringType()), StructField("value", BinaryType()), *PROVENANCE]),
)

ALL: Final = (VIEWS, UNPARSED)


def ensure(spark: SparkSession, warehouse_dir: Path, *, auto_compact: bool) -> None:
    """Creates what is missing: tables, and columns that the schema has gained. Raises `TableDiffers`."""
    for table in ALL:
        properties = dict(table.properties) | {"delta.autoOptimize.autoCompact": str(auto_compact).lower()}
        pairs = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {table.sql_name(warehouse_dir)} ({_columns(table.schema.fields)}) USING delta"
            + (f" PARTITIONED BY ({', '.join(table.partition_by)})" if table.partition_by else "")
            + f" TBLPROPERTIES ({pairs})"
        )
        present = {
            column.name: column.dataType.simpleString()
            for column in spark.read.format("delta").load(table.path(warehouse_dir)).schema.fields
        }
        for column in table.schema.fields:
            wanted = column.dataType.simpleString()
            if present.get(column.name, wanted) != wanted:
                raise TableDiffers(
                    f"column {column.name} of table {table.name} is {present[column.name]}, this version writes {wanted}"
                )
        gained = [column for column in table.schema.fields if column.name not in present]
        if gained:
            spark.sql(f"ALTER TABLE {table.sql_name(warehouse_dir)} ADD COLUMNS ({_columns(gained)})")
            log.info("columns_added", table=table.name, columns=[column.name for column in gained])


def _columns(fields: list[StructField]) -> str:
    return ", ".join(f"`{column.name}` {column.dataType.simpleString()}" for column in fields)
