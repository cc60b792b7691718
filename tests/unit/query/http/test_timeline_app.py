"""The whole timeline of a view over HTTP: what is read for it, and that one is folded at a time."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from services.query.core.resources.view.timeline_of_view import TimelineOfView
from services.query.core.sql.statements import Statement
from services.query.http import views
from services.query.rim.engine import Engine
from services.query.rim.single import OfBeacons, Wanted
from tests.unit.dashboard.door import GLOBEX_VIEWER, VIEWS_TOKEN
from tests.unit.query.http.test_views_app import ROW, Places, desk, get
from tests.unit.query.parts.desk import headers_of

T = TypeVar("T")


async def test_a_timeline_is_made_of_as_many_beacons_as_the_document_says_and_each_look_is_noted() -> None:
    async with desk() as (client, places, audit):
        # Of its three beacons none begins anything: nothing is made up.
        places.row = ROW | {"source": "mux", "events": [], "beacon_count": 3}
        status, found = await get(client, "/v1/views/v%2F1/timeline?customer=globex")
        assert (status, found["view_id"], found["events"], found["beacons_n"]) == (200, "v/1", [], 3)
        assert (found["is_cut"], found["agrees"]) == (False, True)
        assert (await get(client, "/v1/views/v%2F1/timeline?customer=globex&limit=2"))[0] == 400
        assert set(audit.noted) == {("a token", "looked_at_timeline", "globex/v/1")}
        assert set(places.wanted) == {Wanted("globex", "v/1", 1_000, 90_000, 10_000, 32_000_000)}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  # requests are under way in the same loop
            await asyncio.sleep(0)


class Slow(Places):
    """Beacons are read once the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.row = ROW | {"source": "mux", "beacon_count": 3}
        self.begun = 0
        self.may_end = asyncio.Event()

    async def beacons(self, wanted: Wanted, make: OfBeacons[T]) -> T:
        self.begun += 1
        await self.may_end.wait()
        return await super().beacons(wanted, make)


TIMELINE = "/v1/views/v/timeline?customer=globex"


async def test_folds_of_all_callers_run_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "FOLD_WAIT_SECONDS", 600.0)
    async with desk(Slow) as (client, places, audit):
        assert isinstance(places, Slow)
        asking = [asyncio.create_task(get(client, TIMELINE, token)) for token in (VIEWS_TOKEN, GLOBEX_VIEWER)]
        await until(lambda: len(audit.noted) == 2 and places.begun > 0)
        # The one that waits is past its audit: its next step would be to read.
        for _ in range(100):
            await asyncio.sleep(0)
        assert places.begun == 1
        places.may_end.set()
        assert [status for status, _ in await asyncio.gather(*asking)] == [200] * 2
        assert places.begun == 2


async def test_who_would_wait_too_long_for_a_fold_is_asked_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "FOLD_WAIT_SECONDS", 0.0)
    async with desk(Slow) as (client, places, _):
        assert isinstance(places, Slow)
        first = asyncio.create_task(get(client, TIMELINE))
        await until(lambda: places.begun == 1)
        async with client.get(TIMELINE, headers=headers_of(GLOBEX_VIEWER)) as answer:
            problem = await answer.json()
            assert (answer.status, problem["type"]) == (429, "urn:playhead:problem:too-many-questions")
            assert int(answer.headers["Retry-After"]) >= 1
        # What reads beacons without a fold does not wait for one.
        requests = asyncio.create_task(get(client, TIMELINE.replace("timeline", "requests"), GLOBEX_VIEWER))
        await until(lambda: places.begun == 2)
        places.may_end.set()
        assert [(await one)[0] for one in (first, requests)] == [200, 200]
        # The turn is free again.
        assert (await get(client, TIMELINE, GLOBEX_VIEWER))[0] == 200
        described = (await get(client, "/v1/openapi.json"))[1]
        assert (
            "Retry-After"
            in described["paths"]["/v1/views/{view_id}/timeline"]["get"]["responses"]["429"]["description"]
        )


async def test_a_fold_takes_no_thread_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(tmp_path, threads=1, memory_bytes_max=1 << 27, questions_max=1)
    has_begun, may_end = threading.Event(), threading.Event()

    def fold(row: Any, may_go_on: Any, rows: Any, is_cut: bool) -> TimelineOfView:
        has_begun.set()
        assert may_end.wait(60)
        return TimelineOfView("v", [], 0, 0, is_cut=is_cut, agrees=True)

    class OfEngine(Slow):
        async def beacons(self, wanted: Wanted, make: OfBeacons[T]) -> T:
            return await engine.work(lambda: make([], False))

    monkeypatch.setattr(views.timeline_of_view, "timeline", fold)
    try:
        async with desk(OfEngine) as (client, _, _):
            asked = asyncio.create_task(get(client, TIMELINE))
            assert await asyncio.to_thread(has_begun.wait, 60)
            try:
                async with asyncio.timeout(60):
                    assert await engine.ask(Statement("SELECT 1", (), ("one",)), {}) == [{"one": 1}]
                assert not asked.done()
            finally:
                may_end.set()
            assert (await asked)[0] == 200
    finally:
        engine.close()
