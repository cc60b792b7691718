"""What tests of hot rows share: the service, generated views, the truth counted again by DuckDB, and what Postgres has."""

import os
import random
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import duckdb
import psycopg
import pyarrow as pa

from deploy.local.ports import free_port
from deploy.local.process import Child
from services.rim.database.view_rows import upsert_views
from services.serving.rows import newest, row_of
from shared.codec import VIEW
from shared.measures import COUNTED, COUNTED_MS, COUNTS, FIELDS, HISTOGRAMS, SUMMED
from shared.schemas.view import View
from shared.statistics.histogram import bucket_of
from tests.integration.finalizer.finalizing import HOUR_MS, MORNING_MS, a_view
from tests.integration.parts.installed import variables

DAY_MS = 24 * HOUR_MS
SOURCES = ("mux", "cmcd", "native")


#: After so long without a sign of life a process loses its partitions, ms.
SESSION_MS = 6_000


class Service:
    """A process of the service, and what it says."""

    def __init__(self, bootstrap: str, dsn: str, log_file: Path, **settings: str) -> None:
        self._admin = f"http://127.0.0.1:{(port := free_port())}"
        environ = os.environ | {
            **variables(bootstrap),
            "SERVING_POSTGRES_DSN": dsn,
            "SERVING_SESSION_MS": str(SESSION_MS),
            "SERVING_LIVE_DAYS": "0",
            "SERVING_ADMIN_HOST": "127.0.0.1",
            "SERVING_ADMIN_PORT": str(port),
            **{f"SERVING_{name.upper()}": value for name, value in settings.items()},
        }
        self.child = Child("serving", [sys.executable, "-m", "services.serving"], log_file=log_file, env=environ)
        self.child.start()

    def is_ready(self) -> bool:
        try:
            with urlopen(self._admin + "/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def pause(self) -> None:
        """Stops the process where it stands."""
        self.child.signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Lets it go on."""
        self.child.signal(signal.SIGCONT)

    def figure(self, name: str) -> float:
        with urlopen(self._admin + "/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(f"playhead_serving_{name}")))


def generated(chance: random.Random, name: str, revision: int = 1, **fields: Any) -> View:
    """A view of any measures; its day depends on its name alone, all else on chance."""
    of_name = random.Random(name)
    first_ms = MORNING_MS + of_name.randrange(2 * DAY_MS)
    last_ms = first_ms + chance.choice([0, chance.randrange(HOUR_MS), chance.randrange(20 * HOUR_MS)])
    end_ms = last_ms + chance.choice([0, -chance.randrange(HOUR_MS), 30 * DAY_MS, -30 * DAY_MS])
    given: dict[str, Any] = {
        "customer": of_name.choice(["acme", "other", "third"]),
        "revision": revision,
        "source": of_name.choice(SOURCES),
        "day": first_ms // DAY_MS,
        "first_append_ms": first_ms,
        "last_append_ms": last_ms,
        "view_start_ms": end_ms,
        "view_end_ms": end_ms,
        "country": chance.choice([None, "DE", "x" * 150, "zero\0character"]),
        "viewer_id": chance.choice([None, "viewer", "other viewer"]),
        "startup_ms": chance.choice([None, 0, 1, chance.randrange(20_000), 9_000_000_000_000]),
        "startup_unknown": chance.choice([None, "not_started", "start_lost", "first_frame_lost"]),
        "startup_failed": chance.random() < 0.2,
        "playback_failed": chance.random() < 0.2,
        "ebvs": chance.random() < 0.2,
        "view_dropped": chance.random() < 0.2,
        "deleted": chance.random() < 0.1,
        "bitrate_integral": chance.choice([0, 1 << 60]),
        **{
            field: chance.choice([0, chance.randrange(1_000_000), 9_000_000_000_000])
            for field in set(SUMMED.values()) - {"bitrate_integral"}
        },
        **fields,
    }
    return a_view(name, **given)


def write(connection: psycopg.Connection, views: Iterable[View]) -> None:
    """Lands views as the service does, in one transaction."""
    rows = [row_of(VIEW.encode(view)) for view in views]
    assert not any(isinstance(row, str) for row in rows), rows
    with connection.transaction():
        upsert_views(connection, newest(row for row in rows if not isinstance(row, str)))


Sums = list[tuple[Any, ...]]


def recounted(views: Iterable[View], since_hour: int = 0) -> tuple[Sums, Sums]:
    """Sums and histograms of hours and minutes, counted by DuckDB with the expressions of `shared.measures`."""
    columns = (
        "customer_id",
        "view_id",
        "source",
        "deleted",
        "first_append_ms",
        "last_append_ms",
        "view_end_ms",
        *FIELDS,
    )
    texts, flags = {"customer_id", "view_id", "source", "startup_unknown"}, set(FIELDS) - _NUMBERS | {"deleted"}
    kinds = {name: pa.string() if name in texts else pa.bool_() if name in flags else pa.int64() for name in columns}
    views = list(views)
    table = pa.table({name: pa.array([getattr(view, name) for view in views], kind) for name, kind in kinds.items()})
    with duckdb.connect() as connection:
        connection.register("v", table)
        connection.execute(
            f"CREATE VIEW c AS SELECT *, CAST(floor({COUNTED_MS} / 3600000) AS bigint) AS hour,"
            f" CAST(floor({COUNTED_MS} / 60000) AS bigint) AS minute FROM v WHERE {COUNTS}"
        )
        measures = [
            *(f"count(*) FILTER (WHERE {condition})" for condition in COUNTED.values()),
            *(f"sum({field})::varchar" for field in SUMMED.values()),
        ]
        sums = [
            (*row[: -len(SUMMED)], *map(int, row[-len(SUMMED) :]))
            for grain in ("hour", "minute")
            for row in connection.execute(
                f"SELECT '{grain}', {grain}, customer_id, source, {', '.join(measures)} FROM c WHERE hour >= {since_hour}"
                " GROUP BY ALL"
            ).fetchall()
        ]
        values = [
            (hour, customer, source, metric, bucket_of(value))
            for metric in HISTOGRAMS
            for hour, customer, source, value in connection.execute(
                f"SELECT hour, customer_id, source, {metric} FROM c WHERE {metric} IS NOT NULL AND hour >= {since_hour}"
            ).fetchall()
        ]
    counts: dict[tuple[Any, ...], int] = {}
    for one in values:
        counts[one] = counts.get(one, 0) + 1
    return sorted(sums), sorted((*key, count) for key, count in counts.items())


#: Fields of `FIELDS` that are no flags.
_NUMBERS = {*SUMMED.values(), *HISTOGRAMS}


def kept(connection: psycopg.Connection) -> tuple[Sums, Sums]:
    """The same, as the triggers keep them."""
    names = ", ".join((*COUNTED, *SUMMED))
    sums = connection.execute(f"SELECT grain, start, customer_id, source, {names} FROM serving.sums").fetchall()
    histograms = connection.execute("SELECT * FROM serving.histograms").fetchall()
    return sorted((*row[: -len(SUMMED)], *map(int, row[-len(SUMMED) :])) for row in sums), sorted(histograms)
