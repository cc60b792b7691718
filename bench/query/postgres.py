"""The same table in Postgres: a row a view, indexed by hour, with parallel workers as there are cores."""

import time
from pathlib import Path
from typing import Final

import duckdb
import psycopg

from bench.query.questions import Asked
from deploy.local.postgres import Postgres

_COLUMNS: Final = {
    "customer_id": "text",
    "hour": "bigint",
    "country": "text",
    "cdn": "text",
    "device": "text",
    "stream_type": "text",
    "video_title": "text",
    "asn": "bigint",
    "startup_ms": "bigint",
    "watch_ms": "bigint",
    "rebuffer_ms": "bigint",
    "playback_failed": "boolean",
}
_BYTES: Final = 1 << 20


class PostgresTable:
    """A server of its own with the table in it, until it is closed."""

    def __init__(self, folder: Path, files: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._server = Postgres(folder)
        self._server.start()
        self._connection = psycopg.connect(self._server.dsn, autocommit=True)
        listed = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
        self._connection.execute(f"CREATE UNLOGGED TABLE views ({listed})")
        text = folder / "views.csv"
        names = ", ".join(_COLUMNS)
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.execute(
                f"COPY (SELECT {names} FROM read_parquet('{files}/**/*.parquet')) TO '{text}' (HEADER false)"  # noqa: S608 - ours
            )
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY views ({names}) FROM STDIN (FORMAT csv)") as copy,
            text.open("rb") as file,
        ):
            while piece := file.read(_BYTES):
                copy.write(piece)
        text.unlink()
        self._connection.execute("CREATE INDEX ON views (hour)")
        self._connection.execute("VACUUM ANALYZE views")
        self._connection.execute("SET max_parallel_workers_per_gather = 2")
        self._connection.execute("SET work_mem = '256MB'")

    def ask(self, asked: Asked) -> tuple[float, int]:
        """How many ms the answer took, and how many rows it has."""
        sql = asked.sql.replace("countIf(playback_failed)", "count(*) FILTER (WHERE playback_failed)::float8")
        sql = sql.replace("count()", "count(*)").replace("sum(rebuffer_ms) /", "sum(rebuffer_ms)::float8 /")
        began = time.perf_counter()
        rows = self._connection.execute(sql.encode()).fetchall()
        return 1_000 * (time.perf_counter() - began), len(rows)

    def close(self) -> None:
        """Ends the server and deletes its data."""
        self._connection.close()
        self._server.stop()
        self._server.remove()
