"""Receivers get messages of all customers of an organisation: a token for some of them does not change or read who gets what."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.alerts.http.routes import AlertRoutes
from services.alerts.service import NotThere
from services.alerts.store.deliveries import Overtaken, TooManyTests
from tests.unit.dashboard.door import TEAM_TOKEN, WHOLE_TOKEN, door


class Refusing:
    """Alerting that answers everything so; it says that it was asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, _: str) -> Any:
        async def answer(*_: Any, **__: Any) -> Any:
            raise self._error

        return answer


@asynccontextmanager
async def asking(error: Exception) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    """The routes behind the guard, where what is asked raises."""
    app, made = web.Application(), door()
    routing = Routing(app)
    guard = Guard(
        routing, made.identities, hosts=made.hosts, cookie=made.cookie, away_page=lambda: web.Response(status=503)
    )
    app.middlewares.append(guard.answer)
    AlertRoutes(Refusing(error), Refusing(error), now_ms=lambda: 0).add_to(routing)  # type: ignore[arg-type]
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "receivers", None),
        ("POST", "receivers", {"name": "a", "kind": "webhook", "target": {}}),
        ("PUT", "receivers/x", {"name": "a"}),
        ("DELETE", "receivers/x", None),
        ("POST", "receivers/x/test", None),
        ("GET", "deliveries", None),
        ("POST", "deliveries/x/again", None),
    ],
)
async def test_a_token_for_some_customers_has_no_business_with_receivers(method: str, path: str, body: Any) -> None:
    async with asking(NotThere()) as client:
        for who, status in ((TEAM_TOKEN, 403), (WHOLE_TOKEN, 404)):
            headers = {"Authorization": f"Bearer {who.text}"}
            async with client.request(method, f"/v1/alerts/{path}", json=body, headers=headers) as answer:
                assert answer.status == status, await answer.text()


async def test_a_message_that_a_later_one_has_overtaken_is_refused_in_words() -> None:
    headers = {"Authorization": f"Bearer {WHOLE_TOKEN.text}"}
    async with asking(Overtaken()) as client, client.post("/v1/alerts/deliveries/x/again", headers=headers) as answer:
        assert answer.status == 409
        assert (await answer.json())["title"] == "The receiver has a later message of this incident"


async def test_a_test_beyond_those_of_an_hour_is_refused_and_says_when_to_ask_again() -> None:
    headers = {"Authorization": f"Bearer {WHOLE_TOKEN.text}"}
    async with asking(TooManyTests()) as client, client.post("/v1/alerts/receivers/x/test", headers=headers) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "600")
        assert (await answer.json())["type"] == "urn:playhead:problem:too-many-tests"
