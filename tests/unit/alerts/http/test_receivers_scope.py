"""Receivers get messages of all customers of an organisation: a token for some of them does not change or read who gets what."""

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.alerts.http.routes import AlertRoutes
from services.alerts.service import NotThere
from tests.unit.dashboard.door import TEAM_TOKEN, WHOLE_TOKEN, door


class NothingThere:
    """Alerting that has nothing; it says that it was asked."""

    def __getattr__(self, _: str) -> Any:
        async def answer(*_: Any, **__: Any) -> Any:
            raise NotThere

        return answer


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
    app, made = web.Application(), door()
    routing = Routing(app)
    guard = Guard(
        routing, made.identities, hosts=made.hosts, cookie=made.cookie, away_page=lambda: web.Response(status=503)
    )
    app.middlewares.append(guard.answer)
    AlertRoutes(NothingThere(), NothingThere(), now_ms=lambda: 0).add_to(routing)  # type: ignore[arg-type]
    async with TestClient(TestServer(app)) as client:
        for who, status in ((TEAM_TOKEN, 403), (WHOLE_TOKEN, 404)):
            headers = {"Authorization": f"Bearer {who.text}"}
            async with client.request(method, f"/v1/alerts/{path}", json=body, headers=headers) as answer:
                assert answer.status == status, await answer.text()
