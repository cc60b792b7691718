"""Answers a question: from sums, or from hot rows and the warehouse as they are at one moment; or from an earlier answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa

from services.query.core import answer as answers
from services.query.core import distributions
from services.query.core.answer import About, Answer, Source
from services.query.core.question import Question
from services.query.core.sql import figures, planning
from services.query.core.sql.planning import Way
from services.query.core.sql.statements import Statement
from services.query.earlier import EarlierAnswers, name_of
from services.query.memory import Memory
from services.query.reading import Read, Views, laid_out, relation_of, scans_of, tables_of
from services.query.rim.engine import CALLER, Engine
from services.query.rim.hot import HotDatabase
from services.query.rim.warehouse import ViewsTable

T = TypeVar("T")

#: The finalizer commits every few seconds at most; a question reads Postgres in milliseconds.
_ATTEMPTS: Final = 5
#: Answers of more figures or rows are not kept: all others wait while they are made bytes.
_SIZE_MAX: Final = 5_000


class TooManyRows(RuntimeError):
    """A question would read more views than one may."""


class Unsettled(RuntimeError):
    """The warehouse changed whenever Postgres was read."""


class Answering:
    """Answers questions, and keeps the last answers of each snapshot."""

    def __init__(
        self,
        table: ViewsTable,
        hot: HotDatabase,
        engine: Engine,
        *,
        rows_max: int,
        answers_bytes_max: int,
        memory: Memory | None = None,
    ) -> None:
        self._table = table
        self._hot = hot
        self._engine = engine
        #: None: all is read from files.
        self.memory = memory
        self._rows_max = rows_max
        self._earlier = EarlierAnswers(answers_bytes_max)
        #: Of questions whose rows are in memory, with those that wait there for DuckDB: the next ones are ready when it is.
        self._held = engine.turns(2)

    async def answer(self, question: Question, *, way: Way | None = None) -> Answer:
        """The answer, with the range beside it that it is compared with. Raises what its sources raise."""
        found = await self._one(question, way)
        other = answers.beside(question, found)
        return found if other is None else answers.compared(other, found, await self._one(other, way))

    async def rows(
        self, question: Question, asked: Callable[[Question], Sequence[Statement]]
    ) -> tuple[list[list[dict[str, Any]]], About]:
        """The rows of each statement over relation `views`, all of one moment. Raises what its sources raise."""
        wanted = asked(question)
        name = name_of(question, [(one.sql, one.parameters) for one in wanted])
        async with self._holding(question, name) as read:
            if read.known is not None:
                rows, about = read.known
                return rows, msgspec.structs.replace(about, as_of_ms=_as_of_ms(read))
            found = []
            for statement in wanted:
                whole, tables = laid_out(question, read, statement)
                found.append(await self._engine.ask(whole, tables))
            about = about_views(question, read)
            if sum(map(len, found)) <= _SIZE_MAX:
                self._keep(name, read, (found, about))
            return found, about

    async def first_rows(
        self, question: Question, asked: Sequence[Statement], rows_max: int
    ) -> tuple[list[dict[str, Any]], About]:
        """The first rows of statements over relation `views`, one statement after the other until there are so many, all of one
        moment. Raises what its sources raise.
        """
        found: list[dict[str, Any]] = []
        async with self._holding(question) as read:
            for statement in asked:
                whole, tables = laid_out(question, read, statement)
                found += await self._engine.ask(whole, tables)
                if len(found) >= rows_max:
                    break
            return found[:rows_max], about_views(question, read)

    async def pour(self, question: Question, asked: Statement, take: Callable[[pa.RecordBatchReader], T]) -> T:
        """What `take` makes of the rows of a statement over relation `views`, as they come. Raises what its sources raise."""
        statement, tables = laid_out(question, await self.reading(question), asked)
        return await self._engine.pour(statement, tables, take)

    async def _one(self, question: Question, way: Way | None) -> Answer:
        if (way or planning.way(question)) == "sums":
            return await self._of_sums(question)
        return await self._of_views(question)

    async def _of_sums(self, question: Question) -> Answer:
        found = await self._hot.sums(question)
        if found is None:
            return await self._of_views(question)
        table, published_ms = found
        statement = figures.adding_up(question)
        rows = await self._engine.ask(statement, {"sums": table})
        return await _composed(question, rows, _about(question, [Source("sums")], published_ms))

    async def _of_views(self, question: Question) -> Answer:
        name = name_of(question)
        async with self._holding(question, name) as read:
            if read.known is not None:
                # The same figures; but others' views have come since, and say how new they are.
                earlier: Answer = read.known
                about = msgspec.structs.replace(earlier.about, as_of_ms=_as_of_ms(read))
                return msgspec.structs.replace(earlier, about=about)
            rows = await (await self.views(question, read)).rows(partial(figures.answering, question))
            found = await _composed(question, rows, about_views(question, read))
            if answers.size(found) <= _SIZE_MAX:
                self._keep(name, read, found)
            return found

    async def views(self, question: Question, read: Read) -> "Views":
        """What has the views of a question, of what was read. Raises what DuckDB's `Engine` raises."""
        if self.memory is not None:
            kept = self.memory.find(question, read.files, scans_of(read, read.files), read.hot.rows.num_rows)
            if kept is not None:
                beside = replace(read, files=[file for file in read.files if file.path not in kept.paths])
                has_rows = bool(beside.files) or read.hot.rows.num_rows > 0
                relation = relation_of(question, beside) if has_rows else None
                loaded = await self.memory.loaded(question, kept, relation, tables_of(question, beside))
                return Views(self._engine, question, read, loaded)
        return self.views_of_files(question, read)

    def views_of_files(self, question: Question, read: Read) -> "Views":
        """The same from files and hot rows alone: faster where a question wants few of many rows."""
        return Views(self._engine, question, read, None)

    async def reading(self, question: Question) -> Read:
        """What a question reads, for several statements of one moment; no earlier answer is looked for."""
        return await self._read(question)

    async def table_of(self, tables: Mapping[str, pa.Table], asked: Statement) -> pa.Table:
        """The rows of a statement over tables in memory alone."""
        return await self._engine.ask_table(asked, tables)

    @asynccontextmanager
    async def _holding(self, question: Question, name: bytes | None = None) -> AsyncIterator[Read]:
        """What a question reads, for as long as its turn is: rows of very many that wait for DuckDB would fill the memory."""
        who = CALLER.get()
        if name is not None and not self._held.is_free(*who):
            # An earlier answer has no rows, and waits for nobody.
            looked = await self._read(question, name, with_rows=False)
            if looked.known is not None:
                yield looked
                return
        async with self._held.turn(*who):
            yield await self._read(question, name)

    async def _read(self, question: Question, name: bytes | None = None, *, with_rows: bool = True) -> Read:
        """A version of the warehouse and what Postgres owns while that is the newest; or an earlier answer of this name.

        A slice that Postgres has given up since is in that version as Postgres has it. Without rows the answer alone is looked for.
        """
        snapshot = await asyncio.to_thread(self._table.snapshot)
        for _ in range(_ATTEMPTS):
            known: list[Any] = []
            find = partial(self._find, name, snapshot.version, known)
            hot = await self._hot.rows(question, find if with_rows else partial(_sought, find))
            newest = await asyncio.to_thread(self._table.snapshot)
            if newest.version == snapshot.version:
                if known or not with_rows:
                    return Read(snapshot, hot, [], known[0] if known else None)
                files = snapshot.files_for(question)
                if sum(file.rows for file in files) > self._rows_max:
                    raise TooManyRows
                return Read(snapshot, hot, files)
            snapshot = newest
        raise Unsettled

    def _find(self, name: bytes | None, version: int, known: list[Any], identity: str) -> bool:
        """Puts the earlier answer into `known`, if there is one; whether there is."""
        found = None if name is None else self._earlier.find(name_of(name, identity), version)
        if found is not None:
            known.append(found)
        return found is not None

    def _keep(self, name: bytes, read: Read, found: object) -> None:
        self._earlier.keep(name_of(name, read.hot.identity), read.snapshot.version, CALLER.get(), found)


def _sought(find: Callable[[str], bool], identity: str) -> bool:
    """Looks for the earlier answer; that no rows are needed, whether there is one or not."""
    return find(identity) or True


async def _composed(question: Question, rows: list[dict[str, Any]], about: About) -> Answer:
    # A large one takes a third of a second: others are answered meanwhile.
    return await asyncio.to_thread(answers.composed, question, rows, about)


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
