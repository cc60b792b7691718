"""What reads views in unit tests: DuckDB over a list of them, as it reads hot rows."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from services.query.core import answer as answers
from services.query.core.answer import About, Answer, Span
from services.query.core.question import Question
from services.query.core.sql import figures, statements
from services.query.core.sql.relation import relation
from services.query.core.sql.statements import Statement
from services.query.reading import pinned_table
from services.query.rim.engine import Engine
from services.query.rim.hot import kind_of
from shared.schemas.view import View
from tests.unit.query.parts.recounting import HOUR_MS, counts_at

ABOUT = About(Span(0, 1), None, [], None, is_exact=True, has_hot_rows=True)


class _Columns:
    """Those of views, made when they are first asked for: a file asks hundreds of questions about the same views."""

    def __init__(self, views: list[View]) -> None:
        self.of = list(views)
        self._views = [view for view in views if not view.deleted]
        self._hours = [counts_at(view) // HOUR_MS for view in self._views]
        self._fields: dict[str, pa.Array] = {
            "hour": pa.array(self._hours, pa.int64()),
            "customer_id": pa.array([view.customer_id for view in self._views], pa.string()),
        }
        self._custom: dict[str, pa.Array] = {}

    def field(self, name: str) -> pa.Array:
        if name not in self._fields:
            self._fields[name] = pa.array([getattr(view, name) for view in self._views], kind_of(name))
        return self._fields[name]

    def custom(self, key: str) -> pa.Array:
        if key not in self._custom:
            self._custom[key] = pa.array([view.custom.get(key) for view in self._views], pa.string())
        return self._custom[key]

    def places(self, one: Question) -> pa.Array:
        """Where the views of a question are."""
        first_hour, end_hour = one.range.first_hour, one.range.end_hour
        kept = [
            place
            for place, (hour, view) in enumerate(zip(self._hours, self._views, strict=True))
            if first_hour <= hour < end_hour and one.customers.has(view.customer_id)
        ]
        return pa.array(kept, pa.int64())


#: Those of the views that were asked about last.
_last: list[_Columns] = []


def _columns(views: list[View]) -> _Columns:
    if not _last or _last[0].of != views:
        _last[:] = [_Columns(views)]
    return _last[0]


def hot_rows(one: Question, views: list[View]) -> pa.Table:
    """Table `hot` of a question over these views."""
    columns = _columns(views)
    return pa.table(
        {name: columns.field(name) for name in ("hour", "customer_id", *statements.fields_of(one))}
        | {f"custom_{number}": columns.custom(key) for number, key in enumerate(statements.keys_of(one))}
    ).take(columns.places(one))


def in_memory(one: Question, views: list[View], asked: Statement) -> tuple[Statement, dict[str, pa.Table]]:
    """A statement over relation `hot` alone."""
    laid = relation(one, scans=[], has_hot_rows=True)
    sql = f"WITH views AS ({laid.sql}) SELECT * FROM ({asked.sql})"
    pinned = {} if one.pinned is None else {"pinned": pinned_table(one.pinned)}
    return Statement(sql, asked.parameters, asked.columns), {"hot": hot_rows(one, views)} | pinned


class ViewsInMemory:
    """Answers questions and statements from a list of views."""

    def __init__(self, engine: Engine, views: list[View]) -> None:
        self._engine = engine
        self._views = views

    async def answer(self, question: Question) -> Answer:
        """See `Answering`."""
        statement, tables = in_memory(question, self._views, figures.answering(question))
        found = answers.composed(question, await self._engine.ask(statement, tables), ABOUT)
        other = answers.beside(question, found)
        return found if other is None else answers.compared(other, found, await self.answer(other))

    async def rows(
        self, question: Question, asked: Callable[[Question], Sequence[Statement]]
    ) -> tuple[list[list[dict[str, Any]]], About]:
        """See `Answering`."""
        found = []
        for one in asked(question):
            statement, tables = in_memory(question, self._views, one)
            found.append(await self._engine.ask(statement, tables))
        return found, ABOUT

    async def first_rows(
        self, question: Question, asked: Sequence[Statement], rows_max: int
    ) -> tuple[list[dict[str, Any]], About]:
        """See `Answering`."""
        found: list[dict[str, Any]] = []
        for one in asked:
            statement, tables = in_memory(question, self._views, one)
            found += await self._engine.ask(statement, tables)
            if len(found) >= rows_max:
                break
        return found[:rows_max], ABOUT
