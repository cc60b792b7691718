"""Answers a question: from sums, or from hot rows and the warehouse as they are at one moment; or from an earlier answer."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa

from services.query.core import answer as answers
from services.query.core import distributions
from services.query.core.answer import About, Answer, Source
from services.query.core.filters import Filter
from services.query.core.question import Question
from services.query.core.sql import figures, planning
from services.query.core.sql.coded import PLACE
from services.query.core.sql.planning import Way
from services.query.core.sql.relation import Scan, relation
from services.query.core.sql.statements import UNKNOWN_RANK, Statement
from services.query.memory import Asking, Loaded, Memory
from services.query.rim.engine import Engine
from services.query.rim.hot import HotDatabase, HotRows
from services.query.rim.threads import until_over
from services.query.rim.warehouse import File, Snapshot, ViewsTable

T = TypeVar("T")

#: The finalizer commits every few seconds at most; a question reads Postgres in milliseconds.
_ATTEMPTS: Final = 5
#: Answers of more figures are not kept: a thousand of them would be gigabytes.
_SIZE_MAX: Final = 5_000


class TooManyRows(RuntimeError):
    """A question would read more views than one may."""


class Unsettled(RuntimeError):
    """The warehouse changed whenever Postgres was read."""


@dataclass(frozen=True)
class Read:
    """What a question reads: a version of the warehouse, and what Postgres owns beside it."""

    snapshot: Snapshot
    hot: HotRows
    files: list[File]
    #: An earlier answer, where nothing of it has changed: then no hot rows were read.
    known: Answer | None = None


class Answering:
    """Answers questions, and keeps the last answers of each snapshot."""

    def __init__(
        self,
        table: ViewsTable,
        hot: HotDatabase,
        engine: Engine,
        *,
        rows_max: int,
        answers_max: int,
        memory: Memory | None = None,
    ) -> None:
        self._table = table
        self._hot = hot
        self._engine = engine
        #: None: all is read from files.
        self.memory = memory
        self._rows_max = rows_max
        self._answers_max = answers_max
        self._answers: OrderedDict[tuple[Any, ...], Answer] = OrderedDict()

    async def answer(self, question: Question, *, way: Way | None = None) -> Answer:
        """The answer, with the range beside it that it is compared with. Raises what its sources raise."""
        found = await self._one(question, way)
        other = answers.beside(question, found)
        return found if other is None else answers.compared(found, await self._one(other, way))

    async def rows(
        self, question: Question, asked: Callable[[Question], Sequence[Statement]]
    ) -> tuple[list[list[dict[str, Any]]], About]:
        """The rows of each statement over relation `views`, all of one moment. Raises what its sources raise."""
        read = await self.reading(question)
        found = []
        for statement in asked(question):
            whole, tables = _laid_out(question, read, statement)
            found.append(await self._engine.ask(whole, tables))
        return found, about_views(question, read)

    async def first_rows(
        self, question: Question, asked: Sequence[Statement], rows_max: int
    ) -> tuple[list[dict[str, Any]], About]:
        """The first rows of statements over relation `views`, one statement after the other until there are so many, all of one
        moment. Raises what its sources raise.
        """
        read = await self.reading(question)
        found: list[dict[str, Any]] = []
        for statement in asked:
            whole, tables = _laid_out(question, read, statement)
            found += await self._engine.ask(whole, tables)
            if len(found) >= rows_max:
                break
        return found[:rows_max], about_views(question, read)

    async def pour(self, question: Question, asked: Statement, take: Callable[[pa.RecordBatchReader], T]) -> T:
        """What `take` makes of the rows of a statement over relation `views`, as they come. Raises what its sources raise."""
        statement, tables = _laid_out(question, await self.reading(question), asked)
        return await self._engine.pour(statement, tables, take)

    async def _one(self, question: Question, way: Way | None) -> Answer:
        if (way or planning.way(question)) == "sums":
            return await self._of_sums(question)
        return await self._of_views(question)

    async def _of_sums(self, question: Question) -> Answer:
        table, published_ms = await self._hot.sums(question)
        statement = figures.adding_up(question)
        rows = await self._engine.ask(statement, {"sums": table})
        return await _composed(question, rows, _about(question, [Source("sums")], published_ms))

    async def _of_views(self, question: Question) -> Answer:
        read = await self._read(question)
        if read.known is not None:
            # The same figures; but others' views have come since, and say how new they are.
            about = msgspec.structs.replace(read.known.about, as_of_ms=_as_of_ms(read))
            return msgspec.structs.replace(read.known, about=about)
        rows = await (await self.views(question, read)).rows(partial(figures.answering, question))
        found = await _composed(question, rows, about_views(question, read))
        if answers.size(found) <= _SIZE_MAX:
            self._answers[question, read.snapshot.version, read.hot.identity] = found
        while len(self._answers) > self._answers_max:
            self._answers.popitem(last=False)
        return found

    async def views(self, question: Question, read: Read) -> "Views":
        """What has the views of a question, of what was read. Raises what DuckDB's `Engine` raises."""
        if self.memory is not None:
            kept = self.memory.find(question, read.files, _scans(read, read.files), read.hot.rows.num_rows)
            if kept is not None:
                beside = replace(read, files=[file for file in read.files if file.path not in kept.paths])
                has_rows = bool(beside.files) or read.hot.rows.num_rows > 0
                relation = _relation(question, beside) if has_rows else None
                loaded = await self.memory.loaded(question, kept, relation, _tables(question, beside))
                return Views(self._engine, question, read, loaded)
        return self.views_of_files(question, read)

    def views_of_files(self, question: Question, read: Read) -> "Views":
        """The same from files and hot rows alone: faster where a question wants few of many rows."""
        return Views(self._engine, question, read, None)

    async def reading(self, question: Question) -> Read:
        """What a question reads, for several statements of one moment; no earlier answer is looked for."""
        return await self._read(question, lambda *_: False)

    async def table_of(self, tables: Mapping[str, pa.Table], asked: Statement) -> pa.Table:
        """The rows of a statement over tables in memory alone."""
        return await self._engine.ask_table(asked, tables)

    async def _read(self, question: Question, find: Callable[[int, list[Answer], str], bool] | None = None) -> Read:
        """A version of the warehouse and what Postgres owns while that is the newest.

        A slice that Postgres has given up since is in that version as Postgres has it.
        """
        snapshot = await asyncio.to_thread(self._table.snapshot)
        for _ in range(_ATTEMPTS):
            known: list[Answer] = []
            looked = find or partial(self._find, question)
            hot = await self._hot.rows(question, partial(looked, snapshot.version, known))
            newest = await asyncio.to_thread(self._table.snapshot)
            if newest.version == snapshot.version:
                if known:
                    return Read(snapshot, hot, [], known[0])
                files = snapshot.files_for(question)
                if sum(file.rows for file in files) > self._rows_max:
                    raise TooManyRows
                return Read(snapshot, hot, files)
            snapshot = newest
        raise Unsettled

    def _find(self, question: Question, version: int, known: list[Answer], identity: str) -> bool:
        """Puts the earlier answer into `known`, if there is one; whether there is."""
        key = (question, version, identity)
        if (found := self._answers.get(key)) is None:
            return False
        self._answers.move_to_end(key)
        known.append(found)
        return True


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
            return await self._engine.ask(*_laid_out(self._question, self._read, asked(None)))
        return await self._engine.ask(*await self._loaded.laid_out(asked, ()))

    @property
    def few(self) -> "Views":
        """The few of them (`statements.IS_OF_FEW`), where columns in memory have these first; else all: a statement says which."""
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

    async def table(self, asked: Asking, marked: Sequence[Filter] = ()) -> pa.Table:
        """The same as a table. A statement with codes has column `mask`, a bit for each cohort of `marked`."""
        if self._loaded is None:
            return await self._engine.ask_table(*_laid_out(self._question, self._read, asked(None)))
        statement, tables = await self._loaded.laid_out(asked, marked)
        found = await self._engine.ask_table(statement, tables)
        return await until_over(self._loaded.with_texts, found, statement.texts_of)


async def _composed(question: Question, rows: list[dict[str, Any]], about: About) -> Answer:
    # A large one takes a third of a second: others are answered meanwhile.
    return await asyncio.to_thread(answers.composed, question, rows, about)


def _laid_out(question: Question, read: Read, asked: Statement) -> tuple[Statement, dict[str, pa.Table]]:
    """A statement over relation `views` as a whole one, and the tables that it reads besides files."""
    views = _relation(question, read)
    return replace(
        asked,
        sql=f"WITH views AS NOT MATERIALIZED ({views.sql}) SELECT * FROM ({asked.sql}) AS answer",  # noqa: S608
        parameters=(*views.parameters, *asked.parameters),
    ), _tables(question, read)


def _relation(question: Question, read: Read) -> Statement:
    return relation(question, scans=_scans(read, read.files), has_hot_rows=read.hot.rows.num_rows > 0)


def _tables(question: Question, read: Read) -> dict[str, pa.Table]:
    removed = read.snapshot.removed_of([file.path for file in read.files])
    beside = {"hot": read.hot.rows, "removed": removed, "owned": read.hot.owned, "moved": read.hot.moved}
    tables = {name: table for name, table in beside.items() if table is not None}
    if question.pinned is not None:
        tables["pinned"] = pinned_table(question.pinned)
    return tables


def _scans(read: Read, files: Sequence[File]) -> list[Scan]:
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


def about_views(question: Question, read: Read) -> About:
    """What an answer says of what was read for it."""
    sources = []
    if read.files:
        rows = sum(file.rows for file in read.files)
        sources.append(Source("warehouse", rows, read.snapshot.version, len(read.files)))
    if not read.hot.is_left_out:
        sources.append(Source("hot_rows", read.hot.rows.num_rows))
    return _about(question, sources, _as_of_ms(read), has_hot_rows=not read.hot.is_left_out)


def _as_of_ms(read: Read) -> int | None:
    if read.hot.is_left_out or read.hot.identity == "none":
        return read.snapshot.committed_ms
    return read.hot.published_ms or read.snapshot.committed_ms


def _about(question: Question, sources: list[Source], as_of_ms: int | None, *, has_hot_rows: bool = True) -> About:
    is_exact = question.field is None or distributions.is_exact(question.field)
    return About(answers.span(question.range), question.customers.listed, sources, as_of_ms, is_exact, has_hot_rows)
