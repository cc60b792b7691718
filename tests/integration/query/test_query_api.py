"""The API at work: the commands of docs/query.md, a client that goes away, and another customer's views."""

import asyncio
import contextlib
import os
import random
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import aiohttp
import msgspec
import psycopg
import pyarrow as pa
import pytest
from aiohttp import web
from deltalake import DeltaTable, write_deltalake

from deploy.local.paths import ROOT
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres as Server
from services.accounts import commands
from services.accounts.http.guard import Cookie
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.accounts.looks import AccountsAudit
from services.query.core.limits import VIEWERS_MAX
from services.query.exporting import Exporting
from services.query.http.app import Door, Sources, make_app, make_runner
from services.query.rim.export_files import ExportFiles
from services.query.suspecting import Suspecting
from services.rim.database.pool import Postgres
from services.rim.turns.question_limits import InTurn
from tests.documents import run_by
from tests.integration.query.querying import Installation, installed
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS, T0_MS, a_view

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def installation(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installed(postgres, tmp_path_factory.mktemp("query")) as made:
        chance = random.Random(5)
        views = [a_view(chance, f"view-{number}", video_id=f"video-{number % 12}") for number in range(100)]
        made.in_warehouse(views)
        made.in_postgres(views)
        yield made


@dataclass(frozen=True)
class Asking:
    """The service at work, and tokens of the installation's owner and of an organisation that owns customer `other`."""

    url: str
    owner: str
    other: str


@pytest.fixture(scope="module")
def tokens(installation: Installation) -> tuple[str, str]:
    home = commands.make_tenant(installation.dsn, organisation="home", email="owner@home.test")
    other = commands.make_tenant(installation.dsn, organisation="other", email="owner@other.test", customers=("other",))
    return home.token, other.token


@contextlib.asynccontextmanager
async def serving(installation: Installation, tokens: tuple[str, str]) -> AsyncIterator[Asking]:
    """The service in this process."""
    accounts = Postgres(installation.dsn, service="query-accounts", connections_max=2, seconds_max=60, writes=True)
    await accounts.open()
    async with installation.sources() as (answering, single):
        exporting = Exporting(
            ExportFiles(installation.folder.with_name("exports")),
            answering,
            rows_max=1_000,
            seconds_max=60,
            bytes_max=1 << 30,
            hours=1,
            under_way_max=2,
            days_max=400,
            now_ms=lambda: T0_MS + 4 * DAY_MS,
        )
        keeping = asyncio.create_task(exporting.keep())
        app = make_app(
            Sources(answering, Suspecting(answering), single, None, exporting),
            Door(
                Identities(accounts),
                Hosts([]),
                Cookie(is_secure=False),
                AccountsAudit(accounts, lambda: T0_MS, turns=InTurn(at_once=1, most=100)),
            ),
            caller_questions_max=4,
            seconds_max=60,
            days_max=400,
            now_ms=lambda: T0_MS + 4 * DAY_MS,
        )
        runner = make_runner(app, 1)
        port = free_port()
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield Asking(f"http://127.0.0.1:{port}", *tokens)
        finally:
            await runner.cleanup()
            keeping.cancel()
            await asyncio.wait({keeping})
            await accounts.close()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def printed(program: list[str], asking: Asking) -> bytes:
    """What a program prints that is given the address of the API and a token."""
    environ = {**os.environ, "API": asking.url, "API_TOKEN": asking.owner}
    process = await asyncio.create_subprocess_exec(*program, env=environ, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0, (program[-1], output)
    return output


async def test_the_commands_of_the_documentation_are_answered(
    installation: Installation, tokens: tuple[str, str]
) -> None:
    async with serving(installation, tokens) as asking:
        answers = []
        for block in run_by(__file__):
            program = [sys.executable] if block.language == "python" else ["bash", "-e"]
            answers.append(await printed([*program, "-c", block.text], asking))

    script = next(answer for answer in answers if answer.endswith(b"views failed\n"))
    assert len(script.splitlines()) > 3
    answers.remove(script)
    listed, exported = (answer for answer in answers if not answer.startswith(b"{"))
    assert listed.startswith(b"customer_id,view_id,day,counted_ms,video_title,viewer,country,startup_ms")
    assert exported.startswith(b'"customer_id","view_id","day","date","counted_ms","counted_at","country","startup_ms"')
    overall, breakdown, series, together, errors, suspects, low = (
        msgspec.json.decode(one) for one in answers if one.startswith(b"{")
    )
    assert set(overall["metrics"]) == {"views", "rebuffer_fraction", "startup_ms_p95"}
    assert breakdown["by"] == ["cdn", "country"]
    assert [len(group["points"]) for group in series["groups"]] == [24] * len(series["groups"])
    # A day of Berlin, by quarters of an hour.
    assert together["at_ms"] == list(range(T0_MS + 23 * HOUR_MS, T0_MS + 47 * HOUR_MS, HOUR_MS // 4))
    assert len(together["titles"]) == 3 < together["titles_n"] <= 12
    assert {len(title["views"]) for title in together["titles"]} == {96}
    assert errors["since_ms"] == T0_MS + 2 * DAY_MS + 16 * HOUR_MS
    assert suspects["metric"] == "playback_failure_fraction"
    assert low["title"] == "weighted average bitrate below 1,500 kbps"
    assert low["threshold"] == {"side": "below", "value": 1_500_000, "unit": "bps", "origin": "given"}


async def test_the_notebook_runs_from_its_first_cell_to_its_last(
    installation: Installation, tokens: tuple[str, str]
) -> None:
    notebook = msgspec.json.decode((ROOT / "docs" / "notebook.ipynb").read_bytes())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    async with serving(installation, tokens) as asking:
        assert await printed([sys.executable, "-c", "\n".join([*cells, "print(len(series))"])], asking) == b"5\n"


async def test_what_a_client_sees_is_what_its_token_may_see(
    installation: Installation, tokens: tuple[str, str]
) -> None:
    within = {"from": str(T0_MS - 2 * DAY_MS), "to": str(T0_MS + 6 * DAY_MS), "by": "customer"}
    found = {}
    async with serving(installation, tokens) as asking, aiohttp.ClientSession() as client:
        for name, token in (("owner", asking.owner), ("other", asking.other)):
            async with client.get(f"{asking.url}/v1/breakdown", params=within, headers=bearer(token)) as answer:
                found[name] = {group["key"][0]: group["n"] for group in (await answer.json())["groups"]}
        for customer, token in (("acme", asking.other), ("other", asking.owner), ("no-such", asking.other)):
            url = f"{asking.url}/v1/overall?customer={customer}"
            async with client.get(url, headers=bearer(token)) as answer:
                assert (answer.status, (await answer.json())["type"]) == (404, "urn:playhead:problem:unknown-customer")

    # The owner runs the installation, and sees what nobody else owns.
    assert {name: set(groups) for name, groups in found.items()} == {"owner": {"acme"}, "other": {"other"}}
    assert all(n > 0 for groups in found.values() for n in groups.values())


async def test_a_filter_may_be_as_long_as_the_limit_says(installation: Installation, tokens: tuple[str, str]) -> None:
    values = [f"value {number}" for number in range(1_000)]
    text = msgspec.json.encode({"dimension": "cdn", "in": values}).decode()
    many = msgspec.json.encode({"or": [{"dimension": "cdn", "in": ["x"]}] * 10_000}).decode()
    short = '{"dimension":"cdn","in":["a"]}'
    async with (
        serving(installation, tokens) as asking,
        aiohttp.ClientSession(headers=bearer(asking.owner)) as client,
    ):
        for given, status in ((text, 200), (many, 400), (short, 200)):
            async with client.get(f"{asking.url}/v1/overall", params={"filter": given}) as answer:
                assert answer.status == status
                if status == 200:
                    assert (await answer.json())["n"] == 0


async def test_a_view_is_found_with_its_beacons_wherever_its_row_is_and_the_look_is_noted(
    installation: Installation, tokens: tuple[str, str]
) -> None:
    """In Postgres; in the warehouse alone; its beacons in table bronze, but those that were deleted there."""
    chance = random.Random(3)
    landed, hot = (a_view(chance, name, customer_id="acme", deleted=False, custom={}) for name in ("landed", "hot"))
    installation.in_warehouse([landed])
    installation.in_postgres([hot])
    keys = [("acme:landed", number) for number in range(3)] + [("acme:hot", 9)]
    write_deltalake(
        installation.folder / "bronze",
        pa.table(
            {
                "key": pa.array([key.encode() for key, _ in keys], pa.binary()),
                "value": pa.array([b'{"number": %d}' % number for _, number in keys], pa.binary()),
                "kafka_partition": pa.array([0] * 4, pa.int32()),
                "kafka_offset": pa.array([number for _, number in keys], pa.int64()),
                "kafka_timestamp_ms": pa.array([landed.first_append_ms] * 3 + [hot.first_append_ms], pa.int64()),
                "day": pa.array([landed.first_append_ms // DAY_MS] * 3 + [hot.first_append_ms // DAY_MS], pa.int64()),
            }
        ),
        partition_by=["day"],
        configuration={"delta.enableDeletionVectors": "true"},
    )
    DeltaTable(installation.folder / "bronze").delete("kafka_offset = 1")
    many = [f"nobody-{number:03}-{'x' * 80}" for number in range(VIEWERS_MAX - 1)]

    async with serving(installation, tokens) as asking, aiohttp.ClientSession(headers=bearer(asking.owner)) as client:
        for view, place in ((landed, "warehouse"), (hot, "hot_rows")):
            async with client.get(f"{asking.url}/v1/views/{view.view_id}?customer=acme") as answer:
                found = await answer.json()
                assert (answer.status, found["found_in"]) == (200, place), found
                assert {name: found["row"][name] for name in ("startup_ms", "country", "day")} == {
                    "startup_ms": view.startup_ms,
                    "country": view.country,
                    "day": view.day,
                }
        async with client.get(f"{asking.url}/v1/views/landed/beacons?customer=acme") as answer:
            assert [one["beacon"] for one in (await answer.json())["beacons"]] == [{"number": 0}, {"number": 2}]
        async with client.get(f"{asking.url}/v1/views/no-such?customer=acme") as answer:
            assert answer.status == 404
        within = {"from": str(T0_MS - 2 * DAY_MS), "to": str(T0_MS + 6 * DAY_MS), "limit": "1000", "customer": "acme"}
        async with client.get(f"{asking.url}/v1/views", params=within) as answer:
            assert {"landed", "hot"} <= {view["view_id"] for view in (await answer.json())["views"]}
        whom = {"or": [{"dimension": "viewer", "in": many}, {"dimension": "viewer", "contains": "ann\0"}]}
        async with client.get(
            f"{asking.url}/v1/views", params=within | {"filter": msgspec.json.encode(whom).decode()}
        ) as answer:
            assert (answer.status, (await answer.json())["views"]) == (200, [])
        for path in ("errors", "titles", "titles/none"):
            async with client.get(f"{asking.url}/v1/{path}", params={"customer": "acme"}) as answer:
                assert answer.status == 200, await answer.text()

    with psycopg.connect(installation.dsn) as connection:
        rows = connection.execute("SELECT action, target, actor_kind FROM accounts.audit WHERE action LIKE 'looked%'")
        assert set(rows.fetchall()) == {
            ("looked_at_view", "acme/landed", "token"),
            ("looked_at_view", "acme/hot", "token"),
            ("looked_at_beacons", "acme/landed", "token"),
            ("looked_at_viewer", "contains: ann\ufffd", "token"),
            *(("looked_at_viewer", viewer, "token") for viewer in many),
        }
