"""Whole HTTP requests, heads included, to the API before DuckDB, also by way of the dashboard: none is answered 500."""

import asyncio
import contextlib
import dataclasses
import random
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from aiohttp import web

from services.accounts.http.access import Routing
from services.accounts.http.hosts import Hosts
from services.dashboard.forwarding import Forwarding
from services.query.answering import Answering
from services.query.core.question import Question
from services.query.core.sql import sums
from services.query.http.app import OPERATIONS, Sources, make_app, make_runner
from services.query.rim.engine import Engine
from services.query.rim.hot import HotDatabase, HotRows
from services.query.rim.warehouse import Snapshot, ViewsTable
from services.query.suspecting import Suspecting
from services.rim.http.openapi import CSRF_HEADER
from shared.schemas.view import View
from tests.unit.dashboard.door import OWNER, cookie_header
from tests.unit.hostile_requests import hostile_requests, status_of
from tests.unit.query.parts.door import Nowhere, door
from tests.unit.query.parts.reading import hot_rows
from tests.unit.query.parts.recounting import DAY_MS, T0_MS, a_view

ASKED = {
    "/v1/overall": "metrics=views,viewers",
    "/v1/timeseries": "metrics=startup_ms_p95&by=cdn",
    "/v1/breakdown": "by=country,custom.plan",
    "/v1/distribution": f"of=startup_ms&compare={T0_MS - 9 * DAY_MS}",
    "/v1/suspects": "metric=playback_failure_fraction",
    "/v1/errors": f"since={T0_MS}&order_by=change",
    "/v1/views": "columns=country,custom.plan&order_by=score_view&format=csv",
    "/v1/titles": "order_by=rebuffer_fraction&compare=previous",
    "/v1/titles/none": "bucket=hour",
    "/v1/concurrency": "videos=%5B%22final%22%5D",
}
PATHS = [
    f"/v1/errors?compare={T0_MS - 9 * DAY_MS}&order_by=change&from={T0_MS}&to={T0_MS + DAY_MS}",
    *(operation.path for operation in OPERATIONS),
    *(f"{path}?{query}&from={T0_MS - DAY_MS}&to={T0_MS + 3 * DAY_MS}" for path, query in ASKED.items()),
    *(f"/v1/suspects?metric={metric}&from={T0_MS}&to={T0_MS + DAY_MS}" for metric in ("bitrate_bps", "success_score")),
    *("/v1/openapi.json", "/", "/v1/"),
]
#: Of requests in absolute form (RFC 9112, 3.2.2), each twice: one for each listener.
ORIGINS = [one for one in (b"http://x", b"http://evil.example:1", b".evil.example://a", b"a://b@c") for _ in range(2)]
#: Said of a question, not of a fault: it is too large, or takes too long.
DECLARED = frozenset({503, 504})


class NoWarehouse(ViewsTable):
    """A warehouse without views."""

    def snapshot(self) -> Snapshot:
        return Snapshot(1, (), 0, None)


class InMemory(HotDatabase):
    """All views there are, as hot rows; no sums."""

    def __init__(self, views: list[View]) -> None:
        self._views = views
        self.read = 0

    async def rows(self, question: Question, _is_known: Callable[[str], bool]) -> HotRows:
        self.read += 1
        return HotRows("all", None, hot_rows(question, self._views), None, None)

    async def sums(self, question: Question) -> tuple[pa.Table, int | None]:
        kinds = {"hour": pa.int64(), "customer_id": pa.string(), "source": pa.string()}
        names = sums.columns_of(question)
        return pa.table({name: pa.array([], kinds.get(name, pa.decimal128(38, 0))) for name in names}), None


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path, threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


@contextlib.asynccontextmanager
async def listening(app: web.Application) -> AsyncIterator[int]:
    """The application at work; its port."""
    runner = make_runner(app, 1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
        # A connection that was aborted is closed in the loop's next round.
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def passing_on(url: str) -> AsyncIterator[int]:
    """The routes of the dashboard that pass questions on."""
    forwarding = Forwarding(url, wait_seconds_max=20)
    app = web.Application()
    forwarding.add_to(Routing(app), [])
    await forwarding.open()
    try:
        async with listening(app) as port:
            yield port
    finally:
        await forwarding.close()


@pytest.mark.thorough
async def test_no_question_is_answered_500(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(3)
    hot = InMemory([a_view(chance, f"view-{number}") for number in range(20)])
    answering = Answering(NoWarehouse(Path()), hot, engine, rows_max=10**9, answers_bytes_max=0)
    app = make_app(
        Sources(answering, Suspecting(answering), Nowhere()),
        dataclasses.replace(door(), hosts=Hosts(["x"])),
        caller_questions_max=2,
        seconds_max=20,
        days_max=400,
        now_ms=lambda: T0_MS + 4 * DAY_MS,
    )
    statuses = set()
    logged_in = [cookie_header(OWNER), f"{CSRF_HEADER}: {OWNER.csrf}".encode()]
    questions = [path for path in PATHS if "?" in path]
    requests = [
        *hostile_requests(200, PATHS, [b""], logged_in),
        *hostile_requests(200, questions, [b"", b"{"], logged_in, 1),
        *hostile_requests(50, PATHS, [b""], (), 2),
        *(b"GET %s/v1/overall HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % origin for origin in ORIGINS),
    ]
    async with listening(app) as port, passing_on(f"http://127.0.0.1:{port}") as before:
        for number, request in enumerate(requests):
            status = await status_of(before if number % 2 else port, request)
            assert status < 500 or status in DECLARED, request[:2_000]
            statuses.add(status)
    assert not [record for record in caplog.records if record.exc_info]
    assert {200, 400, 401, 404} <= statuses
    # It did not fail at the first check alone.
    assert hot.read > 20
