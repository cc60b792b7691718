"""Which files of the warehouse a question reads, and what of them is deleted: as delta-rs reads the log."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from services.query.core.calendar import Range
from services.query.core.customers import Customers
from services.query.core.question import AskedBreakdown, Question, understood
from services.query.rim.warehouse import File, ViewsTable, WarehouseAway, WarehouseNew

HOUR_MS = 3_600_000


def append(folder: Path, *rows: tuple[int, int, str]) -> None:
    columns = list(zip(*rows, strict=True))
    table = pa.table(dict(zip(("day", "hour", "customer_id"), columns, strict=True)))
    write_deltalake(folder / "views", table, partition_by=["day"], mode="append")


def of(first_hour: int, end_hour: int, *customers: str) -> Question:
    given: dict[str, Any] = {"from_": str(first_hour * HOUR_MS), "to": str(end_hour * HOUR_MS)}
    return understood(AskedBreakdown(by="cdn", **given), lambda _: Customers(customers or None), 0)


def test_only_files_that_can_have_views_of_the_question_are_read(tmp_path: Path) -> None:
    append(tmp_path, (10, 240, "acme"), (10, 250, "beta"))
    append(tmp_path, (11, 264, "other"))

    snapshot = ViewsTable(tmp_path).snapshot()

    def read(question: Question) -> list[int]:
        return sorted(file.rows for file in snapshot.files_for(question))

    assert read(of(240, 300)) == [1, 2]
    assert read(of(251, 264)) == []
    assert read(of(250, 251)) == [2]
    assert read(of(240, 300, "acme")) == [2]
    assert read(of(240, 300, "acme", "zebra")) == [2]
    assert read(of(240, 300, "aaa")) == []
    # Hours between two ranges that are compared.
    between = Range(240 * HOUR_MS, 251 * HOUR_MS)
    assert read(replace(of(200, 300), unread=between)) == [1]
    assert read(replace(of(200, 300), unread=Range(241 * HOUR_MS, 290 * HOUR_MS))) == [2]


def test_a_file_without_bounds_may_have_anything_and_cut_bounds_hide_nobody() -> None:
    anything = File("a", 1, None, None, None, None)
    assert anything.may_have(of(1000, 1001, "acme"))
    assert anything.may_have(replace(of(1000, 1010, "acme"), unread=Range(1001 * HOUR_MS, 1009 * HOUR_MS)))
    # Of a longer text a writer keeps the beginning alone.
    cut = File("a", 1, 1000, 1000, "a" * 32, "b" * 32)
    assert cut.may_have(of(1000, 1001, "b" * 40))
    assert not cut.may_have(of(1000, 1001, "c"))


def test_a_newer_version_is_seen_and_the_same_is_not_read_again(tmp_path: Path) -> None:
    append(tmp_path, (10, 240, "acme"))
    table = ViewsTable(tmp_path)
    first = table.snapshot()

    assert table.snapshot() is first
    append(tmp_path, (10, 241, "acme"))
    assert (table.snapshot().version, len(table.snapshot().files)) == (1, 2)


def test_a_warehouse_that_is_not_there_is_new_until_it_is(tmp_path: Path) -> None:
    table = ViewsTable(tmp_path)
    with pytest.raises(WarehouseNew):
        table.snapshot()

    append(tmp_path, (10, 240, "acme"))

    assert table.snapshot().version == 0
    assert DeltaTable(tmp_path / "views").version() == 0


@pytest.mark.parametrize("lost", ["_delta_log", "_delta_log/00000000000000000000.json"])
def test_files_whose_log_is_lost_are_away_and_not_new(tmp_path: Path, lost: str) -> None:
    append(tmp_path, (10, 240, "acme"))
    lost_path = tmp_path / "views" / lost
    shutil.rmtree(lost_path) if lost_path.is_dir() else lost_path.unlink()

    with pytest.raises(WarehouseAway) as found:
        ViewsTable(tmp_path).snapshot()

    assert not isinstance(found.value, WarehouseNew)


def test_a_folder_that_the_finalizer_has_just_made_is_new(tmp_path: Path) -> None:
    (tmp_path / "views" / "_delta_log").mkdir(parents=True)
    with pytest.raises(WarehouseNew):
        ViewsTable(tmp_path).snapshot()


def test_a_table_whose_log_cannot_be_read_is_away_and_not_new(tmp_path: Path) -> None:
    append(tmp_path, (10, 240, "acme"))
    (log,) = (tmp_path / "views" / "_delta_log").glob("*.json")
    log.write_text("no log")

    with pytest.raises(WarehouseAway) as found:
        ViewsTable(tmp_path).snapshot()

    assert not isinstance(found.value, WarehouseNew)


def test_a_warehouse_that_was_there_is_away_and_not_new(tmp_path: Path) -> None:
    append(tmp_path, (10, 240, "acme"))
    table = ViewsTable(tmp_path)
    table.snapshot()

    (tmp_path / "views" / "_delta_log" / f"{1:020}.json").write_text("no log")
    with pytest.raises(WarehouseAway):
        table.snapshot()
    shutil.rmtree(tmp_path / "views")
    with pytest.raises(WarehouseAway) as found:
        table.snapshot()

    assert not isinstance(found.value, WarehouseNew)
