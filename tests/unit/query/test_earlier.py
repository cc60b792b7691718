"""Earlier answers: nothing is computed again while its views are the same, and what is kept has a bound."""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from services.query.answering import Answering
from services.query.core.answer import About, Breakdown, Figure, Group, Span
from services.query.core.question import Asked, Question
from services.query.core.sql.statements import Statement
from services.query.earlier import EarlierAnswers, name_of
from services.query.rim.engine import CALLER, Engine
from services.query.rim.hot import HotRows
from services.query.rim.warehouse import Snapshot
from shared.schemas.view import View
from tests.unit.query.http.test_hostile import InMemory, NoWarehouse
from tests.unit.query.parts import asking
from tests.unit.query.parts.reading import hot_rows
from tests.unit.query.parts.recounting import DAY_MS, T0_MS, a_view

MIB = 1 << 20
WITHIN = {"from_": str(T0_MS - DAY_MS), "to": str(T0_MS + 6 * DAY_MS)}
NOT_COUNTED = Statement("SELECT 0 AS n FROM views LIMIT 1", (), ("n",))
COUNTED = Statement("SELECT count(*) AS n FROM views", (), ("n",))


class Counting(Engine):
    """Knows how many statements it was asked."""

    asked = 0

    async def ask(self, statement: Statement, tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
        self.asked += 1
        return await super().ask(statement, tables)


class Hot(InMemory):
    """Hot rows that change when a test says so."""

    identity = "first"

    async def rows(self, question: Question, is_known: Callable[[str], bool]) -> HotRows:
        known = is_known(self.identity)
        return HotRows(self.identity, self.read, hot_rows(question, [] if known else self._views), None, None)


class Warehouse(NoWarehouse):
    """A warehouse without views, of any version."""

    version = 1

    def snapshot(self) -> Snapshot:
        return Snapshot(self.version, (), 0, None)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Counting]:
    made = Counting(tmp_path, threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def views() -> list[View]:
    chance = random.Random(15)
    return [a_view(chance, f"view-{number}") for number in range(30)]


@pytest.mark.parametrize("of", ["answer", "rows"])
async def test_what_was_answered_is_not_computed_again_while_its_views_are_the_same(
    engine: Counting, views: list[View], of: str
) -> None:
    hot, warehouse = Hot(views), Warehouse(Path())
    answering = Answering(warehouse, hot, engine, rows_max=10**9, answers_bytes_max=MIB)
    question = asking.question(Asked(metrics="views,rebuffer_fraction", **WITHIN))

    async def ask(statement: Statement = COUNTED) -> Any:
        if of == "answer":
            found = await answering.answer(question, way="views")
            return found.metrics, found.about  # type: ignore[union-attr]
        return await answering.rows(question, lambda _: [statement])

    figures, about = await ask()
    hot.read = 7
    assert await ask() == (figures, about.__class__(**{**_fields(about), "as_of_ms": 7}))
    assert engine.asked == 1
    hot.identity = "second"
    await ask()
    warehouse.version = 2
    await ask()
    assert engine.asked == 3
    assert (await ask())[0] == figures
    assert engine.asked == 3
    if of == "rows":
        assert (await ask(NOT_COUNTED))[0] == [[{"n": 0}]]


def _fields(about: About) -> dict[str, Any]:
    return {name: getattr(about, name) for name in about.__struct_fields__}


def a_breakdown(number: int, groups: int) -> Breakdown:
    about = About(Span(0, 1), ["acme"], [], None, is_exact=True, has_hot_rows=True)
    listed = [
        Group("value", [f"{number}-{one}"], [f"{number}-{one}"], one, {"views": Figure(one, one)})
        for one in range(groups)
    ]
    return Breakdown(about, ["viewer"], groups, listed)


def test_what_is_kept_has_a_bound_and_who_asks_much_takes_no_place_of_others() -> None:
    earlier = EarlierAnswers(MIB)
    few = {name_of("few", number): a_breakdown(number, 3) for number in range(20)}
    for name, answer in few.items():
        earlier.keep(name, 1, ("a", ""), answer)
    for number in range(100):
        earlier.keep(name_of("many", number), 1, ("b", ""), a_breakdown(number, 1_000))
        assert earlier.size_bytes <= MIB
    assert {name: earlier.find(name, 1) for name in few} == few
    assert earlier.find(name_of("many", 0), 1) is None
    assert earlier.find(name_of("many", 99), 1) == a_breakdown(99, 1_000)


def test_an_answer_that_was_used_is_kept_longer_than_one_that_was_not() -> None:
    earlier = EarlierAnswers(MIB)
    for number in range(2):
        earlier.keep(name_of(number), 1, ("a", ""), a_breakdown(number, 1_000))
    one = earlier.size_bytes // 2
    for number in range(2, 2 + MIB // one):
        assert earlier.find(name_of(0), 1) is not None
        earlier.keep(name_of(number), 1, ("a", ""), a_breakdown(number, 1_000))
    assert earlier.find(name_of(1), 1) is None


@pytest.mark.parametrize("bytes_max", [0, 1_000])
def test_what_has_no_room_is_not_kept(bytes_max: int) -> None:
    earlier = EarlierAnswers(bytes_max)
    earlier.keep(name_of(1), 1, ("a", ""), a_breakdown(1, 1_000))
    assert (earlier.find(name_of(1), 1), earlier.size_bytes) == (None, 0)


def test_answers_of_an_older_version_go_and_an_answer_that_comes_twice_counts_once() -> None:
    earlier = EarlierAnswers(MIB)
    earlier.keep(name_of(1), 1, ("a", ""), a_breakdown(1, 1_000))
    once = earlier.size_bytes
    earlier.keep(name_of(1), 1, ("b", ""), a_breakdown(1, 1_000))
    assert earlier.size_bytes == once
    earlier.keep(name_of(2), 2, ("a", ""), a_breakdown(2, 10))
    assert earlier.size_bytes < once
    assert earlier.find(name_of(1), 1) is None


async def test_answers_are_those_of_the_caller_that_asked_first(engine: Counting, views: list[View]) -> None:
    answering = Answering(Warehouse(Path()), Hot(views), engine, rows_max=10**9, answers_bytes_max=20_000)

    async def ask(caller: str, limit: int) -> None:
        CALLER.set(("acme", caller))
        question = asking.question(Asked(metrics="views", **(WITHIN | {"to": str(T0_MS + limit)})))
        await answering.answer(question, way="views")

    await asyncio.create_task(ask("a", 1))
    for number in range(2, 50):
        await asyncio.create_task(ask("b", number))
    asked = engine.asked
    await asyncio.create_task(ask("b", 1))
    assert engine.asked == asked
