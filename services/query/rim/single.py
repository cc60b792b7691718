"""One view: its hot row in Postgres, its row in the warehouse, the beacons behind it, and its recording."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import psycopg
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from psycopg.rows import tuple_row

from services.query.core.sql.statements import Statement
from services.query.rim.engine import Engine
from services.query.rim.warehouse import ViewsTable, WarehouseAway, path_of, removed_rows
from services.rim.database.pool import Asks
from shared.partitioning import view_key

T = TypeVar("T")

_HOT: Final = """
    SELECT document FROM serving.views
    WHERE customer_id = %(customer)s AND view_id = %(view)s AND NOT deleted AND (%(day)s::bigint IS NULL OR day = %(day)s)
    ORDER BY day DESC LIMIT 1
"""
_DAY_MS: Final = 86_400_000
#: A beacon is appended up to so long before or after what its view's row says.
_SLACK_MS: Final = 3_600_000
#: Beacons that are read at a time, at first and later: no more of them are in memory beyond the bytes that are asked for.
_FIRST_STEP_ROWS: Final = 125
_STEP_ROWS_MAX: Final = 1_000
#: The place of a beacon in the order of their append.
_APPENDED: Final = "(t.kafka_timestamp_ms, t.kafka_offset)"


@dataclass(frozen=True)
class Place:
    """What names a view. `day` None: the newest."""

    customer_id: str
    view_id: str
    day: int | None = None


@dataclass(frozen=True)
class Wanted:
    """Beacons with the key of a view, appended from `first_ms` to `last_ms`, and how much of them is read.

    The first one is read even if it is larger than that.
    """

    customer_id: str
    view_id: str
    first_ms: int
    last_ms: int
    rows_max: int
    bytes_max: int
    #: Append time and offset of the beacon after which they begin; None: with the first.
    after: tuple[int, int] | None = None


@dataclass(frozen=True)
class _Files:
    """The files of a table, and which of their rows are deleted."""

    paths: list[str]
    removed: pa.Table | None = None


#: What is made of rows of beacons; and whether there are more.
OfBeacons = Callable[[list[dict[str, Any]], bool], T]


class SingleViews:
    """Looks up what there is of one view."""

    def __init__(self, postgres: Asks, engine: Engine, views: ViewsTable, warehouse: Path) -> None:
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

    async def beacons(self, wanted: Wanted, make: OfBeacons[T]) -> T:
        """What `make` makes of beacons in the order of their append: place in the topic, append time, bytes. Raises as `landed`."""
        first_ms, last_ms = wanted.first_ms - _SLACK_MS, wanted.last_ms + _SLACK_MS
        files = await asyncio.to_thread(self._files, "bronze", range(first_ms // _DAY_MS, last_ms // _DAY_MS + 1))
        behind, after = ("true", ()) if wanted.after is None else (f"{_APPENDED} > (?, ?)", wanted.after)
        key = view_key(wanted.customer_id, wanted.view_id)
        # Their places first: to put beacons in order holds all of them in memory.
        places = await self._rows(
            files,
            columns=("appended_ms", "offset"),
            select="SELECT t.kafka_timestamp_ms, t.kafka_offset",
            where=f"t.key = ? AND t.kafka_timestamp_ms BETWEEN ? AND ? AND {behind}",
            parameters=[key, first_ms, last_ms, *after],
            end=f"ORDER BY t.kafka_timestamp_ms, t.kafka_offset LIMIT {wanted.rows_max + 1:d}",
        )
        rows: list[dict[str, Any]] = []
        bytes_left, step = wanted.bytes_max, _FIRST_STEP_ROWS
        while bytes_left > 0 and (batch := places[len(rows) : min(len(rows) + step, wanted.rows_max)]):
            found = await self._values(files, key, batch)
            assert found
            for row in found:
                bytes_left -= len(row["value"] or b"")
                if bytes_left < 0 and rows:
                    break
                rows.append(row)
            step = min(2 * step, _STEP_ROWS_MAX)
        return await self._engine.work(lambda: make(rows, len(rows) < len(places)))

    async def _values(self, files: _Files, key: bytes, places: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The beacons of a key at these places, which follow each other."""
        (from_ms, first), (until_ms, last) = ((one["appended_ms"], one["offset"]) for one in (places[0], places[-1]))
        return await self._rows(
            files,
            columns=("partition", "offset", "appended_ms", "value"),
            select="SELECT t.kafka_partition, t.kafka_offset, t.kafka_timestamp_ms, t.value",
            where="t.key = ? AND t.kafka_timestamp_ms BETWEEN ? AND ?"
            " AND NOT (t.kafka_timestamp_ms = ? AND t.kafka_offset < ?)"
            " AND NOT (t.kafka_timestamp_ms = ? AND t.kafka_offset > ?)",
            parameters=[key, from_ms, until_ms, from_ms, first, until_ms, last],
            end=f"ORDER BY t.kafka_timestamp_ms, t.kafka_offset LIMIT {len(places):d}",
        )

    async def recording(self, customer_id: str, session_id: str) -> tuple[int, int, int] | None:
        """How many payloads of a session are stored, and when the first and the last came; None without any. Raises as `landed`."""
        files = await asyncio.to_thread(self._files, "recording_index", None)
        rows = await self._rows(
            files,
            columns=("payloads", "first_ms", "last_ms"),
            select="SELECT count(DISTINCT t.sequence), min(t.at_ms), max(t.at_ms)",
            where="t.customer_id = ? AND t.session_id = ? AND t.state = 'stored'",
            parameters=[customer_id, session_id],
        )
        return (rows[0]["payloads"], rows[0]["first_ms"], rows[0]["last_ms"]) if rows and rows[0]["payloads"] else None

    async def _rows(
        self,
        files: _Files,
        *,
        columns: tuple[str, ...],
        select: str,
        where: str,
        parameters: list[Any],
        end: str = "",
    ) -> list[dict[str, Any]]:
        """The rows of these files that nobody has deleted."""
        if not files.paths:
            return []
        options, marked = "union_by_name = true, hive_partitioning = false", ""
        if files.removed is not None:
            options += ", filename = true, file_row_number = true"
            marked = " AND NOT EXISTS (SELECT 1 FROM removed AS r WHERE r.path = t.filename AND r.number = t.file_row_number)"
        statement = Statement(
            f"{select} FROM read_parquet(?, {options}) AS t WHERE {where}{marked} {end}",
            (files.paths, *parameters),
            columns,
        )
        return await self._engine.ask(statement, {} if files.removed is None else {"removed": files.removed})

    def _files(self, table: str, days: range | None) -> _Files:
        try:
            found = DeltaTable(self._warehouse / table)
            chosen = None if days is None else [("day", "in", [str(day) for day in days])]
            paths = [path_of(self._warehouse / table, path) for path in found.file_uris(file_pruning_predicate=chosen)]
            if not paths:
                return _Files([])
            return _Files(paths, removed_rows(found, partial(path_of, self._warehouse / table)))
        except TableNotFoundError:
            return _Files([])
        except (DeltaError, OSError) as error:
            raise WarehouseAway(type(error).__name__) from error
