"""DuckDB: runs statements in threads, within limits of memory, threads, questions and time; a statement can be stopped."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import pyarrow as pa

from services.query.core.sql.statements import Statement
from services.rim.turns.fair_turns import FairTurns

T = TypeVar("T")


#: Rows of a batch of what is poured.
_BATCH_ROWS: Final = 10_000
#: For whom a statement runs: an organisation, and its caller. Of the service's own work both are empty.
CALLER: Final = ContextVar("caller", default=("", ""))


class TooLarge(RuntimeError):
    """A question needs more memory than there is."""


class _Abandoned(RuntimeError):
    """The caller went away before its statement began: nobody sees this."""


class Engine:
    """One DuckDB in memory. It reads files below one folder, and no other program's.

    Organisations take turns, and the callers of each: one delays no statement of another but by the one that runs. An organisation
    leaves one thread of several to others, and so does a caller to others of its organisation.
    """

    def __init__(self, folder: Path, *, threads: int, memory_bytes_max: int, questions_max: int) -> None:
        self._connection = duckdb.connect(
            config={"threads": threads, "memory_limit": f"{memory_bytes_max}B", "temp_directory": ""}
        )
        for statement in (
            # It would be drawn on the process's output.
            "SET enable_progress_bar = false",
            "SET parquet_metadata_cache = true",
            "SET preserve_insertion_order = false",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
        ):
            self._connection.execute(statement)
        self._connection.execute("SET allowed_directories = [?]", [str(folder.resolve())])
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")
        self._threads = ThreadPoolExecutor(questions_max, thread_name_prefix="question")
        self._questions_max = questions_max
        self._turns = self.turns(1)
        # What takes minutes keeps no question waiting.
        self._long = ThreadPoolExecutor(1, thread_name_prefix="export")

    def close(self) -> None:
        """Waits for what runs."""
        self._threads.shutdown()
        self._long.shutdown()
        self._connection.close()

    def turns(self, times: int) -> FairTurns:
        """Turns of so many times as many as run at a time, shared as those are."""
        most = self._questions_max
        return FairTurns(times * most, of_one=max(1, times * (most - 1)), of_member=max(1, times * (most - 2)))

    async def ask(self, statement: Statement, tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
        """The rows of a statement over these tables. It stops when its caller does. Raises `TooLarge`."""
        return await self._run(lambda cursor: _rows(_executed(cursor, statement, tables), statement))

    async def work(self, work: Callable[[], T]) -> T:
        """What `work` returns, which counts as a question. A caller that goes away leaves when it is over."""
        return await self._run(lambda _: work())

    async def ask_table(self, statement: Statement, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The same as a table: for many rows."""
        return await self._run(lambda cursor: _arrow(cursor, statement, tables))

    async def pour(
        self, statement: Statement, tables: Mapping[str, pa.Table], take: Callable[[pa.RecordBatchReader], T]
    ) -> T:
        """What `take`, on a thread, makes of the rows as they come: for more rows than memory has room for."""
        return await self._run_on(self._long, lambda cursor: take(_poured(cursor, statement, tables)))

    async def _run(self, answer: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        async with self._turns.turn(*CALLER.get()):
            return await self._run_on(self._threads, answer)

    async def _run_on(self, threads: ThreadPoolExecutor, answer: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        cursor = self._connection.cursor()
        has_begun, is_abandoned = threading.Event(), threading.Event()

        def run() -> T:
            has_begun.set()
            if is_abandoned.is_set():
                raise _Abandoned
            return answer(cursor)

        running = asyncio.get_running_loop().run_in_executor(threads, run)
        try:
            return await asyncio.shield(running)
        except duckdb.OutOfMemoryException as error:
            raise TooLarge from error
        finally:
            is_abandoned.set()
            if not running.done():
                running.add_done_callback(_note_outcome)
                await _interrupted(running, cursor)
            cursor.close()


async def _interrupted(running: "asyncio.Future[Any]", cursor: duckdb.DuckDBPyConnection) -> None:
    """Stops a statement. An interrupt just before it begins is lost, so it is repeated until the thread has stopped it."""
    while not running.done():
        cursor.interrupt()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.wait({running}, timeout=0.05)


def _executed(
    cursor: duckdb.DuckDBPyConnection, statement: Statement, tables: Mapping[str, pa.Table]
) -> duckdb.DuckDBPyConnection:
    for name, table in tables.items():
        cursor.register(name, table)
    return cursor.execute(statement.sql, list(statement.parameters))


def _relation(
    cursor: duckdb.DuckDBPyConnection, statement: Statement, tables: Mapping[str, pa.Table]
) -> duckdb.DuckDBPyRelation:
    for name, table in tables.items():
        cursor.register(name, table)
    return cursor.sql(statement.sql, params=list(statement.parameters))


def _arrow(cursor: duckdb.DuckDBPyConnection, statement: Statement, tables: Mapping[str, pa.Table]) -> pa.Table:
    return _relation(cursor, statement, tables).to_arrow_table()


def _poured(
    cursor: duckdb.DuckDBPyConnection, statement: Statement, tables: Mapping[str, pa.Table]
) -> pa.RecordBatchReader:
    return _relation(cursor, statement, tables).to_arrow_reader(_BATCH_ROWS)


def _rows(executed: duckdb.DuckDBPyConnection, statement: Statement) -> list[dict[str, Any]]:
    return [dict(zip(statement.columns, row, strict=True)) for row in executed.fetchall()]


def _note_outcome(running: "asyncio.Future[Any]") -> None:
    """Its caller has gone: nobody else would look at the error."""
    if not running.cancelled():
        running.exception()
