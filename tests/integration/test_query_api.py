"""The API at work: the commands of docs/query.md, a client that goes away, and another customer's views."""

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator, Iterator

import aiohttp
import msgspec
import pytest
from aiohttp import web

from deploy.local.ports import free_port
from deploy.local.postgres import Postgres as Server
from services.query.http.app import make_app, make_runner
from services.query.scope import OneToken
from tests.documents import run_by
from tests.integration.querying import Installation, installed
from tests.unit.query.recounting import DAY_MS, T0_MS, a_view

pytestmark = pytest.mark.integration

TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def installation(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installed(postgres, tmp_path_factory.mktemp("query")) as made:
        chance = random.Random(5)
        views = [a_view(chance, f"view-{number}") for number in range(100)]
        made.in_warehouse(views)
        made.in_postgres(views)
        yield made


@contextlib.asynccontextmanager
async def serving(installation: Installation, customers: frozenset[str] = frozenset()) -> AsyncIterator[str]:
    """The service in this process; its address."""
    async with installation.answering() as answering:
        app = make_app(
            answering,
            OneToken(TOKEN, customers),
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
            yield f"http://127.0.0.1:{port}"
        finally:
            await runner.cleanup()


async def test_the_commands_of_the_documentation_are_answered(installation: Installation) -> None:
    async with serving(installation) as url:
        answers = []
        for block in run_by(__file__):
            process = await asyncio.create_subprocess_exec(
                "bash",
                "-ec",
                block.text,
                env={**os.environ, "QUERY": url, "QUERY_TOKEN": TOKEN},
                stdout=asyncio.subprocess.PIPE,
            )
            output, _ = await process.communicate()
            assert process.returncode == 0, (block.place, output)
            answers.append(msgspec.json.decode(output))

    overall, breakdown, series = answers
    assert set(overall["metrics"]) == {"views", "rebuffer_fraction", "startup_ms_p95"}
    assert breakdown["by"] == ["cdn", "country"]
    assert [len(group["points"]) for group in series["groups"]] == [24] * len(series["groups"])


async def test_what_a_client_sees_is_what_its_token_may_see(installation: Installation) -> None:
    within = {"from": str(T0_MS - 2 * DAY_MS), "to": str(T0_MS + 6 * DAY_MS)}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(headers=headers) as client:
        async with serving(installation) as url, client.get(f"{url}/v1/breakdown?by=customer", params=within) as answer:
            everybody = {group["key"][0]: group["n"] for group in (await answer.json())["groups"]}
        async with serving(installation, frozenset({"other"})) as url:
            async with client.get(f"{url}/v1/breakdown?by=customer", params=within) as answer:
                own = {group["key"][0]: group["n"] for group in (await answer.json())["groups"]}
            async with client.get(f"{url}/v1/overall?customer=acme", params=within) as answer:
                assert answer.status == 404

    assert set(everybody) == {"acme", "other"}
    assert own == {"other": everybody["other"]}


async def test_a_filter_may_be_as_long_as_the_limit_says(installation: Installation) -> None:
    values = [f"value {number}" for number in range(1_000)]
    text = msgspec.json.encode({"dimension": "cdn", "in": values}).decode()
    many = msgspec.json.encode({"or": [{"dimension": "cdn", "in": ["x"]}] * 10_000}).decode()
    async with (
        serving(installation) as url,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as client,
    ):
        async with client.get(f"{url}/v1/overall", params={"filter": text}) as answer:
            assert (answer.status, (await answer.json())["n"]) == (200, 0)
        async with client.get(f"{url}/v1/overall", params={"filter": many}) as answer:
            assert answer.status == 400
        async with client.get(f"{url}/v1/overall", params={"filter": '{"dimension":"cdn","in":["a"]}'}) as answer:
            assert answer.status == 200
