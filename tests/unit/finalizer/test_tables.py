"""The warehouse's schema only ever grows: what readers of the last release read, they find.

`tests/fixtures/warehouse-schema.json` is the schema of the last release. A release renews it, and nothing else does:
`.venv/bin/python -m services.finalizer schema > tests/fixtures/warehouse-schema.json`.
"""

import json
from pathlib import Path

from services.finalizer import row_topics
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.tables import Table, layout_of

PREVIOUS = json.loads((Path(__file__).parents[2] / "fixtures" / "warehouse-schema.json").read_text())


def test_no_table_and_no_column_of_the_last_release_is_gone_or_means_another_type() -> None:
    now = {table.name: layout_of(table) for table in tables.ALL}
    for name, previous in PREVIOUS.items():
        assert name in now, f"table {name} is gone"
        assert now[name]["partition_by"] == previous["partition_by"], f"table {name} is partitioned in another way"
        columns = now[name]["columns"]
        for column, kind in previous["columns"].items():
            assert columns.get(column) == kind, f"column {column} of {name} was {kind}, is {columns.get(column)}"


def test_every_partition_and_cluster_column_is_a_column() -> None:
    for table in tables.ALL:
        assert {*table.partition_by, *table.cluster_by} <= set(table.schema.fieldNames()), table.name


def test_a_path_with_a_backtick_stays_one_name() -> None:
    assert Table("t", tables.UNPARSED.schema).sql_name("/odd`place") == "delta.`/odd``place/t`"


def test_a_row_is_known_by_columns_that_its_table_has() -> None:
    for rows in row_topics.ALL:
        named = {*rows.key, *rows.revised_by, *rows.as_json, rows.day_of, rows.tombstone_of} - {None}
        assert named <= set(tables.ROWS[rows.name].schema.fieldNames()), rows.name
