"""Files of exports: in CSV no text of a client is a formula; Parquet has it as it came."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.query.core.resources.exports import Format
from services.query.rim.export_writing import write_batches, write_rows

TEXTS = ["=cmd()", "+1", "-x", "@a", "\t=1", "\r=1", "plain", "a=b", None, ""]
SAFE = ["'=cmd()", "'+1", "'-x", "'@a", "'\t=1", "'\r=1", "plain", "a=b", "", ""]
NUMBERS = [-1 - number for number in range(len(TEXTS))]


def texts_of(path: Path, kind: Format) -> tuple[list[str | None], list[int]]:
    if kind == "parquet":
        table = pq.read_table(path)
        return table["title"].to_pylist(), table["n"].to_pylist()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["title"] for row in rows], [int(row["n"]) for row in rows]


@pytest.mark.parametrize(("kind", "found"), [("csv", SAFE), ("parquet", TEXTS)])
def test_rows_and_batches_have_no_formula_in_csv(tmp_path: Path, kind: Format, found: list[str | None]) -> None:
    columns = ["title", "n"]
    assert write_rows(columns, list(zip(TEXTS, NUMBERS, strict=True)), tmp_path / "rows", kind) == len(TEXTS)
    assert texts_of(tmp_path / "rows", kind) == (found, NUMBERS)
    for text in (pa.string(), pa.large_string()):
        batch = pa.record_batch([pa.array(TEXTS, text), pa.array(NUMBERS)], names=["a", "b"])
        reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
        assert write_batches(reader, columns, tmp_path / "batches", kind, rows_max=100) == len(TEXTS)
        assert texts_of(tmp_path / "batches", kind) == (found, NUMBERS)
