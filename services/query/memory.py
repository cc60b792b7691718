"""Answers a question from columns in memory, if most of its columns are there, and loads the missing ones."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import structlog

from services.query.core.filters import Codes
from services.query.core.question import Question
from services.query.core.sql import coded, statements
from services.query.core.sql.relation import Scan
from services.query.core.sql.statements import Statement
from services.query.rim.columns import Columns, Kept, TooManyValues
from services.query.rim.engine import Engine
from services.query.rim.marks import masks
from services.query.rim.warehouse import File

log = structlog.get_logger("services.query")

#: Fewer rows are read from files as quickly.
ROWS_MIN: Final = 200_000
#: Rows that are read from files and Postgres beside those in memory, at most.
_BESIDE_MAX: Final = 1_000_000


#: Makes a statement over relation `views`; with codes, one of `sql.coded`.
Asking = Callable[[Codes | None], Statement]


@dataclass(frozen=True)
class _Codes:
    """The numbers of a question's texts."""

    kept: Kept

    def place(self, field: str, value: str) -> int | None:
        values = self.kept.values.get(field)
        return None if values is None else values.place(value)

    def count(self, field: str) -> int:
        return len(self.kept.values[field])


class Memory:
    """Columns in memory, and what reads them: one file after the other, on a thread of its own."""

    def __init__(self, columns: Columns, engine: Engine, *, rows_min: int = ROWS_MIN) -> None:
        self._columns = columns
        self._engine = engine
        self._rows_min = rows_min
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="columns")
        self._under_way: set[tuple[str, str]] = set()

    def close(self) -> None:
        """Reads nothing further; waits for the file that is read."""
        self._reader.shutdown(cancel_futures=True)

    async def read_all(self) -> None:
        """Waits until all that was missed has been read."""
        await asyncio.get_running_loop().run_in_executor(self._reader, lambda: None)

    def find(self, question: Question, files: Sequence[File], scans: Sequence[Scan], hot_rows: int) -> Kept | None:
        """The rows of the question that are in memory, if they are most. What is missing is read from now on."""
        if not coded.can_answer(question):
            return None
        rows = {file.path: file.rows for file in files}
        plain = [path for scan in scans if scan.is_plain for path in scan.paths]
        if sum(rows[path] for path in plain) < self._rows_min:
            return None
        fields = statements.fields_of(question)
        kept = self._columns.find(plain, fields)
        self._have_read({path: rows[path] for path in plain}, fields)
        if kept is None:
            return None
        beside = hot_rows + sum(count for path, count in rows.items() if path not in kept.paths)
        return kept if beside <= min(_BESIDE_MAX, max(kept.table.num_rows, self._rows_min)) else None

    async def laid_out(
        self, question: Question, kept: Kept, views: Statement | None, tables: dict[str, pa.Table], asked: Asking
    ) -> tuple[Statement, dict[str, pa.Table]] | None:
        """The whole statement that asks `asked`, and its tables; None where texts have too many values.

        `views` is the relation of the rows that are not kept, over `tables`; None: there are none.
        """
        whole = kept.table
        if views is not None:
            condition, values = statements.conditions_of(question)
            beside = f"SELECT * FROM ({views.sql}) AS views WHERE {condition}"  # noqa: S608 - names of ours
            found = await self._engine.ask_table(Statement(beside, (*views.parameters, *values), views.columns), tables)
            try:
                whole = await asyncio.to_thread(self._columns.widened, kept, found)
            except TooManyValues:
                return None
        for field in coded.raw_texts(question):
            chunks = [kept.values[field].texts(chunk) for chunk in whole[field].chunks]
            whole = whole.append_column(f"text_{field}", pa.chunked_array(chunks))
        codes = _Codes(kept)
        if question.marked:
            whole = whole.append_column(coded.MASK, await asyncio.to_thread(masks, whole, question.marked, codes))
        laid, of_views = coded.relation(question, codes), asked(codes)
        texts = {one.column for one in question.by if one.column}
        used = {name: table for name, table in tables.items() if name == "pinned"}
        used |= {name: kept.values[text].table() for text in texts if (name := f"values_{text}") in of_views.sql}
        return replace(
            of_views,
            sql=f"WITH views AS NOT MATERIALIZED ({laid.sql}) SELECT * FROM ({of_views.sql}) AS answer",  # noqa: S608
            parameters=(*laid.parameters, *of_views.parameters),
        ), {**used, coded.TABLE: whole}

    @staticmethod
    def with_texts(kept: Kept, rows: pa.Table, columns: Mapping[str, str]) -> pa.Table:
        """Rows whose numbers in these columns, by name the field of each, are texts again."""
        for name, field in columns.items():
            place = rows.column_names.index(name)
            rows = rows.set_column(place, name, kept.values[field].among(rows[name]))
        return rows

    def _have_read(self, files: dict[str, int], fields: Sequence[str]) -> None:
        for path, names in self._columns.missing(files, fields).items():
            wanted = [name for name in names if (path, name) not in self._under_way]
            if wanted:
                self._under_way |= {(path, name) for name in wanted}
                self._reader.submit(self._read, path, wanted)

    def _read(self, path: str, fields: list[str]) -> None:
        try:
            self._columns.read(path, fields)
        except (OSError, pa.ArrowException) as error:
            # It may have been removed since; the question was answered without.
            log.warning("columns_not_read", kind=type(error).__name__)
        finally:
            self._under_way -= {(path, name) for name in fields}
