"""What DuckDB answers over views is what a recount in Python says: any question, over generated views."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.query.core import answer as answers
from services.query.core.answer import About, Answer, Span
from services.query.core.question import Question
from services.query.core.sql import statements
from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.query.asking import asked, expect, question
from tests.unit.query.reading import in_memory
from tests.unit.query.recounting import a_view

ABOUT = About(Span(0, 0), None, [], None, is_exact=True, has_hot_rows=True)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path, threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


def answered(engine: Engine, one: Question, views: list[View]) -> Answer:
    statement, tables = in_memory(one, views, statements.answering(one))
    return answers.composed(one, asyncio.run(engine.ask(statement, tables)), ABOUT)


@pytest.mark.parametrize("seed", range(12))
def test_any_question_over_any_views_is_answered_as_a_recount_says(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    views = [a_view(chance, f"view-{number}") for number in range(chance.choice([0, 1, 30, 300]))]
    for _ in range(8):
        one = question(asked(chance))
        expect(one, answered(engine, one, views), views)
