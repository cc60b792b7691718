"""What a question reads at one moment, and statements over its views: in memory, or in files and hot rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from services.query.core.filters import Filter
from services.query.core.question import Question
from services.query.core.sql import planning
from services.query.core.sql.coded import PLACE
from services.query.core.sql.relation import Scan, relation
from services.query.core.sql.statements import UNKNOWN_RANK, Statement
from services.query.memory import Asking, Loaded
from services.query.rim.engine import Engine
from services.query.rim.hot import HotRows
from services.query.rim.warehouse import File, Snapshot
from services.rim.turns.thread_work import until_over


@dataclass(frozen=True)
class Read:
    """What a question reads: a version of the warehouse, and what Postgres owns beside it."""

    snapshot: Snapshot
    hot: HotRows
    files: list[File]
    #: An earlier answer, where nothing of it has changed: then no hot rows were read.
    known: Any = None


class Views:
    """The views of a question at one moment: in memory, or in files and hot rows. Its methods raise what `Engine` raises."""

    def __init__(self, engine: Engine, question: Question, read: Read, loaded: Loaded | None) -> None:
        self._engine = engine
        self._question = question
        self._read = read
        self._loaded = loaded

    async def rows(self, asked: Asking) -> list[dict[str, Any]]:
        """The rows of a statement over relation `views`."""
        if self._loaded is None:
            return await self._engine.ask(*laid_out(self._question, self._read, asked(None)))
        return await self._engine.ask(*self._loaded.laid_out(asked))

    @property
    def few(self) -> "Views":
        """The few of them (`lots.IS_OF_FEW`), where columns in memory have these first; else all: a statement says which."""
        return self if self._loaded is None else self._with(self._loaded.few())

    async def only(self, places: Asking) -> "Views":
        """Those of columns in memory whose places a statement finds; of files all: their columns would be read twice."""
        return self if self._loaded is None else self._with(replace(self._loaded, rows=await self._at(places)))

    async def with_others(self, places: Asking, views: "Views") -> "Views":
        """The same beside those of `views`."""
        if self._loaded is None or views._loaded is None:
            return self
        both = pa.concat_tables([views._loaded.rows, await self._at(places)])
        return self._with(replace(self._loaded, rows=both))

    def _with(self, loaded: Loaded) -> "Views":
        return Views(self._engine, self._question, self._read, loaded)

    async def _at(self, places: Asking) -> pa.Table:
        assert self._loaded is not None
        found = await self._engine.ask_table(*self._loaded.numbered(places))
        return await until_over(self._loaded.only, found[PLACE])

    async def table(self, asked: Asking) -> pa.Table:
        """The same as a table."""
        if self._loaded is None:
            return await self._engine.ask_table(*laid_out(self._question, self._read, asked(None)))
        statement, tables = self._loaded.laid_out(asked)
        found = await self._engine.ask_table(statement, tables)
        return await until_over(self._loaded.with_texts, found, statement.texts_of)

    @property
    def are_in_memory(self) -> bool:
        """Whether they are in columns in memory: then a statement may be asked of those of some cohorts alone."""
        return self._loaded is not None

    async def marked(self, asked: Asking, cohorts: Sequence[Filter]) -> list[dict[str, Any]]:
        """The rows of a statement over the views in memory of some of these cohorts: column `coded.MASK` has a bit a cohort."""
        assert self._loaded is not None
        return await self._engine.ask(*await until_over(self._loaded.marked, asked, cohorts))


def laid_out(question: Question, read: Read, asked: Statement) -> tuple[Statement, dict[str, pa.Table]]:
    """A statement over relation `views` as a whole one, and the tables that it reads besides files."""
    views = relation_of(question, read)
    return replace(
        asked,
        sql=f"WITH views AS NOT MATERIALIZED ({views.sql}) SELECT * FROM ({asked.sql}) AS answer",  # noqa: S608
        parameters=(*views.parameters, *asked.parameters),
    ), tables_of(question, read)


def relation_of(question: Question, read: Read) -> Statement:
    """Relation `views` over files and hot rows."""
    return relation(question, scans=scans_of(read, read.files), has_hot_rows=read.hot.rows.num_rows > 0)


def tables_of(question: Question, read: Read) -> dict[str, pa.Table]:
    """The tables that the relation reads besides files."""
    removed = read.snapshot.removed_of([file.path for file in read.files])
    beside = {"hot": read.hot.rows, "removed": removed, "owned": read.hot.owned, "moved": read.hot.moved}
    tables = {name: table for name, table in beside.items() if table is not None}
    if question.pinned is not None:
        tables["pinned"] = pinned_table(question.pinned)
    return tables


def scans_of(read: Read, files: Sequence[File]) -> list[Scan]:
    """How the files of the question are scanned."""
    removed = read.snapshot.removed_of([file.path for file in files])
    return planning.scans(
        files,
        removed_from=frozenset() if removed is None else frozenset(removed["path"].unique().to_pylist()),
        owned_hours=() if read.hot.owned is None else sorted(set(read.hot.owned["hour"].to_pylist())),
        moved_before=None if read.hot.moved is None else read.hot.since_hour,
    )


def pinned_table(keys: tuple[tuple[str | None, ...], ...]) -> pa.Table:
    """The groups that a question lists at any rank, as table `pinned` of its statement."""
    count = len(keys[0]) if keys else 2
    columns = {f"d{number}": pa.array([key[number] for key in keys], pa.string()) for number in range(count)}
    ranks = [UNKNOWN_RANK if count == 1 and key[0] is None else place for place, key in enumerate(keys, start=1)]
    return pa.table(columns | {"rank": pa.array(ranks, pa.int64())})
