"""Rows to a file, CSV or Parquet, a batch at a time: memory does not grow with the rows."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from services.query.core.resources.exports import Format
from services.rim.http.cells import BEGINS

#: See `services.rim.http.cells`.
_FORMULA: Final = f"^([{re.escape(BEGINS)}])"


class TooManyRowsToExport(RuntimeError):
    """An export has more rows than one may."""


def write_batches(reader: pa.RecordBatchReader, columns: Sequence[str], path: Path, kind: Format, rows_max: int) -> int:
    """Writes the first columns of all rows under these names; how many rows. Raises `TooManyRowsToExport`."""
    fields = [reader.schema.field(number) for number in range(len(columns))]
    schema = pa.schema([pa.field(name, field.type) for name, field in zip(columns, fields, strict=True)])
    rows = 0
    with _writer(path, schema, kind) as writer:
        for batch in reader:
            rows += batch.num_rows
            if rows > rows_max:
                raise TooManyRowsToExport
            arrays = [batch.column(number) for number in range(len(columns))]
            writer.write_batch(pa.record_batch(_cells(arrays, kind), schema=schema))
    return rows


def write_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], path: Path, kind: Format) -> int:
    """Writes rows that are in memory; how many."""
    arrays = _cells([pa.array([row[number] for row in rows]) for number in range(len(columns))], kind)
    table = pa.table(dict(zip(columns, arrays, strict=True)))
    with _writer(path, table.schema, kind) as writer:
        writer.write_table(table)
    return len(rows)


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
