"""What tests of exports share: a server over a folder, whose views are in memory."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential
from services.query.core.customers import Customers
from services.query.core.question import Question
from services.query.core.sql.statements import Statement
from services.query.exporting import Exporting
from services.query.http.app import Sources, make_app
from services.query.rim.engine import Engine
from services.query.rim.export_files import ExportFiles
from services.rim.http.openapi import CSRF_HEADER
from shared.schemas.view import View
from tests.unit.dashboard.door import VIEWS_TOKEN, Known
from tests.unit.query.parts.desk import FakeAnswers, headers_of
from tests.unit.query.parts.door import NotedLooks, Nowhere, door
from tests.unit.query.parts.reading import ViewsInMemory, in_memory
from tests.unit.query.parts.recounting import DAY_MS, T0_MS, a_view, counts_at

WITHIN = {"from": str(T0_MS - DAY_MS), "to": str(T0_MS + 6 * DAY_MS)}
NOW_MS = T0_MS + 6 * DAY_MS


class Pouring(ViewsInMemory):
    """Views in memory that come as batches, once `may_answer`; `problem` is raised, where it is set."""

    problem: Exception | None = None

    def __init__(self, engine: Engine, views: list[View]) -> None:
        super().__init__(engine, views)
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        #: Whose views, of each question.
        self.asked: list[Customers] = []

    async def pour(self, question: Question, asked: Statement, take: Callable[[pa.RecordBatchReader], Any]) -> Any:
        self.asked.append(question.customers)
        self.was_asked.set()
        await self.may_answer.wait()
        if self.problem is not None:
            raise self.problem
        statement, tables = in_memory(question, self._views, asked)
        return await self._engine.pour(statement, tables, take)


@dataclass
class Desk:
    """A server of exports, and who asks it."""

    client: Any
    exporting: Exporting
    views: Pouring
    audit: NotedLooks
    known: Known
    now_ms: list[int]

    async def ask(self, method: str, path: str, who: Credential = VIEWS_TOKEN, **body: Any) -> tuple[int, Any]:
        headers = headers_of(who) | ({CSRF_HEADER: who.csrf} if who.kind == "s" else {})
        given = {"json": body} if method == "POST" else {}
        async with self.client.request(method, path, headers=headers, **given) as answer:
            data = await answer.read()
            return answer.status, msgspec.json.decode(data) if "json" in answer.content_type else data

    async def done(self, job_id: str, who: Credential = VIEWS_TOKEN) -> dict[str, Any]:
        """The job, once it is over."""
        async with asyncio.timeout(20):
            while True:
                _, job = await self.ask("GET", f"/v1/exports/{job_id}", who)
                if job["state"] in {"done", "failed"}:
                    return job  # type: ignore[no-any-return]
                await asyncio.sleep(0.01)


def some_views() -> list[View]:
    """Of customers acme and globex, within four days of `T0_MS`."""
    chance = random.Random(2)
    return [a_view(chance, f"v{n}", customer_id="globex" if n % 3 else "acme") for n in range(60)]


@contextlib.asynccontextmanager
async def desk(
    engine: Engine,
    views: list[View],
    folder: Path,
    *,
    rows_max: int = 1_000,
    is_kept: bool = True,
    under_way_max: int = 2,
    bytes_max: int = 1 << 30,
    files: ExportFiles | None = None,
) -> AsyncIterator[Desk]:
    now_ms, at_door, reader = [NOW_MS], door(), Pouring(engine, views)
    exporting = Exporting(
        files or ExportFiles(folder),
        reader,  # type: ignore[arg-type]
        rows_max=rows_max,
        seconds_max=20,
        bytes_max=bytes_max,
        hours=1,
        under_way_max=under_way_max,
        days_max=400,
        now_ms=lambda: now_ms[0],
    )
    app = make_app(
        Sources(reader, FakeAnswers(), Nowhere(), None, exporting),
        at_door,
        caller_questions_max=2,
        seconds_max=20,
        days_max=400,
        now_ms=lambda: now_ms[0],
    )
    assert isinstance(at_door.audit, NotedLooks)
    assert isinstance(at_door.identities, Known)
    keeping = asyncio.create_task(exporting.keep()) if is_kept else None
    async with TestClient(TestServer(app)) as client:
        yield Desk(client, exporting, reader, at_door.audit, at_door.identities, now_ms)
    if keeping is not None:
        keeping.cancel()
        await asyncio.wait({keeping})


def own(views: list[View]) -> list[View]:
    """Those of globex."""
    kept = [one for one in views if not one.deleted and T0_MS - DAY_MS <= counts_at(one) < T0_MS + 6 * DAY_MS]
    return [one for one in kept if one.customer_id == "globex"]
