"""Leaves out views of viewers who were forgotten: topic `views` has them for as long as its retention."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType


class Forgotten(NamedTuple):
    """Whose views are refused: those of this customer and viewer that began up to `forgotten_ms` (ms since 1970)."""

    customer_id: str
    #: SHA-256 of the id, as `rim.database.view_rows.as_text` has it; empty: every viewer of the customer.
    viewer: bytes
    forgotten_ms: int


SCHEMA: Final = StructType(
    [
        StructField("customer_id", StringType()),
        StructField("viewer", BinaryType()),
        StructField("forgotten_ms", LongType()),
    ]
)
#: What a viewer may be known by.
_IDS: Final = ("viewer_id", "viewer_user_id")


def frame_of(spark: SparkSession, forgotten: Sequence[Forgotten]) -> DataFrame:
    """These as a frame of `SCHEMA`."""
    rows = [(one.customer_id, bytearray(one.viewer), one.forgotten_ms) for one in forgotten]
    return spark.createDataFrame(rows, SCHEMA)


def without_forgotten(rows: DataFrame, forgotten: DataFrame) -> DataFrame:
    """Rows of `views.parse` without the views of forgotten viewers; `forgotten` is of `SCHEMA`, and small."""
    newest = forgotten.groupBy("customer_id", "viewer").agg(sf.max("forgotten_ms").alias("forgotten_ms"))
    gone = sf.broadcast(newest)
    for name in _IDS:
        same = (
            (rows["customer_id"] == gone["customer_id"])
            & ((_hash(rows[name]) == gone["viewer"]) | (sf.octet_length(gone["viewer"]) == 0))
            & (rows["first_append_ms"] <= gone["forgotten_ms"])
        )
        rows = rows.join(gone, same, "left_anti")
    return rows


def _hash(viewer: Column) -> Column:
    return sf.unhex(sf.sha2(sf.replace(viewer, sf.lit("\0"), sf.lit("\ufffd")).cast("binary"), 256))
