"""Clients that invent values of dimensions: what they make of rollups is bounded, and every total stays exact."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pyspark.sql import SparkSession

from deploy.local.postgres import Postgres
from services.dashboard.queries import PostgresServing
from services.finalizer.transforms.rollups import MEASURES
from services.finalizer.warehouse import tables
from shared.schemas.view import View
from tests.integration.finalizing import MORNING_MS, a_view
from tests.integration.warehousing import Warehouse, finalizer_settings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

MEMBERS_MAX = 5
INVENTED = 60


@pytest.fixture
def warehouse(tmp_path: Path, spark: SparkSession, postgres: Postgres, empty_tables: Path) -> Iterator[Warehouse]:
    """One whose rollups keep few members apart."""
    dsn = postgres.create_database(f"cardinality_{uuid4().hex}")
    shutil.copytree(empty_tables, tmp_path / "warehouse")
    settings = finalizer_settings(tmp_path, dsn, slices_max="64", members_max=str(MEMBERS_MAX), rollup_by="cdn")
    opened = Warehouse(spark, settings, tmp_path)
    yield opened
    opened.close()


def invented(**fields: Any) -> list[View]:
    """Views each of which has a value of its own, in one hour."""
    return [
        a_view(f"invented-{n}", cdn=f"cdn-{n:02}", watch_ms=n, viewer_id=f"viewer-{n}", **fields)
        for n in range(INVENTED)
    ]


async def test_invented_values_make_few_rollups_with_exact_totals(warehouse: Warehouse) -> None:
    honest = [a_view(f"honest-{n}", cdn="akamai", watch_ms=1_000, viewer_id="one") for n in range(3)]
    warehouse.land([*invented(), *honest, a_view("other", customer="other", cdn="mine", watch_ms=1)])
    stored = rows(warehouse)
    assert {grain: len(of(stored, grain)) for grain in ("minute", "hour", "day")} == dict.fromkeys(
        ("minute", "hour", "day"), MEMBERS_MAX + 1
    )
    expect_exact(stored)
    by_cdn = {row["members"][0]: row["views"] for row in of(stored, "hour")}
    # Of equal ones the first by their texts.
    assert by_cdn == {"akamai": 3, **{f"cdn-{n:02}": 1 for n in range(4)}, "(other)": INVENTED - 4}
    # The same in Postgres, where the page says so to the customer.
    assert served(warehouse) == {
        (row["grain"], *row["members"]): row["views"] for row in [*of(stored, "hour"), *of(stored, "day")]
    }
    serving = PostgresServing(warehouse.settings.postgres_dsn.get_secret_value(), connections_max=1, seconds_max=20.0)
    await serving.open()
    found = await serving.rollups_since(datetime.fromtimestamp(MORNING_MS / 1_000, UTC))
    await serving.close()
    assert found.gathered == {"acme": ["cdn"]}
    # A revision moves a view to another value: the hour is counted again as a whole.
    warehouse.land(
        [a_view(f"invented-{n}", cdn="late", watch_ms=n, revision=2, viewer_id=f"viewer-{n}") for n in (0, 7)]
    )
    stored = rows(warehouse)
    expect_exact(stored)
    by_cdn = {row["members"][0]: row["views"] for row in of(stored, "hour")}
    assert by_cdn == {"akamai": 3, "late": 2, **{f"cdn-{n:02}": 1 for n in (1, 2, 3)}, "(other)": INVENTED - 5}


def rows(warehouse: Warehouse) -> list[dict[str, Any]]:
    table = warehouse.spark.read.format("delta").load(tables.ROLLUPS.path(warehouse.settings.warehouse_dir))
    return [row.asDict() for row in table.collect()]


def of(stored: list[dict[str, Any]], grain: str, dimensions: str = "cdn") -> list[dict[str, Any]]:
    return [
        row for row in stored if (row["customer_id"], row["grain"], row["dimensions"]) == ("acme", grain, dimensions)
    ]


def expect_exact(stored: list[dict[str, Any]]) -> None:
    """The members of a dimension add up to the total, in each measure."""
    for grain in ("minute", "hour", "day"):
        (total,) = of(stored, grain, "")
        for name in MEASURES:
            assert sum(row[name] for row in of(stored, grain)) == total[name], (grain, name)
        assert total["views"] == INVENTED + 3


def served(warehouse: Warehouse) -> dict[tuple[str, ...], int]:
    with psycopg.connect(warehouse.settings.postgres_dsn.get_secret_value()) as connection:
        found = connection.execute(
            "SELECT grain, members[1], views FROM serving.rollups WHERE customer_id = 'acme' AND dimensions = 'cdn'"
        )
        return {(grain, member): views for grain, member, views in found}
