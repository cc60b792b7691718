"""What has just come, for those who ask: made once for all who ask alike, and for one question of an organisation at a time."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential
from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.dashboard.arrivals import routes
from services.dashboard.arrivals.picture import Arrivals, Read
from services.dashboard.arrivals.picture import picture as made_picture
from services.dashboard.arrivals.reading import Newest
from services.dashboard.arrivals.routes import QUESTIONS_MAX, ArrivalRoutes
from tests.unit.dashboard.door import GLOBEX_ADMIN, GLOBEX_VIEWER, OWNER, cookies, door


class Kafka:
    """Has one beacon of each customer; the clock is the test's."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.reads = 0

    def newest(self, now_ms: int) -> Newest:
        """See `Reader`."""
        self.reads += 1
        return Newest([Read(now_ms, f"{one}:v".encode(), b"{}", {}) for one in ("globex", "acme")], [], is_cut=False)


class Pictures:
    """Counts the pictures that are made; those of globex wait until the test lets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, str, bool]] = []
        self.let = threading.Event()
        monkeypatch.setattr(routes, "picture", self.picture)

    def picture(self, customer_id: str, *given: Any, **named: Any) -> Arrivals:
        self.made.append((customer_id, named["key"], named["is_operator"]))
        if customer_id == "globex":
            assert self.let.wait(30)
        return made_picture(customer_id, *given, **named)


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Pictures:
    return Pictures(monkeypatch)


@asynccontextmanager
async def served(kafka: Kafka) -> AsyncIterator[TestClient[Any, Any]]:
    app, made = web.Application(), door()
    routing = Routing(app)
    guard = Guard(
        routing, made.identities, hosts=made.hosts, cookie=made.cookie, away_page=lambda: web.Response(status=503)
    )
    app.middlewares.append(guard.answer)
    ArrivalRoutes(kafka, lambda: kafka.now_ms).add_to(routing)
    async with TestClient(TestServer(app, handler_cancellation=True)) as client:
        yield client


async def ask(client: TestClient[Any, Any], who: Credential, customer: str, **given: str) -> tuple[int, Any]:
    headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies(who).items())}
    async with client.get("/v1/arrivals", params={"customer": customer, **given}, headers=headers) as answer:
        assert answer.status == 200 or int(answer.headers["Retry-After"]) >= 1
        return answer.status, await answer.json(content_type=None)


async def test_an_organisation_has_one_picture_made_at_a_time_and_others_are_answered(pictures: Pictures) -> None:
    async with served(Kafka()) as client:
        beyond = 5
        many = [
            asyncio.create_task(ask(client, GLOBEX_VIEWER, "globex", key=f"k{number}"))
            for number in range(QUESTIONS_MAX + beyond)
        ]
        ended = asyncio.as_completed(many, timeout=30)
        assert [(await next(ended))[0] for _ in range(beyond)] == [429] * beyond
        assert (await asyncio.wait_for(ask(client, OWNER, "acme"), 30))[0] == 200
        assert len([one for one in pictures.made if one[0] == "globex"]) == 1
        pictures.let.set()
        assert sorted([status for status, _ in await asyncio.gather(*many)]) == [200] * QUESTIONS_MAX + [429] * beyond


async def test_the_picture_of_one_who_goes_away_keeps_its_turn_until_it_is_made(pictures: Pictures) -> None:
    async with served(Kafka()) as client:
        for number in range(3):
            asking = asyncio.create_task(ask(client, GLOBEX_VIEWER, "globex", key=f"k{number}"))
            async with asyncio.timeout(30):
                while not pictures.made:  # noqa: ASYNC110 - a thread's
                    await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.wait({asking})
        assert (await ask(client, OWNER, "acme"))[0] == 200
        assert [one for one in pictures.made if one[0] == "globex"] == [("globex", "k0", False)]
        pictures.let.set()
        assert (await ask(client, GLOBEX_VIEWER, "globex", key="k9"))[0] == 200


async def test_all_who_ask_alike_of_one_read_are_given_one_picture(pictures: Pictures) -> None:
    kafka = Kafka()
    pictures.let.set()
    async with served(kafka) as client:
        for _ in range(3):
            asking = [ask(client, who, "globex") for who in (GLOBEX_VIEWER, GLOBEX_ADMIN)]
            assert {found["beacons_n"] for _, found in await asyncio.gather(*asking)} == {1}
        assert pictures.made == [("globex", "", False)]
        assert (await ask(client, GLOBEX_VIEWER, "globex", key="k"))[1]["beacons_n"] == 0
        # Who runs the installation sees input of nobody, too.
        assert (await ask(client, OWNER, "globex"))[1]["nobodys"] == []
        assert (await ask(client, GLOBEX_VIEWER, "globex"))[1]["nobodys"] is None
        assert pictures.made[1:] == [("globex", "k", False), ("globex", "", True)]
        kafka.now_ms += 5_000
        assert (await ask(client, GLOBEX_VIEWER, "globex"))[1]["now_ms"] == kafka.now_ms
        assert (kafka.reads, pictures.made[3:]) == (2, [("globex", "", False)])


async def test_few_pictures_are_kept(pictures: Pictures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "PICTURES_MAX", 2)
    pictures.let.set()
    async with served(Kafka()) as client:
        for key in ("a", "b", "c", "c", "b", "a"):
            assert (await ask(client, GLOBEX_VIEWER, "globex", key=key))[0] == 200
    assert [key for _, key, _ in pictures.made] == ["a", "b", "c", "a"]
