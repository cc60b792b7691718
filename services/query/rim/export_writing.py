"""Rows to a file, CSV or Parquet, a batch at a time: memory does not grow with the rows."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from services.query.core.resources.exports.exports import Format
from services.query.core.resources.exports.times import is_date, time_of
from services.rim.http.cells import BEGINS

#: See `services.rim.http.cells`.
_FORMULA: Final = f"^([{re.escape(BEGINS)}])"


class TooManyRowsToExport(RuntimeError):
    """An export has more rows than one may."""


def write_batches(
    reader: pa.RecordBatchReader, columns: Sequence[str], path: Path, kind: Format, *, rows_max: int, zone: str = "UTC"
) -> int:
    """Writes the first columns of all rows under these names, with their times; how many rows. Raises `TooManyRowsToExport`."""
    empty = [pa.array([], reader.schema.field(number).type) for number in range(len(columns))]
    schema = _table(columns, empty, kind, zone).schema
    rows = 0
    with _writer(path, schema, kind) as writer:
        for batch in reader:
            rows += batch.num_rows
            if rows > rows_max:
                raise TooManyRowsToExport
            arrays = [batch.column(number) for number in range(len(columns))]
            writer.write_table(_table(columns, arrays, kind, zone))
    return rows


def write_rows(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], path: Path, kind: Format, *, zone: str = "UTC"
) -> int:
    """Writes rows that are in memory, with their times; how many."""
    table = _table(columns, [pa.array([row[number] for row in rows]) for number in range(len(columns))], kind, zone)
    with _writer(path, table.schema, kind) as writer:
        writer.write_table(table)
    return len(rows)


def _table(columns: Sequence[str], arrays: Sequence[pa.Array], kind: Format, zone: str) -> pa.Table:
    """The columns as the file has them: behind moments and days the same in the zone's calendar."""
    found: dict[str, pa.Array] = {}
    for column, array in zip(columns, _cells(arrays, kind), strict=True):
        found[column] = array
        if (name := time_of(column)) is not None:
            found[name] = _dates(array) if is_date(name) else _times(array, kind, zone)
    return pa.table(found)


def _dates(days: pa.Array) -> pa.Array:
    return days.cast(pa.int32()).cast(pa.date32())


def _times(moments_ms: pa.Array, kind: Format, zone: str) -> pa.Array:
    """Timestamps of the zone; in CSV as ISO 8601 with the offset."""
    times = moments_ms.cast(pa.int64()).cast(pa.timestamp("ms", tz=zone))
    if kind != "csv":
        return times
    text = pc.strftime(times, format="%Y-%m-%dT%H:%M:%S%z")
    return pc.replace_substring_regex(text, pattern=r"([+-]\d\d)(\d\d)$", replacement=r"\1:\2")


def _cells(arrays: Sequence[pa.Array], kind: Format) -> list[pa.Array]:
    """The columns as the file has them: in CSV no text is a formula."""
    if kind != "csv":
        return list(arrays)
    return [
        pc.replace_substring_regex(one, pattern=_FORMULA, replacement=r"'\1") if _is_text(one.type) else one
        for one in arrays
    ]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _writer(path: Path, schema: pa.Schema, kind: Format) -> Any:
    return pa_csv.CSVWriter(path, schema) if kind == "csv" else pq.ParquetWriter(path, schema, compression="zstd")
