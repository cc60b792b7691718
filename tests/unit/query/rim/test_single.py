"""The beacons behind a view, from files: within a number of rows and of bytes, and of the key that is asked for alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from services.query.core.resources.view import one_view
from services.query.rim.engine import Engine
from services.query.rim.single import SingleViews, Wanted
from services.query.rim.warehouse import ViewsTable
from shared.partitioning import view_key
from tests.unit.processor.applications.video_views.beacons import T0
from tests.unit.query.parts.recounting import DAY_MS


def land(warehouse: Path, values: Sequence[bytes | None], view_id: str = "v1", first: int = 0) -> None:
    numbers = range(first, first + len(values))
    key = view_key("acme", view_id)
    write_deltalake(
        warehouse / "bronze",
        pa.table(
            {
                "key": pa.array([key] * len(values), pa.binary()),
                "value": pa.array(values, pa.binary()),
                "kafka_partition": pa.array([0] * len(values), pa.int32()),
                "kafka_offset": pa.array(numbers, pa.int64()),
                # Two of each moment: the offset decides.
                "kafka_timestamp_ms": pa.array([T0 + number // 2 for number in numbers], pa.int64()),
                "day": pa.array([T0 // DAY_MS] * len(values), pa.int64()),
            }
        ),
        partition_by=["day"],
        mode="append",
    )


def wanted(rows_max: int, bytes_max: int, after: tuple[int, int] | None = None, view_id: str = "v1") -> Wanted:
    return Wanted("acme", view_id, T0, T0 + 10_000, rows_max, bytes_max, after)


async def found(warehouse: Path, of: Wanted, memory_bytes_max: int = 1 << 28) -> tuple[list[dict[str, Any]], bool]:
    engine = Engine(warehouse, threads=2, memory_bytes_max=memory_bytes_max, questions_max=1)
    try:
        single = SingleViews(cast(Any, None), engine, ViewsTable(warehouse), warehouse)
        return await single.beacons(of, lambda rows, is_cut: (rows, is_cut))
    finally:
        engine.close()


@pytest.mark.thorough
async def test_beacons_are_read_in_order_up_to_a_number_of_rows_and_of_bytes(tmp_path: Path) -> None:
    assert await found(tmp_path, wanted(10, 100)) == ([], False)
    land(tmp_path, [b"3" * 10, b"4" * 10, None], first=3)
    land(tmp_path, [b"0" * 50, b"1" * 10, b"2" * 10])
    land(tmp_path, [b"other"], view_id="v1.5")

    async def offsets(*of: Any) -> tuple[list[int], bool]:
        rows, is_cut = await found(tmp_path, wanted(*of))
        return [row["offset"] for row in rows], is_cut

    assert await offsets(6, 90) == ([0, 1, 2, 3, 4, 5], False)
    assert await offsets(5, 90) == ([0, 1, 2, 3, 4], True)
    assert await offsets(6, 70) == ([0, 1, 2], True)
    # The first one is read whatever its size: with it a page goes on.
    assert await offsets(6, 1) == ([0], True)
    assert await offsets(6, 20, (T0, 0)) == ([1, 2], True)
    assert await offsets(6, 90, (T0 + 1, 2)) == ([3, 4, 5], False)
    assert await offsets(6, 90, None, "v1.5") == ([0], False)
    assert [row["value"] for row in (await found(tmp_path, wanted(2, 90)))[0]] == [b"0" * 50, b"1" * 10]


@pytest.mark.thorough
async def test_of_a_view_of_many_large_beacons_the_first_are_read_within_little_memory(tmp_path: Path) -> None:
    # Twice the memory that there is.
    for first in range(0, 10_000, 2_000):
        land(tmp_path, [b"%06d" % number * 9_000 for number in range(first, first + 2_000)], first=first)
    rows, is_cut = await found(tmp_path, wanted(10_000, 8_000_000))
    assert is_cut
    assert [row["offset"] for row in rows] == list(range(8_000_000 // 54_000))


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"source": "cmcd", "view_id": "s.2", "view_epoch": 2}, "s"),
        ({"source": "cmcd", "view_id": "1790.5", "view_epoch": 1}, "1790.5"),
        ({"source": "cmcd", "view_id": "1790.5.3", "view_epoch": 3}, "1790.5"),
        ({"source": "mux", "view_id": "1790.5", "view_epoch": 1}, "1790.5"),
        ({"source": "native", "view_id": "1790.5"}, "1790.5"),
        ({"view_id": "1790.5"}, "1790.5"),
    ],
)
def test_only_a_later_play_has_the_beacons_of_its_session(row: dict[str, Any], key: str) -> None:
    assert one_view.beacons_key(row) == key
