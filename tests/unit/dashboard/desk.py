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
from services.dashboard.live.landed.past import AskedPast, Row
from services.dashboard.live.landed.slices import LandedSlices
from services.dashboard.live.landed.sums import LandedSlice, LandedSums
from services.dashboard.live.slices import Sums
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


class FakeLanded:
    """Minutes that a test lands, and what was asked of them."""

    def __init__(self) -> None:
        #: By the minute since 1970.
        self.minutes: dict[int, Sums] = {}
        self.within: dict[str, LandedSlice] = {}
        self.error: Exception | None = None
        #: Answers wait for it.
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        #: Scopes whose sums were asked for, and slices.
        self.asked: list[CustomerScope] = []
        self.asked_within: list[tuple[str, int]] = []

    async def whole(self, scope: CustomerScope, after_minute: int, until_minute: int) -> LandedSums | None:
        self.asked.append(scope)
        await self._answers()
        newest = max((one for one in self.minutes if after_minute < one <= until_minute), default=None)
        return None if newest is None else LandedSums(newest, 12, self.minutes[newest])

    async def of_slice(self, scope: CustomerScope, slice_name: str, whole: LandedSums) -> LandedSlice:
        self.asked_within.append((slice_name, whole.minute))
        await self._answers()
        return self.within[slice_name]

    async def _answers(self) -> None:
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error


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


def quiet_board() -> LiveBoard:
    """One to which nothing comes."""
    history = LiveHistory(history_ms=600_000, settle_ms=0, customers_max=10)
    return LiveBoard(history, now_ms=lambda: NOW_MS, landed=LandedSlices(FakeLanded(), now_ms=lambda: NOW_MS))


class Desk:
    """The application at work, its board settling, and a client to it."""

    def __init__(self) -> None:
        history = LiveHistory(history_ms=600_000, settle_ms=0, customers_max=30)
        self.landed = FakeLanded()
        self.now_ms = NOW_MS
        landed = LandedSlices(self.landed, now_ms=lambda: self.now_ms)
        self.board = LiveBoard(history, now_ms=lambda: NOW_MS, landed=landed)
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
            # Others say only that the server is alive.
            if text.startswith(b"data: {"):
                picture: dict[str, Any] = json.loads(text[6:])
                return picture
    raise AssertionError("the stream ended")
