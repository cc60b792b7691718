"""Clients that invent values of dimensions: what they make of rollups is bounded, and every total stays exact."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession

from deploy.local.postgres import Postgres
from services.collector.customers.table import MIGRATIONS_DIR
from services.finalizer.serving.published import Rebuilt
from services.finalizer.streaming import rollups
from services.finalizer.streaming.recount import Recount, recount
from services.finalizer.transforms.rollups import MEASURES
from services.finalizer.warehouse import tables, views_table
from services.rim.database.migrations import migrate
from shared.schemas.view import View
from tests.integration.finalizer.finalizing import a_view
from tests.integration.finalizer.warehouse.warehousing import Warehouse, finalizer_settings

#: With several tasks: what is kept apart is chosen among the parts of each.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.usefixtures("several_tasks")]

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


def test_invented_values_make_few_rollups_with_exact_totals_and_a_customer_may_have_a_limit_of_its_own(
    warehouse: Warehouse,
) -> None:
    honest = [a_view(f"honest-{n}", cdn="akamai", watch_ms=1_000, viewer_id="one") for n in range(3)]
    dsn = warehouse.settings.customers_database
    migrate(dsn, "collector", MIGRATIONS_DIR)
    limit(dsn, "INSERT INTO collector.customers (customer_id, members_max) VALUES ('own', 20)")
    warehouse.land(
        [*invented(), *honest, a_view("other", customer="other", cdn="mine", watch_ms=1), *invented(customer="own")]
    )
    assert {customer: cdns(warehouse, customer) for customer in ("acme", "own")} == {"acme": 6, "own": 21}
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
    # A revision moves a view to another value: the hour is counted again as a whole. A limit is in force with the next batch.
    limit(dsn, "UPDATE collector.customers SET members_max = 2 WHERE customer_id = 'own'")
    late = [a_view(f"invented-{n}", cdn="late", watch_ms=n, revision=2, viewer_id=f"viewer-{n}") for n in (0, 7)]
    warehouse.land([*late, a_view("one-more", customer="own", cdn="one-more")])
    stored = rows(warehouse)
    expect_exact(stored)
    by_cdn = {row["members"][0]: row["views"] for row in of(stored, "hour")}
    assert by_cdn == {"akamai": 3, "late": 2, **{f"cdn-{n:02}": 1 for n in (1, 2, 3)}, "(other)": INVENTED - 5}
    assert cdns(warehouse, "own") == 3
    # And while the database of customers is away.
    limit(dsn, "ALTER SCHEMA limits RENAME TO away")
    warehouse.land([a_view("and-another", customer="own", cdn="and-another")])
    assert cdns(warehouse, "own") == 3
    with psycopg.connect(dsn) as connection:
        default = connection.execute("SELECT name, value FROM away.defaults").fetchall()
    assert default == [("members_max", MEMBERS_MAX)]


def limit(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(statement)


def test_an_hour_that_is_counted_by_minutes_is_counted_whole_when_it_has_too_many_members_or_other_sets(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilding = warehouse.driver.rebuilding
    monkeypatch.setattr(rebuilding, "_minutes_views_min", 0)
    parts: list[bool] = []

    def noted(*given: Any) -> Recount:
        parts.append(bool((again := recount(*given)).parts))
        return again

    monkeypatch.setattr(rollups, "recount", noted)
    few = [a_view(f"few-{n}", cdn=f"cdn-{n:02}", viewer_id=f"few-{n}") for n in range(MEMBERS_MAX)]
    later_ms = few[0].view_end_ms + 5 * 60_000
    warehouse.land(few)
    warehouse.land([a_view("later", cdn="cdn-00", viewer_id="later", view_end_ms=later_ms)])
    assert parts == [False, True]
    assert {row["members"][0]: row["views"] for row in of(rows(warehouse), "hour")} == {
        f"cdn-{n:02}": 1 + (n == 0) for n in range(MEMBERS_MAX)
    }
    # One value too many, in another minute: which ones are kept is known of the whole hour alone.
    warehouse.land([a_view("many", cdn="zzz", viewer_id="many", view_end_ms=later_ms + 60_000)])
    assert parts[2:] == [True, False]
    stored = rows(warehouse)
    assert [row["views"] for row in of(stored, "hour", "")] == [MEMBERS_MAX + 2]
    assert {row["members"][0]: row["views"] for row in of(stored, "hour")} == {
        "cdn-00": 2,
        **{f"cdn-{n:02}": 1 for n in range(1, MEMBERS_MAX)},
        "(other)": 1,
    }
    # With members added up, and with other sets of dimensions, minutes that are stored do not say enough.
    warehouse.land([a_view("late", cdn="cdn-00", viewer_id="late", view_end_ms=later_ms)])
    monkeypatch.setattr(rebuilding, "_sets", ((), ("source",), ("device",)))
    warehouse.land([a_view("last", device="TV", viewer_id="last", view_end_ms=later_ms)])
    assert parts[4:] == [False, False]
    devices = [row for row in rows(warehouse) if (row["grain"], row["dimensions"]) == ("hour", "device")]
    assert sum(row["views"] for row in devices) == MEMBERS_MAX + 4


def test_slices_of_very_many_groups_are_rebuilt_a_few_at_a_time(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "GROUPS_MAX", 3 * (MEMBERS_MAX + 1))
    at_once: list[int] = []
    publish = warehouse.driver.serving.publish

    def published(rebuilt: Rebuilt, **given: Any) -> None:
        at_once.append(len(rebuilt.slices))
        publish(rebuilt, **given)

    monkeypatch.setattr(warehouse.driver.serving, "publish", published)
    views = [
        a_view(f"{customer}-{n}", customer=customer, cdn=f"cdn-{n}", watch_ms=n)
        for customer in ("a", "b", "c", "d")
        for n in range(MEMBERS_MAX + 3)
    ]
    warehouse.land([*views, *invented()])
    # Five customers' hours; each has its total, its client and its members.
    assert sum(at_once) == 5
    assert max(at_once) <= 2
    stored = rows(warehouse)
    for customer in ("a", "b", "c", "d"):
        (total,) = [
            row for row in stored if (row["customer_id"], row["grain"], row["dimensions"]) == (customer, "hour", "")
        ]
        assert total["views"] == MEMBERS_MAX + 3
        assert cdns(warehouse, customer) == MEMBERS_MAX + 1


def test_a_batch_of_many_bytes_is_landed_in_pieces(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse.driver.landing, "_bytes_max", 20_000)
    held: list[int] = []
    lengths: list[int] = []
    bring = warehouse.driver.serving.bring_recent

    def brought(recent: Sequence[Sequence[Any]]) -> None:
        held.append(sum(len(one[-1]) for one in recent))
        lengths.extend(len(one[-1]) for one in recent)
        bring(recent)

    merged: list[int] = []
    merge = views_table.merge_views

    def merged_piece(spark: SparkSession, location: str, piece: DataFrame, days: Sequence[int], **named: Any) -> None:
        merged.append(piece.count())
        merge(spark, location, piece, days, **named)

    monkeypatch.setattr(warehouse.driver.serving, "bring_recent", brought)
    monkeypatch.setattr(views_table, "merge_views", merged_piece)
    warehouse.land(invented(), rebuilds=False)
    assert sum(merged) == INVENTED
    assert max(merged) < INVENTED
    warehouse.land([*invented(revision=2), a_view("one-more", watch_ms=1)], rebuilds=False)
    assert len(held) > 6
    # The last document that passes the bound is held as well.
    assert max(held) < 20_000 + max(lengths)
    with psycopg.connect(warehouse.settings.postgres_dsn.get_secret_value()) as connection:
        found = connection.execute(
            "SELECT count(*), count(DISTINCT view_id), sum(revision) FROM serving.views"
        ).fetchone()
    assert found == (INVENTED + 1, INVENTED + 1, 2 * INVENTED + 1)
    stored = warehouse.installation.table(tables.VIEWS.name, "SELECT view_id, revision FROM t")
    assert sorted(stored) == sorted([(f"invented-{n}", 2) for n in range(INVENTED)] + [("one-more", 1)])


def cdns(warehouse: Warehouse, customer: str) -> int:
    return sum(
        (row["customer_id"], row["grain"], row["dimensions"]) == (customer, "hour", "cdn") for row in rows(warehouse)
    )


def rows(warehouse: Warehouse) -> list[dict[str, Any]]:
    """Table `rollups`, read without Spark."""
    columns = ("grain", "customer_id", "dimensions", "members", *MEASURES)
    found = warehouse.installation.table(tables.ROLLUPS.name, f"SELECT {', '.join(columns)} FROM t")
    return [dict(zip(columns, row, strict=True)) for row in found]


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
