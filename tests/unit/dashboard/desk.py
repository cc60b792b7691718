"""The application at work over what a test puts in the place of Kafka, Postgres and the processor."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.customer_scope import CustomerScope
from services.dashboard.app import make_app
from services.dashboard.arrivals.picture import Read
from services.dashboard.arrivals.reading import Newest
from services.dashboard.limits.queries import CustomerLimits
from services.dashboard.live.board import LiveBoard
from services.dashboard.live.history import LiveHistory
from services.dashboard.live.past import AskedPast, Row
from tests.unit.dashboard.door import OWNER, cookies, door

NOW_MS = round(datetime(2026, 5, 17, 14, 25, 31, tzinfo=UTC).timestamp() * 1_000)
STREAMS_MAX = 2
SECONDS_MAX = 20


class FakeViews:
    """Returns what the test sets, and remembers the requests."""

    def __init__(self) -> None:
        self.answer: bytes | Exception | None = None
        self.asked: list[tuple[str, str]] = []

    async def partitions(self) -> bytes:
        if isinstance(self.answer, Exception):
            raise self.answer
        assert self.answer is not None
        return self.answer

    async def view(self, customer_id: str, view_id: str) -> bytes | None:
        self.asked.append((customer_id, view_id))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class FakePast:
    """Returns what the test sets, and remembers the questions."""

    def __init__(self) -> None:
        self.answer: list[Row] | Exception = []
        self.asked: list[AskedPast] = []
        self.scopes: list[CustomerScope] = []

    async def rows(self, asked: AskedPast, scope: CustomerScope) -> list[Row]:
        self.asked.append(asked)
        self.scopes.append(scope)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class FakeArrivals:
    """A reader of what the test puts here."""

    def __init__(self) -> None:
        self.beacons: list[Read] = []

    def newest(self, now_ms: int) -> Newest:
        return Newest(self.beacons, self.beacons, is_cut=False)


class FakeLimits:
    """Returns what the test sets, and remembers the requests."""

    def __init__(self) -> None:
        self.answer: CustomerLimits | Exception | None = None
        self.asked: list[str] = []

    async def of(self, customer_id: str, now_ms: int) -> CustomerLimits | None:
        self.asked.append(customer_id)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Desk:
    """The application at work, its board settling, and a client to it."""

    def __init__(self) -> None:
        history = LiveHistory(history_ms=600_000, settle_ms=0, customers_max=10)
        self.board = LiveBoard(history, now_ms=lambda: NOW_MS)
        self.views = FakeViews()
        self.limits = FakeLimits()
        self.past = FakePast()
        app = make_app(
            self.board,
            self.views,
            door(),
            streams_max=STREAMS_MAX,
            now_ms=lambda: NOW_MS,
            limits=self.limits,
            past=self.past,
        )
        self.client = TestClient(TestServer(app), cookies=cookies(OWNER))

    async def json(self, path: str, status: int = 200) -> dict[str, Any]:
        answer = await self.client.get(path)
        assert answer.status == status
        content: dict[str, Any] = await answer.json()
        return content


async def next_picture(stream: ClientResponse) -> dict[str, Any]:
    async with asyncio.timeout(SECONDS_MAX):
        async for text in stream.content:
            if text.startswith(b"data: "):
                picture: dict[str, Any] = json.loads(text[6:])
                return picture
    raise AssertionError("the stream ended")
