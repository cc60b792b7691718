"""Checks the benchmark's tables with a second implementation (deltalake and DuckDB, without Spark).

Raises `Wrong`; then no figure is reported.
"""

import duckdb
import psycopg
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from bench.finalizer import inputs
from bench.finalizer.timing import expect
from services.finalizer.serving.published import Rebuilt
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.tables import Table
from services.finalizer.warehouse.views_table import read


def merged(spark: SparkSession, place: str, size: int, *, again: int, new: int, revision: int) -> None:
    """Every view exists once; the last `again` of the first `size` with their newest revision, the others unchanged."""
    views = read(spark, place, tables.VIEWS)
    expect(f"views in the table of {size:,}", views.count(), size + new)
    first = inputs.day_of(max(0, size - again))
    found = _ask(
        tables.VIEWS,
        place,
        "count(*), count(DISTINCT view_id), count(*) FILTER (WHERE revision <> 1), min(revision) FILTER (WHERE revision <> 1)",
        f"day >= {first}",
    )
    stand = size - (first - inputs.DAY) * inputs.VIEWS_A_DAY + new
    expect(
        f"views, distinct, revised, their revision, of the last days of {size:,}",
        found,
        (stand, stand, again, revision),
    )


def rebuilt(place: str, result: Rebuilt) -> None:
    """The rebuilt slices, and their totals by hour, are what the views say."""
    totals = [one for one in result.groups if one.grain == "hour" and one.dimensions == ""]
    measures = list(result.measures)
    at_views, at_watch = measures.index("views"), measures.index("watch_ms")
    found = sum(one.measures[at_views] for one in totals), int(sum(one.measures[at_watch] for one in totals))
    hours = sorted({one.hour for one in result.slices})
    pairs = ", ".join(f"({one.hour}, '{one.customer_id}')" for one in result.slices)
    wanted = _ask(
        tables.VIEWS,
        place,
        "count(*), sum(watch_ms)",
        f"NOT deleted AND hour IN ({', '.join(map(str, hours))}) AND (hour, customer_id) IN ({pairs})",
    )
    expect("views and watch time of the slices", found, wanted)


def whole(place: str, dsn: str, views: int) -> None:
    """Records once, and what `landed` checks."""
    expect(
        "records in bronze, distinct",
        _ask(tables.BRONZE, place, "count(*), count(DISTINCT kafka_offset)"),
        (views, views),
    )
    landed(place, dsn, views)


def landed(place: str, dsn: str, views: int) -> None:
    """Views once, rollups by hour and by day and the serving copy as a recount of the views has them."""
    expect("views, distinct", _ask(tables.VIEWS, place, "count(*), count(DISTINCT view_id)"), (views, views))
    by_hour = "SELECT hour, customer_id, count(*), sum(watch_ms) FROM t GROUP BY ALL ORDER BY ALL"
    wanted = _rows(tables.VIEWS, place, "hour, customer_id, watch_ms", "NOT deleted", by_hour)
    of_hours = "grain = 'hour' AND dimensions = ''"
    found = _rows(
        tables.ROLLUPS,
        place,
        "hour, customer_id, views, watch_ms",
        of_hours,
        "SELECT * FROM t ORDER BY hour, customer_id",
    )
    expect("rollups by hour are a recount", found == wanted, True)
    with psycopg.connect(dsn) as connection:
        served = connection.execute(
            "SELECT extract(epoch FROM start)::bigint / 3600 AS hour, customer_id, views, watch_ms::bigint"
            " FROM serving.rollups WHERE grain = 'hour' AND dimensions = '' ORDER BY 1, customer_id COLLATE \"C\""
        ).fetchall()
        days = connection.execute(
            "SELECT sum(views)::bigint FROM serving.rollups WHERE grain = 'day' AND dimensions = ''"
        ).fetchone()
    expect("the serving copy is a recount", served == wanted, True)
    expect("views of the served days", days, (views,))


def _ask(table: Table, place: str, columns: str, where: str = "true") -> tuple[int, ...]:
    query = f"SELECT {columns} FROM t WHERE {where}"  # noqa: S608 - SQL of ours
    answer = QueryBuilder().register("t", DeltaTable(table.path(place))).execute(query).read_all()
    return tuple(int(answer.column(name)[0].as_py()) for name in range(answer.num_columns))


def _rows(table: Table, place: str, columns: str, where: str, query: str) -> list[tuple[object, ...]]:
    """The rows of `query`, in which the table is `t`."""
    columns_query = f"SELECT {columns} FROM t WHERE {where}"  # noqa: S608 - SQL of ours
    t = QueryBuilder().register("t", DeltaTable(table.path(place))).execute(columns_query).read_all()
    with duckdb.connect() as connection:
        connection.register("t", t)
        return [
            tuple(int(value) if not isinstance(value, str) else value for value in found)
            for found in connection.execute(query).fetchall()
        ]
