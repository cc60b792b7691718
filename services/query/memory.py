"""Answers a question from columns in memory, if most of its columns are there, and loads the missing ones."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import structlog
from numpy.typing import NDArray

from services.query.core.filters import Codes, Filter
from services.query.core.question import Question
from services.query.core.sql import coded, statements
from services.query.core.sql.relation import Scan
from services.query.core.sql.statements import Statement
from services.query.rim.columns import VALUES_MAX, Columns, Kept, TooManyValues, Values
from services.query.rim.engine import Engine
from services.query.rim.marks import in_some, masks
from services.query.rim.warehouse import File
from services.rim.turns.thread_work import until_over

log = structlog.get_logger("services.query")

#: Fewer rows are read from files as quickly.
ROWS_MIN: Final = 200_000
#: Values of rows that are read from files and Postgres beside those in memory, at most: some 25 B each.
_BESIDE_MAX: Final = 5_000_000

#: Views of some cohort are copied if they are at most this part of all.
_FEW: Final = 0.25

#: Makes a statement over relation `views`; with codes, one of `sql.coded`.
Asking = Callable[[Codes | None], Statement]


@dataclass(frozen=True)
class Loaded:
    """All rows of a question in one table, texts as numbers; and `Codes`: what the numbers mean. For several statements."""

    question: Question
    rows: pa.Table
    #: Of those the few (`lots.IS_OF_FEW`), with the same columns. None: none of them says which rows these are.
    of_few: pa.Table | None
    values: Mapping[str, Values]
    #: Other tables that statements read.
    beside: Mapping[str, pa.Table]

    def place(self, field: str, value: str) -> int | None:
        """As `Codes`."""
        values = self.values.get(field)
        return None if values is None else values.place(value)

    def count(self, field: str) -> int:
        """As `Codes`."""
        return len(self.values[field])

    def numbered(self, asked: Asking) -> tuple[Statement, dict[str, pa.Table]]:
        """A statement that says which rows it finds, by `coded.PLACE`, and its tables."""
        places = pa.array(np.arange(self.rows.num_rows, dtype=np.uint32))
        return replace(self, rows=self.rows.append_column(coded.PLACE, places)).laid_out(asked, coded.PLACE)

    def few(self) -> "Loaded":
        """The few of its rows; all of them where these are not known."""
        return self if self.of_few is None else replace(self, rows=self.of_few)

    def only(self, places: pa.Array) -> pa.Table:
        """The rows at these places."""
        return _only(self.rows, np.sort(places.to_numpy()))

    def laid_out(self, asked: Asking, *beside: str) -> tuple[Statement, dict[str, pa.Table]]:
        """A statement over relation `views` as a whole one, and its tables. Relation and rows have the columns `beside` too."""
        relation, of_views = coded.relation(self.question, self, beside), asked(self)
        # Suspects read no texts: the numbers of a sample become texts afterwards.
        texts = () if self.question.shape == "suspects" else (one.column for one in self.question.by if one.column)
        values = {f"values_{text}": self.values[text].table() for text in texts}
        return replace(
            of_views,
            sql=f"WITH views AS NOT MATERIALIZED ({relation.sql}) SELECT * FROM ({of_views.sql}) AS answer",  # noqa: S608
            parameters=(*relation.parameters, *of_views.parameters),
        ), {**self.beside, **values, coded.TABLE: self.rows}

    def marked(self, asked: Asking, cohorts: Sequence[Filter]) -> tuple[Statement, dict[str, pa.Table]]:
        """A statement over the views of some cohort, and its tables. Column `coded.MASK` has a bit a cohort.

        It reads no dimensions but those of the filter. Where many views are in a cohort, it reads all, and masks of 0 too.
        """
        found = masks(self.rows, cohorts, self)
        places = in_some(found)
        question = replace(self.question, by=())
        rows = self.rows.select(coded.columns_of(question)).append_column(coded.MASK, found)
        if places.size <= _FEW * rows.num_rows:
            rows = _only(rows, places)
        return replace(self, question=question, rows=rows).laid_out(asked, coded.MASK)

    def with_texts(self, found: pa.Table, texts_of: Mapping[str, str]) -> pa.Table:
        """Rows of a statement, numbers in these columns as the texts of a field again."""
        for name, field in texts_of.items():
            found = found.set_column(found.column_names.index(name), name, self.values[field].among(found[name]))
        return found


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
        rows_max = min(_BESIDE_MAX // len(kept.table.column_names), max(kept.table.num_rows, self._rows_min))
        return kept if beside <= rows_max else None

    async def loaded(
        self, question: Question, kept: Kept, views: Statement | None, tables: dict[str, pa.Table]
    ) -> Loaded | None:
        """What is kept, and the other rows beside it; None where texts have too many values.

        `views` is the relation of those rows, over `tables`; None: there are none.
        """
        if views is not None:
            condition, values = statements.conditions_of(question)
            beside = f"SELECT * FROM ({views.sql}) AS views WHERE {condition}"  # noqa: S608 - names of ours
            found = await self._engine.ask_table(Statement(beside, (*views.parameters, *values), views.columns), tables)
            try:
                kept = await until_over(self._columns.widened, kept, found)
            except TooManyValues:
                log.info("columns_not_widened", rows=found.num_rows, values_max=VALUES_MAX)
                return None
        pinned = {name: table for name, table in tables.items() if name == "pinned"}
        of_few = None if kept.few is None else _with_texts(question, kept, kept.few)
        return Loaded(question, _with_texts(question, kept, kept.table), of_few, kept.values, pinned)

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


def _with_texts(question: Question, kept: Kept, rows: pa.Table) -> pa.Table:
    """Rows with the texts that metrics read as they are."""
    for field in coded.raw_texts(question):
        chunks = [kept.values[field].texts(chunk) for chunk in rows[field].chunks]
        rows = rows.append_column(f"text_{field}", pa.chunked_array(chunks, pa.dictionary(pa.uint16(), pa.string())))
    return rows


def _only(rows: pa.Table, places: NDArray[Any]) -> pa.Table:
    """The rows at these places, which are in order."""
    # Of a table Arrow would copy every column into one piece first.
    batches = rows.to_batches()
    if not batches:
        return rows
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    within = np.split(places, np.searchsorted(places, starts[1:-1]))
    found = [batch.take(pa.array(its - start)) for batch, its, start in zip(batches, within, starts[:-1], strict=True)]
    return pa.Table.from_batches(found, rows.schema)
