"""Exports one day of a table to files that common tools can open."""

from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.warehouse import tables

TABLES: Final = {
    table.name: table for table in (tables.VIEWS, tables.ROLLUPS, tables.BRONZE, tables.LATE_RECORDS, tables.REJECTED)
}
FORMATS: Final = ("csv", "parquet")
_NESTED: Final = ("array", "map", "struct")


def export(spark: SparkSession, table: str, day: int, *, to: str, file_format: str) -> int:
    """Writes a table's rows of a day (since 1970) into the new folder `to`; returns how many there are.

    CSV has a header; what has no plain text in it is JSON (lists, maps) or base64 (bytes). Views that were taken back are left out.
    Raises `FileExistsError`.
    """
    if Path(to).exists():
        raise FileExistsError(f"{to} exists: an export makes its folder")
    rows = spark.read.format("delta").load(table).where(sf.col("day") == day)
    if "deleted" in rows.columns:
        rows = rows.where(~sf.col("deleted"))
    writer = (_flat(rows) if file_format == "csv" else rows).coalesce(1).write
    if file_format == "csv":
        writer.option("header", "true").option("escape", '"').csv(to)
    else:
        writer.parquet(to)
    return rows.count()


def _flat(rows: DataFrame) -> DataFrame:
    return rows.select(*(_as_text(rows, field.name) for field in rows.schema.fields))


def _as_text(rows: DataFrame, name: str) -> Column:
    kind = rows.schema[name].dataType.typeName()
    if kind in _NESTED:
        return sf.to_json(name).alias(name)
    # Spark breaks base64 into lines of 76 characters, as e-mail does; others take no line break in it (RFC 4648, section 3.1).
    return sf.translate(sf.base64(name), "\r\n", "").alias(name) if kind == "binary" else sf.col(name)
