"""Relation `views` over files of the warehouse: also over those that were written before a field was added."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.query.core.calendar import Range
from services.query.core.customers import Customers
from services.query.core.question import AskedBreakdown, Question, understood
from services.query.core.sql.relation import Scan, relation
from services.query.rim.engine import Engine
from tests.unit.query.parts.recounting import HOUR_MS

HOUR = 240


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path, threads=1, memory_bytes_max=1 << 27, questions_max=1)
    yield made
    made.close()


def a_file(path: Path, **columns: pa.Array) -> str:
    pq.write_table(
        pa.table(
            {
                "hour": pa.array([HOUR], pa.int64()),
                "customer_id": ["acme"],
                "view_id": [path.stem],
                "deleted": [False],
                **columns,
            }
        ),
        path,
    )
    return str(path)


def by(dimensions: str) -> Question:
    given: dict[str, Any] = {"from_": str(HOUR * HOUR_MS), "to": str((HOUR + 1) * HOUR_MS)}
    return understood(
        AskedBreakdown(by=dimensions, metrics="startup_ms_p95", **given), lambda _: Customers(("acme",)), 0
    )


def custom() -> pa.Array:
    return pa.array([[("plan", "gold")]], pa.map_(pa.string(), pa.string()))


@pytest.mark.parametrize("has_removed", [False, True])
async def test_a_field_that_no_file_of_the_range_has_is_unknown_in_all_of_them(
    engine: Engine, tmp_path: Path, has_removed: bool
) -> None:
    former = a_file(tmp_path / "former.parquet")
    newer = a_file(
        tmp_path / "newer.parquet", startup_ms=pa.array([700], pa.int64()), cdn=pa.array(["one"]), custom=custom()
    )
    removed = {"removed": pa.table({"path": pa.array([], pa.string()), "number": pa.array([], pa.int64())})}

    async def read(*paths: str) -> list[tuple[Any, ...]]:
        asked = relation(by("cdn,custom.plan"), scans=[Scan(paths, has_removed=has_removed)], has_hot_rows=False)
        rows = await engine.ask(asked, removed if has_removed else {})
        return sorted(((row["startup_ms"], row["cdn"], row["custom_0"]) for row in rows), key=str)

    assert await read(former) == [(None, None, None)]
    assert await read(newer) == [(700, "one", "gold")]
    assert await read(former, newer) == [(700, "one", "gold"), (None, None, None)]


async def test_hours_between_two_ranges_that_are_compared_are_not_read(engine: Engine, tmp_path: Path) -> None:
    path = a_file(tmp_path / "one.parquet", cdn=pa.array(["one"]))
    hours = Range((HOUR - 9) * HOUR_MS, (HOUR + 9) * HOUR_MS)
    for first, end, count in ((HOUR, HOUR + 1, 0), (HOUR - 5, HOUR, 1), (HOUR + 1, HOUR + 5, 1)):
        question = replace(by("cdn"), range=hours, unread=Range(first * HOUR_MS, end * HOUR_MS))
        asked = relation(question, scans=[Scan((path,))], has_hot_rows=False)
        assert len(await engine.ask(asked, {})) == count
