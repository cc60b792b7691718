"""Exports: whose they are, what they hold, that a restart begins them again, and their bounds."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core import pages
from services.accounts.core.credentials import Credential
from services.accounts.http.guard import CSRF_HEADER
from services.query.core.question import Question
from services.query.core.resources.exports import AskedExports
from services.query.core.sql.statements import Statement
from services.query.exporting import Exporting
from services.query.http.app import Sources, make_app
from services.query.rim.engine import Engine
from services.query.rim.export_files import ExportFiles
from services.rim.database.pool import PostgresAway
from shared.schemas.view import View
from tests.unit.dashboard.door import GLOBEX_VIEWER, METRICS_TOKEN, OWNER, VIEWS_TOKEN
from tests.unit.query.door import NotedLooks, Nowhere, door
from tests.unit.query.reading import ViewsInMemory, in_memory
from tests.unit.query.recounting import DAY_MS, T0_MS, a_view, counts_at
from tests.unit.query.test_app import FakeAnswers, headers_of

WITHIN = {"from": str(T0_MS - DAY_MS), "to": str(T0_MS + 6 * DAY_MS)}
NOW_MS = T0_MS + 6 * DAY_MS


class Pouring(ViewsInMemory):
    """Views in memory that come as batches; `problem` is raised, where it is set."""

    problem: Exception | None = None

    def __init__(self, engine: Engine, views: list[View]) -> None:
        super().__init__(engine, views)
        self.was_asked = asyncio.Event()

    async def pour(self, question: Question, asked: Statement, take: Callable[[pa.RecordBatchReader], Any]) -> Any:
        self.was_asked.set()
        if self.problem is not None:
            raise self.problem
        statement, tables = in_memory(question, self._views, asked)
        return await self._engine.pour(statement, tables, take)


@dataclass
class Desk:
    client: Any
    exporting: Exporting
    views: Pouring
    audit: NotedLooks
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


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("engine"), threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def views() -> list[View]:
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
) -> AsyncIterator[Desk]:
    now_ms, at_door, reader = [NOW_MS], door(), Pouring(engine, views)
    exporting = Exporting(
        ExportFiles(folder),
        reader,  # type: ignore[arg-type]
        rows_max=rows_max,
        seconds_max=20,
        bytes_max=1 << 30,
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
    keeping = asyncio.create_task(exporting.keep()) if is_kept else None
    async with TestClient(TestServer(app)) as client:
        yield Desk(client, exporting, reader, at_door.audit, now_ms)
    if keeping is not None:
        keeping.cancel()
        await asyncio.wait({keeping})


def own(views: list[View]) -> list[View]:
    kept = [one for one in views if not one.deleted and T0_MS - DAY_MS <= counts_at(one) < T0_MS + 6 * DAY_MS]
    return [one for one in kept if one.customer_id == "globex"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
async def test_a_search_becomes_a_file_with_all_rows_of_the_askers_customers(
    engine: Engine, views: list[View], tmp_path: Path, kind: str
) -> None:
    async with desk(engine, views, tmp_path) as at:
        parameters = WITHIN | {"columns": "country,startup_ms,custom.plan", "order_by": "startup_ms"}
        status, job = await at.ask("POST", "/v1/exports", of="views", format=kind, parameters=parameters)
        assert (status, job["state"]) == (202, "queued")
        job = await at.done(job["id"])
        status, data = await at.ask("GET", job["href"])
        assert (status, len(data)) == (200, job["bytes"])

    table = pq.read_table(pa.BufferReader(data)) if kind == "parquet" else pa_csv.read_csv(pa.BufferReader(data))
    expected = own(views)
    assert table.column_names == ["customer_id", "view_id", "day", "counted_ms", "country", "startup_ms", "custom.plan"]
    assert sorted(table["view_id"].to_pylist()) == sorted(view.view_id for view in expected)
    assert job["rows"] == table.num_rows == len(expected)
    assert [action for _, action, _ in at.audit.noted] == ["made_export", "fetched_export"]


@pytest.mark.parametrize(
    "case",
    [
        ("overall", {}, ["views", "viewers", "viewers_n"]),
        ("breakdown", {"by": "cdn"}, ["kind", "cdn", "views", "viewers", "viewers_n"]),
        ("timeseries", {"bucket": "day"}, ["from_ms", "to_ms", "views", "viewers", "viewers_n"]),
        (
            "timeseries",
            {"bucket": "day", "by": "cdn"},
            ["kind", "value", "from_ms", "to_ms", "views", "viewers", "viewers_n"],
        ),
    ],
)
async def test_a_question_becomes_a_file_with_its_figures(
    engine: Engine, views: list[View], tmp_path: Path, case: tuple[str, dict[str, str], list[str]]
) -> None:
    of, parameters, columns = case
    async with desk(engine, views, tmp_path) as at:
        given = WITHIN | {"metrics": "viewers"} | parameters
        _, job = await at.ask("POST", "/v1/exports", METRICS_TOKEN, of=of, parameters=given)
        job = await at.done(job["id"], METRICS_TOKEN)
        _, data = await at.ask("GET", job["href"], METRICS_TOKEN)

    table = pa_csv.read_csv(pa.BufferReader(data))
    assert table.column_names == columns
    assert sum(table["views"].to_pylist()) == len(own(views))


async def test_another_organisations_export_does_not_exist_and_a_scope_opens_its_own_kind(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    async with desk(engine, views, tmp_path) as at:
        _, job = await at.ask("POST", "/v1/exports", of="views", parameters=WITHIN)
        await at.done(job["id"])
        path = f"/v1/exports/{job['id']}"
        for who in (OWNER, METRICS_TOKEN):
            for method, what in (("GET", path), ("GET", f"{path}/file"), ("DELETE", path)):
                assert (await at.ask(method, what, who))[0] == 404
            assert (await at.ask("GET", "/v1/exports", who))[1] == {"exports": []}
        assert len((await at.ask("GET", "/v1/exports", GLOBEX_VIEWER))[1]["exports"]) == 1
        assert (await at.ask("POST", "/v1/exports", METRICS_TOKEN, of="views"))[0] == 403
        assert (await at.ask("POST", "/v1/exports", of="overall"))[0] == 403
        assert (await at.ask("POST", "/v1/exports", of="views", parameters={"customer": "acme"}))[0] == 404
        assert (await at.ask("DELETE", path, GLOBEX_VIEWER))[0] == 204
        assert at.audit.noted[-1] == ("viewer@globex", "deleted_export", f"views {job['id']}")
        assert (await at.ask("GET", path))[0] == 404
    assert ExportFiles(tmp_path).all() == []


async def test_what_a_process_left_is_begun_again_by_the_next_one(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    async with desk(engine, views, tmp_path, is_kept=False) as at:
        _, job = await at.ask("POST", "/v1/exports", of="views", parameters={"columns": "country"})
        known = await at.exporting.job(job["id"])
        assert known is not None
        # As after a kill in the middle.
        ExportFiles(tmp_path).write(msgspec.structs.replace(known, state="running"))
        (tmp_path / f"{job['id']}.part").write_bytes(b"half of it")
    async with desk(engine, views, tmp_path) as at:
        found = await at.done(job["id"])
        assert (found["state"], found["parameters"]["to"]) == ("done", known.parameters["to"])


async def test_who_is_away_is_asked_again(engine: Engine, views: list[View], tmp_path: Path) -> None:
    async with desk(engine, views, tmp_path) as at:
        at.views.problem = PostgresAway("test")
        _, job = await at.ask("POST", "/v1/exports", of="views", parameters=WITHIN)
        async with asyncio.timeout(20):
            await at.views.was_asked.wait()
        at.views.problem = None
        # It looks again when another one comes.
        await at.ask("POST", "/v1/exports", of="views", parameters=WITHIN)
        assert (await at.done(job["id"]))["state"] == "done"


async def test_exports_are_bounded_and_end(engine: Engine, views: list[View], tmp_path: Path) -> None:
    async with desk(engine, views, tmp_path, rows_max=3) as at:
        _, job = await at.ask("POST", "/v1/exports", of="views", parameters=WITHIN)
        found = await at.done(job["id"])
        assert (found["state"], "more rows" in found["problem"]) == ("failed", True)
        assert (await at.ask("GET", f"/v1/exports/{job['id']}/file"))[0] == 409
        at.now_ms[0] += 3_600_001
        assert (await at.ask("GET", f"/v1/exports/{job['id']}"))[0] == 404
    async with desk(engine, views, tmp_path / "other", is_kept=False, under_way_max=1) as at:
        assert (await at.ask("POST", "/v1/exports", of="views"))[0] == 202
        status, problem = await at.ask("POST", "/v1/exports", of="views")
        assert (status, problem["type"]) == (429, "urn:playhead:problem:too-many-exports")


async def test_each_export_is_on_one_page_the_newest_first(engine: Engine, views: list[View], tmp_path: Path) -> None:
    async with desk(engine, views, tmp_path, is_kept=False, under_way_max=10) as at:
        made = []
        for number in range(9):
            # Three of each time.
            at.now_ms[0] = NOW_MS + number // 3
            made.append((await at.ask("POST", "/v1/exports", of="views"))[1])
        newest = sorted(made, key=lambda job: (job["created_ms"], job["id"]), reverse=True)
        for limit in (1, 2, 9):
            found, path = [], f"/v1/exports?limit={limit}"
            while True:
                status, page = await at.ask("GET", path)
                assert status == 200
                assert 1 <= len(page["exports"]) <= limit
                found += page["exports"]
                if "next" not in page:
                    break
                path = f"/v1/exports?limit={limit}&cursor={page['next']}"
            assert found == newest
        other = pages.cursor_of(pages.name_of("deletions", AskedExports(), limit=1), f"{NOW_MS} {made[0]['id']}")
        assert (await at.ask("GET", f"/v1/exports?cursor={other}"))[1]["errors"][0]["parameter"] == "cursor"
        # "soon x", nothing of ours, and too many.
        for wrong in ("cursor=c29vbiB4", "cursor=%21", "cursor=" + "OTk5" * 200, "limit=0", "limit=201", "more=1"):
            assert (await at.ask("GET", f"/v1/exports?{wrong}"))[0] == 400, wrong


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"of": "views", "parameters": {"limit": "5"}}, "limit"),
        ({"of": "views", "parameters": {"columns": "none"}}, "columns"),
        ({"of": "suspects"}, "body"),
        ({"of": "breakdown", "parameters": {"by": "cdn", "compare": "previous"}}, "compare"),
        ({"of": "overall", "format": "pdf"}, "body"),
        ({"of": "overall", "parameters": {"more": "x"}}, None),
    ],
)
async def test_a_wrong_export_is_refused_when_it_comes(
    engine: Engine, views: list[View], tmp_path: Path, body: dict[str, Any], parameter: str | None
) -> None:
    async with desk(engine, views, tmp_path, is_kept=False) as at:
        status, problem = await at.ask("POST", "/v1/exports", GLOBEX_VIEWER, **body)
        assert status == 400, problem
        assert problem["errors"][0].get("parameter") == parameter
        assert (await at.ask("GET", "/v1/exports", GLOBEX_VIEWER))[1] == {"exports": []}


@pytest.mark.parametrize("name", ["..", "%2E%2E%2Fsecret", "x" * 32, "A" * 32, "0" * 31])
async def test_a_name_that_is_none_is_no_path(engine: Engine, views: list[View], tmp_path: Path, name: str) -> None:
    (tmp_path.parent / "secret.json").write_text("{}")
    async with desk(engine, views, tmp_path, is_kept=False) as at:
        assert (await at.ask("GET", f"/v1/exports/{name}"))[0] in {404, 405}
