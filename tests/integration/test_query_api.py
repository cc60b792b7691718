"""The API at work: the commands of docs/query.md, a client that goes away, and another customer's views."""

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import aiohttp
import msgspec
import pytest
from aiohttp import web

from deploy.local.ports import free_port
from deploy.local.postgres import Postgres as Server
from services.accounts import commands
from services.accounts.http.guard import Cookie
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.query.http.app import Door, make_app, make_runner
from services.query.suspecting import Suspecting
from services.rim.database.pool import Postgres
from tests.documents import run_by
from tests.integration.querying import Installation, installed
from tests.unit.query.recounting import DAY_MS, T0_MS, a_view

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def installation(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installed(postgres, tmp_path_factory.mktemp("query")) as made:
        chance = random.Random(5)
        views = [a_view(chance, f"view-{number}") for number in range(100)]
        made.in_warehouse(views)
        made.in_postgres(views)
        yield made


@dataclass(frozen=True)
class Asking:
    """The service at work, and tokens of whoever runs the installation and of an organisation that owns customer `other`."""

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
    async with installation.answering() as answering:
        app = make_app(
            answering,
            Suspecting(answering),
            Door(Identities(accounts), Hosts([]), Cookie(is_secure=False)),
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
            await accounts.close()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_the_commands_of_the_documentation_are_answered(
    installation: Installation, tokens: tuple[str, str]
) -> None:
    async with serving(installation, tokens) as asking:
        answers = []
        for block in run_by(__file__):
            process = await asyncio.create_subprocess_exec(
                "bash",
                "-ec",
                block.text,
                env={**os.environ, "API": asking.url, "API_TOKEN": asking.owner},
                stdout=asyncio.subprocess.PIPE,
            )
            output, _ = await process.communicate()
            assert process.returncode == 0, (block.place, output)
            answers.append(msgspec.json.decode(output))

    overall, breakdown, series, suspects = answers
    assert set(overall["metrics"]) == {"views", "rebuffer_fraction", "startup_ms_p95"}
    assert breakdown["by"] == ["cdn", "country"]
    assert [len(group["points"]) for group in series["groups"]] == [24] * len(series["groups"])
    assert suspects["metric"] == "playback_failure_fraction"


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
