"""One view: its hot row in Postgres, its row in the warehouse, the beacons behind it, and its recording."""

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from psycopg.rows import tuple_row

from services.query.core.sql.statements import Statement
from services.query.rim.engine import Engine
from services.query.rim.warehouse import ViewsTable, WarehouseAway, path_of, removed_rows
from services.rim.database.pool import Postgres
from shared.partitioning import view_key

_HOT: Final = """
    SELECT document FROM serving.views
    WHERE customer_id = %(customer)s AND view_id = %(view)s AND NOT deleted AND (%(day)s::bigint IS NULL OR day = %(day)s)
    ORDER BY day DESC LIMIT 1
"""
_DAY_MS: Final = 86_400_000
#: A beacon is appended up to so long before or after what its view's row says.
_SLACK_MS: Final = 3_600_000


@dataclass(frozen=True)
class Place:
    """What names a view. `day` None: the newest."""

    customer_id: str
    view_id: str
    day: int | None = None


class SingleViews:
    """Looks up what there is of one view."""

    def __init__(self, postgres: Postgres, engine: Engine, views: ViewsTable, warehouse: Path) -> None:
        self._postgres = postgres
        self._engine = engine
        self._views = views
        self._warehouse = warehouse.resolve()

    async def hot(self, place: Place) -> dict[str, Any] | None:
        """Its hot row; None where there is none. Raises as `Postgres.ask`."""

        async def read(connection: psycopg.AsyncConnection) -> str | None:
            async with connection.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(_HOT, {"customer": place.customer_id, "view": place.view_id, "day": place.day})
                row = await cursor.fetchone()
                return row[0] if row is not None else None

        if "\0" in place.view_id:
            return None
        found = await self._postgres.ask(read)
        return None if found is None else msgspec.json.decode(found, type=dict[str, Any])

    async def landed(self, place: Place) -> dict[str, Any] | None:
        """Its row in the warehouse; None where there is none. Raises `WarehouseAway` and as `Engine.ask`."""
        snapshot = await asyncio.to_thread(self._views.snapshot)
        paths = [
            file.path for file in snapshot.files if file.may_have_view(place.customer_id, place.view_id, place.day)
        ]
        if not paths:
            return None
        removed = snapshot.removed_of(paths)
        options = "union_by_name = true, filename = true, file_row_number = true"
        marked = (
            "AND NOT EXISTS (SELECT 1 FROM removed AS r WHERE r.path = t.filename AND r.number = t.file_row_number)"
            if removed is not None
            else ""
        )
        of_day = "" if place.day is None else "AND t.day = ?"
        statement = Statement(
            f"SELECT to_json(t) FROM (SELECT * FROM read_parquet(?, {options}) AS t WHERE t.view_id = ? AND t.customer_id = ?"  # noqa: S608
            f" AND NOT t.deleted {marked} {of_day} ORDER BY t.day DESC LIMIT 1) AS t",
            (paths, place.view_id, place.customer_id, *([] if place.day is None else [place.day])),
            ("row",),
        )
        rows = await self._engine.ask(statement, {} if removed is None else {"removed": removed})
        return msgspec.json.decode(rows[0]["row"], type=dict[str, Any]) if rows else None

    async def beacons(
        self, place: Place, first_ms: int, last_ms: int, *, after: tuple[int, int] | None, rows_max: int
    ) -> list[dict[str, Any]]:
        """Its beacons as they were appended, in their order: place in the topic, append time, bytes. Raises as `landed`."""
        # A later play of a session is named by its number; its beacons have the session's key.
        session, _, number = place.view_id.rpartition(".")
        names = [place.view_id, *([session] if session and number.isdigit() else [])]
        behind, values = ("true", ()) if after is None else ("(t.kafka_timestamp_ms, t.kafka_offset) > (?, ?)", after)
        first_ms, last_ms = first_ms - _SLACK_MS, last_ms + _SLACK_MS
        return await self._read(
            "bronze",
            days=range(first_ms // _DAY_MS, last_ms // _DAY_MS + 1),
            columns=("partition", "offset", "appended_ms", "value"),
            select="SELECT t.kafka_partition, t.kafka_offset, t.kafka_timestamp_ms, t.value",
            where=f"t.key IN ({', '.join('?' * len(names))}) AND t.kafka_timestamp_ms BETWEEN ? AND ? AND {behind}",
            parameters=[*(view_key(place.customer_id, name) for name in names), first_ms, last_ms, *values],
            end=f"ORDER BY t.kafka_timestamp_ms, t.kafka_offset LIMIT {rows_max:d}",
        )

    async def recording(self, customer_id: str, session_id: str) -> tuple[int, int, int] | None:
        """How many payloads of a session are stored, and when the first and the last came; None without any. Raises as `landed`."""
        rows = await self._read(
            "recording_index",
            days=None,
            columns=("payloads", "first_ms", "last_ms"),
            select="SELECT count(DISTINCT t.sequence), min(t.at_ms), max(t.at_ms)",
            where="t.customer_id = ? AND t.session_id = ? AND t.state = 'stored'",
            parameters=[customer_id, session_id],
        )
        return (rows[0]["payloads"], rows[0]["first_ms"], rows[0]["last_ms"]) if rows and rows[0]["payloads"] else None

    async def _read(
        self,
        table: str,
        *,
        days: range | None,
        columns: tuple[str, ...],
        select: str,
        where: str,
        parameters: list[Any],
        end: str = "",
    ) -> list[dict[str, Any]]:
        """The rows of a table of these days that nobody has deleted; none where there is no such table."""
        paths, removed = await asyncio.to_thread(self._files, table, days)
        if not paths:
            return []
        options, marked = "union_by_name = true, hive_partitioning = false", ""
        if removed is not None:
            options += ", filename = true, file_row_number = true"
            marked = " AND NOT EXISTS (SELECT 1 FROM removed AS r WHERE r.path = t.filename AND r.number = t.file_row_number)"
        statement = Statement(
            f"{select} FROM read_parquet(?, {options}) AS t WHERE {where}{marked} {end}",
            (paths, *parameters),
            columns,
        )
        return await self._engine.ask(statement, {} if removed is None else {"removed": removed})

    def _files(self, table: str, days: range | None) -> tuple[list[str], pa.Table | None]:
        try:
            found = DeltaTable(self._warehouse / table)
            chosen = None if days is None else [("day", "in", [str(day) for day in days])]
            paths = [path_of(self._warehouse / table, path) for path in found.file_uris(file_pruning_predicate=chosen)]
            if not paths:
                return [], None
            return paths, removed_rows(found, partial(path_of, self._warehouse / table))
        except TableNotFoundError:
            return [], None
        except (DeltaError, OSError) as error:
            raise WarehouseAway(type(error).__name__) from error
