"""What DuckDB answers over views is what a recount in Python says: any question, over generated views."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from services.query.core import answer as answers
from services.query.core import statements
from services.query.core.answer import About, Answer, Span
from services.query.core.question import Question
from services.query.core.statements import Statement
from services.query.rim.engine import Engine
from services.query.rim.hot import kind_of
from shared.schemas.view import View
from tests.unit.query.asking import asked, expect, question
from tests.unit.query.recounting import HOUR_MS, a_view, counts_at

ABOUT = About(Span(0, 0), None, [], None, is_exact=True, has_hot_rows=True)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path, threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


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


def in_memory(one: Question, views: list[View]) -> tuple[Statement, dict[str, pa.Table]]:
    """A question over relation `hot` alone."""
    relation = statements.relation(one, scans=[], has_hot_rows=True)
    answering = statements.answering(one)
    sql = f"WITH views AS ({relation.sql}) SELECT * FROM ({answering.sql})"
    return Statement(sql, answering.parameters, answering.columns), {"hot": hot_rows(one, views)}


def answered(engine: Engine, one: Question, views: list[View]) -> Answer:
    statement, tables = in_memory(one, views)
    return answers.composed(one, asyncio.run(engine.ask(statement, tables)), ABOUT)


@pytest.mark.parametrize("seed", range(12))
def test_any_question_over_any_views_is_answered_as_a_recount_says(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    views = [a_view(chance, f"view-{number}") for number in range(chance.choice([0, 1, 30, 300]))]
    for _ in range(8):
        one = question(asked(chance))
        expect(one, answered(engine, one, views), views)
