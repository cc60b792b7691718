"""The dashboard's whole application behind its guard, and clients of several people."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential
from services.alerts.http.routes import AlertRoutes
from services.alerts.service import Alerting
from services.alerts.trying.running import Trying
from services.dashboard.app import Door, make_app
from services.dashboard.arrivals.routes import ArrivalRoutes
from services.dashboard.forwarding import Forwarding
from services.dashboard.replay import Replay
from services.rim.database.pool import Postgres
from tests.unit.dashboard.desk import NOW_MS, FakeArrivals, FakeLimits, FakePast, FakeViews, quiet_board
from tests.unit.dashboard.door import (
    Known,
    NotedLooks,
    cookies,
    door,
)

#: Nobody is asked before the guard lets somebody in.
NOWHERE = Postgres("postgresql://nobody@127.0.0.1:1/none", service="test", connections_max=1, seconds_max=0.1)


class Desk:
    """The whole application, and clients of several people."""

    def __init__(self, folder: Path, requests_per_second: float = 1_000) -> None:
        self.views, self.limits = FakeViews(), FakeLimits()
        self.past, self.came = FakePast(), FakeArrivals()
        self.door: Door = door()
        self.board = quiet_board()
        self.app = make_app(
            self.board,
            self.views,
            self.door,
            streams_max=5,
            caller_requests_per_second=requests_per_second,
            now_ms=lambda: NOW_MS,
            recordings=Replay("http://127.0.0.1:1", "a token of sixteen or more", folder),
            limits=self.limits,
            past=self.past,
            forwarding=Forwarding("", wait_seconds_max=1),
            alerts=AlertRoutes(Alerting(NOWHERE), Trying(NOWHERE, lambda: NOW_MS), now_ms=lambda: NOW_MS),
            arrivals=ArrivalRoutes(self.came, lambda: NOW_MS),
        )
        self.client = TestClient(TestServer(self.app))

    @property
    def known(self) -> Known:
        assert isinstance(self.door.identities, Known)
        return self.door.identities

    @property
    def noted(self) -> NotedLooks:
        assert isinstance(self.door.audit, NotedLooks)
        return self.door.audit

    async def get(self, path: str, who: Credential | None, **headers: str) -> tuple[int, bytes]:
        async with self.client.get(path, headers=headers_of(who) | headers, allow_redirects=False) as answer:
            return answer.status, await answer.read()

    async def json(self, path: str, who: Credential) -> dict[str, Any]:
        async with self.client.get(path, headers=headers_of(who)) as answer:
            assert answer.status == 200, await answer.text()
            content: dict[str, Any] = await answer.json()
            return content


def headers_of(who: Credential | None) -> dict[str, str]:
    if who is None:
        return {}
    if who.kind == "t":
        return {"Authorization": f"Bearer {who.text}"}
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies(who).items())}


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Desk]:
    """A desk whose live picture is drawn meanwhile."""
    made = Desk(folder)
    await made.client.start_server()
    settling = asyncio.create_task(made.board.keep_settling())
    yield made
    made.board.close()
    settling.cancel()
    await made.client.close()
