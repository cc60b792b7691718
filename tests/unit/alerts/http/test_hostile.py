"""Requests to the routes of alerts as nobody but an attacker sends them: refused before Postgres is asked."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.alerts.http.routes import AlertRoutes
from services.alerts.service import Alerting, NotThere
from services.alerts.targets import TEMPLATE_CHARS_MAX
from services.rim.admin.guarded_runner import GuardedRunner
from services.rim.http.openapi import CSRF_HEADER
from tests.fuzz.hostile import dumped
from tests.unit.alerts.http.test_receivers_scope import Refusing
from tests.unit.dashboard.door import OWNER, cookie_header, door
from tests.unit.hostile_requests import hostile_bodies, hostile_requests, paths_of, status_of

_ID = "0123abcd-0123-0123-0123-0123456789ab"
_RULE = {"customer": "acme", "name": "a", "metric": "rebuffering"}
_RECEIVER = {"name": "a", "kind": "webhook", "target": {"url": "https://x.example", "secret": "s" * 16}}
_HEADERS = [cookie_header(OWNER), f"{CSRF_HEADER}: {OWNER.csrf}".encode()]


class NoPostgres:
    """Has no receiver; remembers every other statement that would reach the database."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, read: Any) -> Any:
        if read.func.__name__ == "find_receivers":
            return []
        self.asked.append(read.func.__name__)
        return _ID


async def listening(alerting: Any) -> tuple[GuardedRunner, web.Application]:
    app, made = web.Application(), door()
    routing = Routing(app)
    guard = Guard(
        routing, made.identities, hosts=made.hosts, cookie=made.cookie, away_page=lambda: web.Response(status=503)
    )
    app.middlewares.append(guard.answer)
    AlertRoutes(alerting, Refusing(NotThere()), now_ms=lambda: 0).add_to(routing)  # type: ignore[arg-type]
    runner = GuardedRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, app


@pytest.fixture
async def postgres() -> AsyncIterator[tuple[int, NoPostgres]]:
    made = NoPostgres()
    runner, _ = await listening(Alerting(made))  # type: ignore[arg-type]
    yield runner.addresses[0][1], made
    await runner.cleanup()


def request(method: str, path: str, body: Any = None) -> bytes:
    data = b"" if body is None else dumped(body)
    lines = [
        f"{method} /v1/alerts/{path} HTTP/1.1".encode(),
        *(b"Host: x", b"Connection: close", b"Content-Type: application/json", *_HEADERS),
        b"Content-Length: %d" % len(data),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + data


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "rules", _RULE | {"filter": {"cdn": "a\0"}}),
        ("PUT", f"rules/{_ID}", {"version": 1, "rule": _RULE | {"filter": {"cdn": "\0"}}}),
        # Who runs the installation may see every customer, and so every text that names none.
        ("POST", "rules", _RULE | {"customer": "a:b"}),
        ("POST", "rules", _RULE | {"customer": ""}),
        ("POST", "rules", _RULE | {"customer": "x" * 10_000}),
        ("POST", "receivers", _RECEIVER | {"target": {"url": "https://x.example", "secret": "\0" * 20}}),
        ("POST", "receivers", _RECEIVER | {"template": "\0"}),
        ("POST", "receivers", _RECEIVER | {"template": "x" * (TEMPLATE_CHARS_MAX + 1)}),
        ("GET", "incidents?customer=%00", None),
        ("GET", "rules?customer=a%00", None),
        ("GET", "incidents?before_ms=99999999999999999999", None),
        ("GET", "incidents?cursor=%21", None),
        # "soon x", "99999999999999999 x" and "1 \\0".
        ("GET", "incidents?cursor=c29vbiB4", None),
        ("GET", "deliveries?cursor=OTk5OTk5OTk5OTk5OTk5OTkgeA", None),
        ("GET", "deliveries?cursor=MSAA", None),
    ],
)
async def test_what_postgres_would_refuse_is_answered_400(
    postgres: tuple[int, NoPostgres], method: str, path: str, body: Any
) -> None:
    port, made = postgres
    assert await status_of(port, request(method, path, body)) == 400
    assert made.asked == []


async def test_what_is_right_reaches_postgres(postgres: tuple[int, NoPostgres]) -> None:
    port, made = postgres
    assert await status_of(port, request("POST", "rules", _RULE)) == 201
    assert await status_of(port, request("POST", "receivers", _RECEIVER | {"template": "$title \\u0020"})) == 201
    assert made.asked == ["add_rule", "add_receiver"]


async def test_no_request_is_answered_500(caplog: pytest.LogCaptureFixture) -> None:
    runner, app = await listening(Refusing(NotThere()))
    documents = [_RULE, {"version": 1, "rule": _RULE}, _RECEIVER, {"text": "a"}, {"hours": 3}]
    requests = hostile_requests(200, paths_of(app), [b"", b"{", *hostile_bodies(documents, 40)], _HEADERS)
    for one in requests:
        assert await status_of(runner.addresses[0][1], one) < 500, one[:2_000]
    await runner.cleanup()
    assert not [record for record in caplog.records if record.exc_info]
