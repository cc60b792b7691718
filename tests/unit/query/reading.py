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
from tests.unit.query.recounting import HOUR_MS, counts_at

ABOUT = About(Span(0, 1), None, [], None, is_exact=True, has_hot_rows=True)


def hot_rows(one: Question, views: list[View]) -> pa.Table:
    """Table `hot` of a question over these views."""
    views = [view for view in views if not view.deleted]
    kept = [
        view
        for view in views
        if one.range.first_hour <= counts_at(view) // HOUR_MS < one.range.end_hour
        and one.customers.has(view.customer_id)
    ]
    return pa.table(
        {
            "hour": pa.array([counts_at(view) // HOUR_MS for view in kept], pa.int64()),
            "customer_id": pa.array([view.customer_id for view in kept], pa.string()),
            **{f: pa.array([getattr(view, f) for view in kept], kind_of(f)) for f in statements.fields_of(one)},
            **{
                f"custom_{number}": pa.array([view.custom.get(key) for view in kept], pa.string())
                for number, key in enumerate(statements.keys_of(one))
            },
        }
    )


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
