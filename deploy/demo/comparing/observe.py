"""Reads the figures of a running system: collectors' counters, the warehouse, the serving database, the players' account."""

import http.client
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError
from prometheus_client.parser import text_string_to_metric_families

from deploy.demo.comparing.compare import SUMS, Rollup, Row, Truth, ViewKey
from deploy.demo.comparing.latency import Landed
from shared.metrics import COLLECTOR_BEACONS_ACCEPTED

_REQUEST_SECONDS_MAX: Final = 5.0


class Warehouse:
    """The Delta table `views`, read without Spark."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "views"

    def count(self) -> int | None:
        """How many rows there are; None while there is no table."""
        found = self._query("SELECT count(*) AS rows FROM t")
        return None if found is None else int(found[0]["rows"])

    def rows(self, fields: Sequence[str]) -> list[dict[str, Any]]:
        """All rows, with these fields; none while there is no table."""
        columns = ", ".join(f'"{name}"' for name in fields)
        return self._query(f"SELECT {columns} FROM t") or []  # noqa: S608 - names of our own schema

    def fields(self) -> list[str]:
        """The names of the table's columns; none while there is no table."""
        try:
            return [str(column.name) for column in DeltaTable(self._path).schema().fields]
        except TableNotFoundError:
            return []

    def landings(self) -> list[Landed]:
        """When each row was finished and when it landed."""
        return [Landed(**row) for row in self.rows([field.name for field in fields(Landed)])]

    def _query(self, statement: str) -> list[dict[str, Any]] | None:
        return table_rows(self._path, statement)


def table_rows(path: Path, statement: str) -> list[dict[str, Any]] | None:
    """What a query of the Delta table there, which it calls `t`, gives; None while there is no table."""
    try:
        table = DeltaTable(path)
    except TableNotFoundError:
        return None
    found = QueryBuilder().register("t", table).execute(statement).read_all()
    names = found.schema.names
    columns = [found.column(name).to_pylist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def accepted(admin_ports: Sequence[int]) -> int | None:
    """The beacons that collectors on these admin ports have acknowledged; None when one does not answer."""
    total = 0.0
    for port in admin_ports:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_REQUEST_SECONDS_MAX)) as connection:
            try:
                connection.request("GET", "/metrics")
                text = connection.getresponse().read().decode()
            except (OSError, http.client.HTTPException):
                return None
        total += sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == COLLECTOR_BEACONS_ACCEPTED.name
        )
    return int(total)


def rollups(dsn: str) -> dict[str, Rollup]:
    """The serving database's figures of each customer, over all hours; empty before there is anything."""
    columns = ", ".join(f"sum({name})::bigint" for name in SUMS)
    buckets: dict[str, dict[int, int]] = defaultdict(dict)
    with psycopg.connect(dsn, connect_timeout=int(_REQUEST_SECONDS_MAX)) as connection:
        known = connection.execute("SELECT to_regclass('serving.rollups_hourly')").fetchone()
        if known is None or known[0] is None:
            return {}
        sums = connection.execute(
            f"SELECT customer_id, {columns} FROM serving.rollups_hourly GROUP BY customer_id"  # noqa: S608 - own names
        ).fetchall()
        for customer, bucket, count in connection.execute(
            "SELECT customer_id, bucket, sum(count)::bigint FROM serving.histograms_hourly"
            " WHERE metric = 'startup_ms' GROUP BY customer_id, bucket"
        ):
            buckets[customer][bucket] = count
    return {customer: Rollup(dict(zip(SUMS, values, strict=True)), buckets[customer]) for customer, *values in sums}


def published_ms(dsn: str) -> set[int]:
    """When the finalizer last published, ms since 1970: one moment, or none before the first."""
    with psycopg.connect(dsn, connect_timeout=int(_REQUEST_SECONDS_MAX)) as connection:
        known = connection.execute("SELECT to_regclass('finalizer.fence')").fetchone()
        if known is None or known[0] is None:
            return set()
        found = connection.execute(
            "SELECT round(extract(epoch FROM published_at) * 1000)::bigint FROM finalizer.fence"
            " WHERE published_at IS NOT NULL"
        )
        return {at_ms for (at_ms,) in found}


def written_ms(dsn: str) -> dict[ViewKey, int]:
    """When the hot row of each view was written, ms since 1970."""
    with psycopg.connect(dsn, connect_timeout=int(_REQUEST_SECONDS_MAX)) as connection:
        found = connection.execute(
            "SELECT customer_id, view_id, round(extract(epoch FROM written_at) * 1000)::bigint FROM serving.views"
        )
        return {(customer_id, view_id): at_ms for customer_id, view_id, at_ms in found}


def read_truths(paths: Sequence[Path]) -> Truth:
    """What the players' files hold now, as one account; empty before any is written. It is done when all are."""
    contents: list[Mapping[str, Any]] = [msgspec.json.decode(path.read_bytes()) for path in paths if path.exists()]
    totals: Counter[str] = Counter()
    for content in contents:
        totals.update(content["totals"])
    views: list[Row] = [view for content in contents for view in content["views"]]
    done = bool(paths) and len(contents) == len(paths) and all(content["done"] for content in contents)
    began_ms = min((content.get("began_ms", 0) for content in contents), default=0)
    return Truth(done=done, totals=totals, views=views, began_ms=began_ms)
