"""DuckDB within limits: a statement stops with its caller, memory ends it, and it reads nothing outside its folder."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from services.query.core.sql.statements import Statement
from services.query.rim.engine import CALLER, Engine, TooLarge

#: Hours of work.
ENDLESS = Statement("SELECT sum(hash(a.range, b.range)) FROM range(10000000) AS a, range(10000000) AS b", (), ("sum",))
LARGE = Statement("SELECT count(*) FROM (SELECT DISTINCT hash(range) FROM range(50000000))", (), ("count",))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path, threads=1, memory_bytes_max=1 << 27, questions_max=1)
    yield made
    made.close()


@pytest.mark.thorough
async def test_a_statement_stops_with_its_caller_and_leaves_the_thread_to_the_next(engine: Engine) -> None:
    for begins in (True, False):
        task = asyncio.create_task(engine.ask(ENDLESS, {}))
        if begins:
            await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert await engine.ask(Statement("SELECT 1", (), ("one",)), {}) == [{"one": 1}]


@pytest.mark.thorough
async def test_a_deadline_stops_a_statement_that_waits_for_its_turn_too(engine: Engine) -> None:
    began = time.monotonic()

    async def ask() -> None:
        async with asyncio.timeout(0.3):
            await engine.ask(ENDLESS, {})

    found = await asyncio.gather(*(ask() for _ in range(3)), return_exceptions=True)

    assert [type(one) for one in found] == [TimeoutError] * 3
    assert time.monotonic() - began < 60


async def test_however_many_callers_of_one_organisation_ask_another_is_answered(tmp_path: Path) -> None:
    engine, gate = Engine(tmp_path, threads=1, memory_bytes_max=1 << 27, questions_max=3), threading.Event()

    async def ask(organisation: str, work: Callable[[], object], caller: str = "") -> object:
        CALLER.set((organisation, caller))
        return await engine.work(work)

    many = [asyncio.create_task(ask("a", partial(gate.wait, 20), f"token:{number}")) for number in range(10)]
    try:
        await asyncio.sleep(0)
        # None of the many has ended: a thread was left.
        async with asyncio.timeout(10):
            assert await ask("b", lambda: "b") == "b"
            assert await ask("c", lambda: "c") == "c"
        assert not any(one.done() for one in many)
    finally:
        gate.set()
    assert await asyncio.gather(*many) == [True] * 10
    engine.close()


async def test_a_caller_leaves_a_thread_to_others_of_its_organisation(tmp_path: Path) -> None:
    engine, gate = Engine(tmp_path, threads=1, memory_bytes_max=1 << 27, questions_max=4), threading.Event()

    async def ask(caller: str, work: Callable[[], object]) -> object:
        CALLER.set(("a", caller))
        return await engine.work(work)

    many = [asyncio.create_task(ask("person:k", partial(gate.wait, 20))) for _ in range(10)]
    try:
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            assert await ask("person:l", lambda: "l") == "l"
        assert not any(one.done() for one in many)
    finally:
        gate.set()
    assert await asyncio.gather(*many) == [True] * 10
    engine.close()


@pytest.mark.thorough
async def test_a_statement_that_needs_too_much_memory_is_refused(engine: Engine) -> None:
    with pytest.raises(TooLarge):
        await engine.ask(LARGE, {})

    assert await engine.ask(Statement("SELECT 1", (), ("one",)), {}) == [{"one": 1}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/written.csv'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
    ],
)
async def test_nothing_outside_the_folder_can_be_read_and_no_limit_lifted(engine: Engine, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        await engine.ask(Statement(sql, (), ()), {})


async def test_a_questions_tables_are_its_own(engine: Engine) -> None:
    count = Statement("SELECT count(*) FROM hot", (), ("count",))
    tables = [pa.table({"n": list(range(size))}) for size in (1, 20)]

    found = await asyncio.gather(*(engine.ask(count, {"hot": table}) for table in tables))

    assert found == [[{"count": 1}], [{"count": 20}]]
    with pytest.raises(duckdb.Error):
        await engine.ask(count, {})
