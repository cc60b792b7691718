"""Jobs of exports: what one meets ends no other, one that is deleted stays away, and organisations take turns."""

import asyncio
import errno
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from services.accounts.core.credentials import Credential
from services.query import exporting
from services.query.answering import TooManyRows
from services.query.core.resources.exports.exports import Job
from services.query.rim.engine import Engine
from services.query.rim.export_files import ExportFiles
from services.query.rim.warehouse import WarehouseAway
from shared.schemas.view import View
from tests.unit.dashboard.door import OWNER, VIEWS_TOKEN
from tests.unit.query.parts.export_desk import WITHIN, Desk, desk, some_views


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("engine"), threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def views() -> list[View]:
    return some_views()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "LOOK_SECONDS", 0.01)


async def begun(at: Desk, who: Credential = VIEWS_TOKEN) -> dict[str, Any]:
    status, job = await at.ask("POST", "/v1/exports", who, of="views", parameters=WITHIN)
    assert status == 202, job
    return job  # type: ignore[no-any-return]


async def asked(at: Desk) -> None:
    """Waits until the next job is taken up."""
    async with asyncio.timeout(20):
        await at.views.was_asked.wait()
    at.views.was_asked.clear()


@pytest.mark.parametrize("problem", [pa.ArrowInvalid("no such zone"), KeyError("a fault of ours")])
async def test_an_export_that_meets_an_error_nobody_knows_has_failed_and_the_next_one_is_written(
    engine: Engine, views: list[View], tmp_path: Path, problem: Exception
) -> None:
    async with desk(engine, views, tmp_path) as at:
        at.views.problem = problem
        job = await at.done((await begun(at))["id"])
        assert (job["state"], job["problem"]) == ("failed", exporting._UNKNOWN)
        at.views.problem = None
        assert (await at.done((await begun(at))["id"]))["state"] == "done"


def left_of(job: dict[str, Any], folder: Path) -> list[Path]:
    return list(folder.glob(f"{job['id']}*"))


class Full(ExportFiles):
    """A folder on a disk that becomes full as soon as a job is in one of these states."""

    refuses: frozenset[str] = frozenset()

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.refused = threading.Semaphore(0)

    def change(self, job: Job) -> bool:
        if job.state in self.refuses:
            self.refused.release()
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().change(job)


@pytest.mark.parametrize(
    ("problem", "state"),
    [
        (None, "running"),
        (WarehouseAway("test"), "queued"),
        (TooManyRows(), "failed"),
        (KeyError("a fault of ours"), "failed"),
        (None, "done"),
    ],
)
async def test_a_full_disk_delays_exports_and_ends_nothing(
    engine: Engine, views: list[View], tmp_path: Path, problem: Exception | None, state: str
) -> None:
    files = Full(tmp_path)
    async with desk(engine, views, tmp_path, files=files) as at:
        files.refuses, at.views.problem = frozenset({state}), problem
        job = await begun(at)
        # It is tried again.
        for _ in range(2):
            assert await asyncio.to_thread(files.refused.acquire, timeout=20)
        files.refuses, at.views.problem = frozenset(), None
        assert (await at.done(job["id"]))["state"] == "done"


@pytest.mark.parametrize(
    "problem",
    [None, WarehouseAway("test"), OSError(errno.ENOSPC, "No space left on device"), TooManyRows(), KeyError("ours")],
)
async def test_an_export_that_is_deleted_while_it_runs_stays_away_however_it_ends(
    engine: Engine, views: list[View], tmp_path: Path, problem: Exception | None
) -> None:
    async with desk(engine, views, tmp_path) as at:
        at.views.may_answer.clear()
        at.views.problem = problem
        job = await begun(at)
        await asked(at)
        assert (await at.ask("DELETE", f"/v1/exports/{job['id']}"))[0] == 204
        other = await begun(at)
        at.views.may_answer.set()
        await asked(at)
        at.views.problem = None
        # The first one is over when the other one is.
        await at.done(other["id"])
        assert not left_of(job, tmp_path)
        assert [one.id for one in ExportFiles(tmp_path).all()] == [other["id"]]


async def test_an_organisation_waits_for_one_export_of_another_at_most(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    async with desk(engine, views, tmp_path, under_way_max=3) as at:
        at.views.may_answer.clear()
        made = []
        for who in (VIEWS_TOKEN, VIEWS_TOKEN, VIEWS_TOKEN, OWNER):
            made.append((who, await begun(at, who)))
            at.now_ms[0] += 1
        await asked(at)
        at.views.may_answer.set()
        for who, job in made:
            assert (await at.done(job["id"], who))["state"] == "done"
        mine, others = at.views.asked[0], at.views.asked[1]
        assert mine != others
        assert at.views.asked == [mine, others, mine, mine]


async def test_an_organisation_with_many_exports_leaves_room_to_another(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    async with desk(engine, views, tmp_path) as at:
        first = await at.done((await begun(at))["id"])
    async with desk(engine, views, tmp_path, bytes_max=4 * first["bytes"]) as at:
        assert (await at.done((await begun(at))["id"]))["state"] == "done"
        # Half of the room is its own, the other half free.
        refused, problem = await at.ask("POST", "/v1/exports", of="views", parameters=WITHIN)
        assert (refused, problem["type"]) == (503, "urn:playhead:problem:exports-full")
        assert (await at.done((await begun(at, OWNER))["id"], OWNER))["state"] == "done"
        assert (await at.ask("DELETE", f"/v1/exports/{first['id']}"))[0] == 204
        await begun(at)


async def test_requests_at_one_time_begin_no_more_exports_than_an_organisation_may_have_under_way(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    async with desk(engine, views, tmp_path, is_kept=False, under_way_max=2) as at:
        asking = [at.ask("POST", "/v1/exports", of="views", parameters=WITHIN) for _ in range(20)]
        answers = Counter(status for status, _ in await asyncio.gather(*asking))
    assert answers == {202: 2, 429: 18}


class Listed(ExportFiles):
    """A folder whose list is read as far as the test lets it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.let = threading.Semaphore(0)
        self.reading = self.most = 0

    def all(self) -> list[Job]:
        self.reading += 1
        self.most = max(self.most, self.reading)
        assert self.let.acquire(timeout=20)
        self.reading -= 1
        return super().all()


async def test_lists_are_read_one_after_the_other_and_organisations_take_turns(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    files = Listed(tmp_path)
    async with desk(engine, views, tmp_path, is_kept=False, files=files) as at:

        async def listed(who: Credential) -> int:
            return (await at.ask("GET", "/v1/exports", who))[0]

        flood = [asyncio.create_task(listed(VIEWS_TOKEN)) for _ in range(exporting.LISTS_MAX + 3)]
        async with asyncio.timeout(20):
            while sum(one.done() for one in flood) < 3:  # noqa: ASYNC110 - of tasks
                await asyncio.sleep(0.01)
        other = asyncio.create_task(listed(OWNER))
        await asyncio.sleep(0.05)
        # The one that is under way, the next of its organisation, and then the other organisation's.
        files.let.release(3)
        assert await other == 200
        assert sum(one.done() for one in flood) <= 5
        files.let.release(len(flood))
        assert Counter(await asyncio.gather(*flood)) == {200: exporting.LISTS_MAX, 429: 3}
    assert files.most == 1
