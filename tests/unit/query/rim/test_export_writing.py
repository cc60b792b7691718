"""Files of exports: in CSV no text of a client is a formula; Parquet has it as it came."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.query.core.calendar import zones
from services.query.core.resources.exports.exports import Format
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


#: Berlin's clocks go forward between the two.
MOMENTS_MS = [1_774_742_399_999, 1_774_746_000_000, None]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_moments_and_days_have_times_of_the_zone_and_dates_beside_them(tmp_path: Path, kind: Format) -> None:
    columns, rows = ["from_ms", "day", "rebuffer_ms"], [[at_ms, 20_540, 7] for at_ms in MOMENTS_MS]
    write_rows(columns, rows, tmp_path / "rows", kind, zone="Europe/Berlin")
    arrays = [pa.array([row[number] for row in rows]) for number in range(3)]
    batch = pa.record_batch(arrays, names=["a", "b", "c"])
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    write_batches(reader, columns, tmp_path / "batches", kind, rows_max=9, zone="Europe/Berlin")

    for path in (tmp_path / "rows", tmp_path / "batches"):
        if kind == "csv":
            with path.open(newline="") as file:
                found = list(csv.DictReader(file))
            assert [row["from_at"] for row in found] == [
                "2026-03-29T00:59:59.999+01:00",
                "2026-03-29T03:00:00.000+02:00",
                "",
            ]
            assert {row["date"] for row in found} == {"2026-03-28"}
        else:
            table = pq.read_table(path)
            assert table.schema.field("from_at").type == pa.timestamp("ms", tz="Europe/Berlin")
            assert table["from_at"].cast(pa.int64()).to_pylist() == MOMENTS_MS
            assert {str(day) for day in table["date"].to_pylist()} == {"2026-03-28"}
            found = table.to_pylist()
        assert list(found[0]) == ["from_ms", "from_at", "day", "date", "rebuffer_ms"]


def test_every_time_zone_that_a_question_may_have_can_be_written(tmp_path: Path) -> None:
    assert len(zones()) > 400
    for name in zones():
        assert write_rows(["from_ms"], [[one] for one in MOMENTS_MS], tmp_path / "rows", "csv", zone=name) == 3
