"""What tests of the query service share: a serving database and a warehouse that no finalizer writes."""

import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import msgspec
import psycopg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from deploy.local.postgres import Postgres as Server
from services.finalizer.serving.database import Serving
from services.query.answering import Answering
from services.query.memory import Memory
from services.query.rim.columns import Columns
from services.query.rim.engine import Engine
from services.query.rim.hot import HotDatabase, kind_of
from services.query.rim.single import SingleViews
from services.query.rim.warehouse import ViewsTable
from services.rim.database.pool import Postgres
from shared.schemas.view import View
from tests.integration.serving.hot import write
from tests.unit.query.parts.recounting import HOUR_MS, counts_at

#: Lists of structs and of lists: no question reads them.
_LEFT_OUT = {"events", "cdn_trace", "player_measured", "custom"}


def as_table(views: Sequence[View]) -> pa.Table:
    """Views as the finalizer stores them."""
    fields = [field.name for field in msgspec.structs.fields(View) if field.name not in _LEFT_OUT]
    columns = {name: pa.array([getattr(view, name) for view in views], kind_of(name)) for name in fields}
    columns["custom"] = pa.array([list(view.custom.items()) for view in views], pa.map_(pa.string(), pa.string()))
    # First: only the first columns have statistics, by which files are known to have no row of an hour.
    return pa.table({"hour": pa.array([counts_at(view) // HOUR_MS for view in views], pa.int64()), **columns})


@dataclass
class Installation:
    """A serving database and a warehouse that nobody else writes."""

    dsn: str
    serving: Serving
    folder: Path

    def in_postgres(self, views: Sequence[View]) -> None:
        """Lands views as hot rows; Postgres has all there are."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            write(connection, views)
            connection.execute("UPDATE serving.coverage SET is_whole = true")

    def in_warehouse(self, views: Sequence[View]) -> None:
        """Appends views to the warehouse."""
        write_deltalake(
            self.folder / "views",
            as_table(views),
            partition_by=["day"],
            mode="append",
            configuration={"delta.enableDeletionVectors": "true"},
        )

    def out_of_warehouse(self, views: Sequence[View]) -> None:
        """Deletes these views, as they are, from the warehouse."""
        listed = ", ".join(f"'{view.view_id}'" for view in views)
        DeltaTable(self.folder / "views").delete(f"view_id IN ({listed})")

    def keep_from(self, hour: int) -> None:
        """Hot rows of hours before this one expire."""
        self.serving.keep_views(hour)
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("DELETE FROM serving.views WHERE hour < %s", (hour,))
            connection.execute("DELETE FROM serving.hot_slices")

    def settle(self, before_hour: int | None = None) -> None:
        """From now on the warehouse owns all slices before this hour."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("DELETE FROM serving.hot_slices WHERE hour < %s", (before_hour or 1 << 40,))

    @asynccontextmanager
    async def answering(self, rows_max: int = 100_000) -> AsyncIterator[Answering]:
        """What answers questions, from files and Postgres alone."""
        async with self.sources(rows_max) as (answering, _):
            yield answering

    @asynccontextmanager
    async def remembering(self, bytes_max: int = 1 << 30) -> AsyncIterator[tuple[Answering, Memory]]:
        """What answers questions from columns in memory too, from the first row on, and keeps no answers."""
        async with self.sources(columns=Columns(bytes_max), answers_bytes_max=0) as (answering, _):
            assert answering.memory is not None
            yield answering, answering.memory

    @asynccontextmanager
    async def sources(
        self, rows_max: int = 100_000, *, columns: Columns | None = None, answers_bytes_max: int = 1 << 20
    ) -> AsyncIterator[tuple[Answering, SingleViews]]:
        """What answers questions, and what finds single views."""
        postgres = Postgres(self.dsn, service="query", connections_max=2, seconds_max=60)
        await postgres.open()
        engine = Engine(self.folder, threads=1, memory_bytes_max=1 << 30, questions_max=1)
        table = ViewsTable(self.folder)
        memory = None if columns is None else Memory(columns, engine, rows_min=1)
        hot = HotDatabase(postgres, rows_max)
        try:
            yield (
                Answering(table, hot, engine, rows_max=10**9, answers_bytes_max=answers_bytes_max, memory=memory),
                SingleViews(postgres, engine, table, self.folder),
            )
        finally:
            if memory is not None:
                memory.close()
            engine.close()
            await postgres.close()


@asynccontextmanager
async def answering(
    dsn: str, folder: Path, *, connections_max: int = 2, seconds_max: float = 60
) -> AsyncIterator[Answering]:
    """What answers questions over any database; the warehouse in `folder` need not be there for sums."""
    postgres = Postgres(dsn, service="query", connections_max=connections_max, seconds_max=seconds_max)
    await postgres.open()
    engine = Engine(folder, threads=1, memory_bytes_max=1 << 30, questions_max=1)
    try:
        yield Answering(
            ViewsTable(folder), HotDatabase(postgres, 100_000), engine, rows_max=10**9, answers_bytes_max=1 << 20
        )
    finally:
        engine.close()
        await postgres.close()


@contextmanager
def installed(server: Server, folder: Path) -> Iterator[Installation]:
    """An installation of one's own, whose hot rows go back to 1970."""
    dsn = server.create_database(f"query_{uuid4().hex}")
    with closing(Serving(dsn, away_seconds_max=20, stop=threading.Event())) as serving:
        serving.open()
        serving.keep_views(0)
        yield Installation(dsn, serving, folder)
