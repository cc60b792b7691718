"""Exports: whose they are, what they hold, that a restart begins them again, and their bounds."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from services.accounts.core import pages
from services.accounts.core.credentials import Kind
from services.accounts.core.customer_scope import CustomerScope
from services.accounts.core.roles import Permission
from services.query.core.resources.exports.exports import AskedExports
from services.query.http import exports as export_routes
from services.query.rim.engine import Engine
from services.query.rim.export_files import ExportFiles
from services.rim.database.pool import PostgresAway
from shared.http.problems import TYPES
from shared.schemas.view import View
from tests.unit.dashboard.door import GLOBEX_VIEWER, METRICS_TOKEN, OWNER, VIEWS_TOKEN, credential, token
from tests.unit.query.parts.desk import headers_of
from tests.unit.query.parts.export_desk import NOW_MS, WITHIN, desk, own, some_views


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("engine"), threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def views() -> list[View]:
    return some_views()


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
    named = ["customer_id", "view_id", "day", "date", "counted_ms", "counted_at"]
    assert table.column_names == [*named, "country", "startup_ms", "custom.plan"]
    assert sorted(table["view_id"].to_pylist()) == sorted(view.view_id for view in expected)
    assert job["rows"] == table.num_rows == len(expected)
    assert [action for _, action, _ in at.audit.noted] == ["made_export", "fetched_export"]


async def test_an_export_of_single_viewers_is_noted_with_each_of_them_when_it_is_made_and_when_it_is_fetched(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    part = '{"dimension": "viewer", "contains": "1"}'
    parameters = WITHIN | {
        "viewer": "viewer-2",
        "filter": f'{{"or": [{part}, {{"dimension": "viewer", "in": ["x"]}}]}}',
    }
    whom = [("looked_at_viewer", name) for name in ("contains: 1", "x", "viewer-2")]
    async with desk(engine, views, tmp_path) as at:
        at.audit.problem = PostgresAway("away")
        assert (await at.ask("POST", "/v1/exports", of="views", parameters=parameters))[0] == 503
        # What cannot be noted is not made.
        assert ExportFiles(tmp_path).all() == []
        at.audit.problem = None
        _, job = await at.ask("POST", "/v1/exports", of="views", parameters=parameters)
        name = f"views {job['id']}"
        assert [row[1:] for row in at.audit.noted] == [*whom, ("made_export", name)]
        job = await at.done(job["id"])
        at.audit.noted.clear()
        # Somebody else of the organisation.
        assert (await at.ask("GET", job["href"], GLOBEX_VIEWER))[0] == 200
        assert at.audit.noted == [("viewer@globex", *row) for row in [*whom, ("fetched_export", name)]]


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


async def test_an_export_of_figures_of_single_viewers_needs_the_permission_to_see_views(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    async with desk(engine, views, tmp_path) as at:
        for given in ({"by": "viewer"}, {"by": "cdn", "filter": '{"dimension": "viewer", "in": ["viewer-2"]}'}):
            parameters = WITHIN | given
            assert (await at.ask("POST", "/v1/exports", METRICS_TOKEN, of="breakdown", parameters=parameters))[0] == 403
            at.audit.noted.clear()
            _, job = await at.ask("POST", "/v1/exports", GLOBEX_VIEWER, of="breakdown", parameters=parameters)
            looks = [target for _, action, target in at.audit.noted if action == "looked_at_viewer"]
            assert looks == (["viewer-2"] if "filter" in given else [])
            job = await at.done(job["id"], GLOBEX_VIEWER)
            # The others of the organisation that may not see single viewers do not see it.
            assert (await at.ask("GET", "/v1/exports", METRICS_TOKEN))[1] == {"exports": []}
            assert (await at.ask("GET", job["href"], METRICS_TOKEN))[0] == 404
            assert (await at.ask("GET", job["href"], GLOBEX_VIEWER))[0] == 200


async def _trickling() -> AsyncIterator[bytes]:
    yield b'{"of": '
    await asyncio.Event().wait()


async def test_a_body_that_does_not_come_is_given_up(
    engine: Engine, views: list[View], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_routes, "BODY_SECONDS_MAX", 0.2)
    headers = headers_of(VIEWS_TOKEN) | {"Content-Type": "application/json"}
    async with desk(engine, views, tmp_path) as at, asyncio.timeout(20):
        async with at.client.post("/v1/exports", headers=headers, data=_trickling()) as answer:
            assert (answer.status, (await answer.json())["type"]) == (408, f"{TYPES}body-slow")
        assert (await at.ask("POST", "/v1/exports", of="views", parameters=WITHIN))[0] == 202


async def test_the_body_of_who_may_export_nothing_is_not_waited_for(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    no_reader = credential(Kind.TOKEN, 77)
    headers = headers_of(no_reader) | {"Content-Type": "application/json"}
    async with desk(engine, views, tmp_path) as at, asyncio.timeout(5):
        at.known.people[no_reader] = token(frozenset({Permission.MANAGE}), CustomerScope(own=frozenset({"globex"})))
        async with at.client.post("/v1/exports", headers=headers, data=_trickling()) as answer:
            assert answer.status == 403


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
        ({"of": "breakdown", "parameters": {"by": "cdn", "compare": "soon"}}, "compare"),
        ({"of": "distribution", "parameters": {"of": "cdn"}}, "of"),
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


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["..", "%2E%2E%2Fsecret", "x" * 32, "A" * 32, "0" * 31])
async def test_a_name_that_is_none_is_no_path(engine: Engine, views: list[View], tmp_path: Path, name: str) -> None:
    (tmp_path.parent / "secret.json").write_text("{}")
    async with desk(engine, views, tmp_path, is_kept=False) as at:
        assert (await at.ask("GET", f"/v1/exports/{name}"))[0] in {404, 405}
