"""Rows of questions that wait for DuckDB: of very many questions those of some are in memory, and organisations take turns."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from services.query.answering import Answering
from services.query.core.question import Asked, Question
from services.query.core.sql.statements import Statement
from services.query.rim.engine import CALLER, Engine
from services.query.rim.hot import HotRows
from tests.unit.query.parts import asking
from tests.unit.query.parts.recounting import DAY_MS, T0_MS, a_view
from tests.unit.query.test_earlier import COUNTED, Hot, Warehouse

AT_ONCE = 4
WITHIN = {"from_": str(T0_MS - DAY_MS), "to": str(T0_MS + 6 * DAY_MS)}


class Busy(Engine):
    """DuckDB, which begins nothing before the test lets it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, threads=1, memory_bytes_max=1 << 30, questions_max=AT_ONCE)
        self.let = asyncio.Event()
        self.let.set()

    async def ask(self, statement: Statement, tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
        await self.let.wait()
        return await super().ask(statement, tables)


class ReadRows(Hot):
    """Knows whose rows were read."""

    def __init__(self) -> None:
        super().__init__([a_view(random.Random(1), "view")])
        self.read_by: list[str] = []

    async def rows(self, question: Question, is_known: Callable[[str], bool]) -> HotRows:
        def noted(identity: str) -> bool:
            known = is_known(identity)
            self.read_by += [] if known else [CALLER.get()[0]]
            return known

        return await super().rows(question, noted)


class Desk:
    """Questions of callers, all at once."""

    def __init__(self, folder: Path) -> None:
        self.engine, self.hot = Busy(folder), ReadRows()
        warehouse: Any = Warehouse(Path())
        hot: Any = self.hot
        self.answering = Answering(warehouse, hot, self.engine, rows_max=10**9, answers_bytes_max=1 << 20)
        self.tasks: list[asyncio.Task[Any]] = []

    def ask(self, organisation: str, caller: str, metrics: str = "views") -> asyncio.Task[Any]:
        async def one() -> Any:
            CALLER.set((organisation, caller))
            question = asking.question(Asked(metrics=metrics, **WITHIN))
            return await self.answering.rows(question, lambda _: [COUNTED])

        self.tasks.append(asyncio.create_task(one()))
        return self.tasks[-1]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.engine.let.set()
    async with asyncio.timeout(30):
        await asyncio.gather(*made.tasks)
    made.engine.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - of fakes, in this very loop
            await asyncio.sleep(0)


async def test_of_very_many_questions_that_wait_some_have_their_rows_and_another_organisation_has_room(
    desk: Desk,
) -> None:
    desk.engine.let.clear()
    for number in range(60):
        desk.ask("acme", f"token:{number}")
    await until(lambda: len(desk.hot.read_by) >= 2 * (AT_ONCE - 1))
    # What else would come has time to.
    await asyncio.sleep(0.1)
    assert desk.hot.read_by == ["acme"] * (2 * (AT_ONCE - 1))
    desk.ask("globex", "token")
    await until(lambda: "globex" in desk.hot.read_by)


async def test_an_earlier_answer_waits_for_no_rows_of_others(desk: Desk) -> None:
    await desk.ask("acme", "first", "started")
    desk.engine.let.clear()
    for number in range(60):
        desk.ask("acme", f"token:{number}")
    await until(lambda: len(desk.hot.read_by) == 1 + 2 * (AT_ONCE - 1))
    async with asyncio.timeout(30):
        await desk.ask("acme", "first", "started")
