"""What tests of alerts share: what people do, the routes behind the guard, and minutes of an hour; on a real Postgres."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import msgspec
import psycopg
from aiohttp import web
from aiohttp.test_utils import TestServer

from services.accounts.core.credentials import Kind
from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.accounts.core.roles import Permission
from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.accounts.http.hosts import Hosts
from services.accounts.store.audit import Actor
from services.alerts.http.routes import AlertRoutes
from services.alerts.service import Alerting
from services.alerts.trying.running import Trying
from services.finalizer.serving.database import Serving
from services.rim.database.pool import Postgres as Pool
from shared.schemas.live_minute import LiveMinute
from tests.integration.collector.collecting import SECONDS_MAX
from tests.unit.alerts.live import T0 as MONDAY
from tests.unit.dashboard.door import credential, door, token

#: In the past: the clock of a slot is the present, and the first bucket waits by it.
T0 = MONDAY - 14 * 86_400_000


def asked(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(statement).fetchall()  # type: ignore[arg-type, call-overload, no-any-return]


def alerting(dsn: str, work: Callable[[Alerting, Actor], Any]) -> Any:
    """What people do, on the service that the routes use."""

    async def run() -> Any:
        # Customers that are not listed are its own.
        made = "INSERT INTO accounts.organisations (name, owns_rest) VALUES ('Acme', true) RETURNING id::text"
        known = asked(dsn, "SELECT id::text FROM accounts.organisations WHERE owns_rest")
        row = (known or asked(dsn, made))[0]
        pool = Pool(dsn, service="test", connections_max=2, seconds_max=SECONDS_MAX, writes=True)
        await pool.open()
        try:
            return await work(Alerting(pool), Actor("person", "p", "ada@acme", None, row[0]))
        finally:
            await pool.close()

    return asyncio.run(run())


@contextmanager
def page(dsn: str, scope: CustomerScope = EVERYTHING) -> Iterator[tuple[str, str]]:
    """The routes behind the guard, and a token that may manage an organisation with these customers."""
    organisation = asked(dsn, "INSERT INTO accounts.organisations (name) VALUES ('Page') RETURNING id::text")[0][0]
    known = credential(Kind.TOKEN, 9)
    scopes = frozenset({Permission.READ_METRICS, Permission.MANAGE})
    principal = replace(token(scopes, scope), organisation_id=organisation)
    started: list[Any] = []
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        door_of_tests = door()
        door_of_tests.identities.people[known] = principal  # type: ignore[attr-defined]
        pool = Pool(dsn, service="test", connections_max=2, seconds_max=SECONDS_MAX, writes=True)
        await pool.open()
        app = web.Application()
        routing = Routing(app)
        guard = Guard(
            routing, door_of_tests.identities, hosts=Hosts(["127.0.0.1"]), cookie=door_of_tests.cookie,
            away_page=lambda: web.Response(status=503),
        )  # fmt: skip
        app.middlewares.append(guard.answer)
        AlertRoutes(Alerting(pool), Trying(pool, lambda: T0), now_ms=lambda: T0).add_to(routing)
        async with TestServer(app) as server:
            started.append(str(server.make_url("")).rstrip("/"))
            ready.set()
            await asyncio.to_thread(stop.wait)
        await pool.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(SECONDS_MAX)
    try:
        yield started[0], known.text
    finally:
        stop.set()
        thread.join()


def bad_minutes(dsn: str) -> None:
    """An hour of minutes before `T0` as they are landed; in three of them viewers of CDN b rebuffer."""
    with closing(Serving(dsn, away_seconds_max=20, stop=threading.Event())) as serving:
        serving.open()
        serving.keep_views(0)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for minute in range(60):
            hits = 600 if minute % 20 == 0 else 6
            whole = LiveMinute(steps=12, values={"": {"viewers_now": 4_800, "rebuffering_now": hits}})
            cdns = LiveMinute(
                values={"a": {"viewers_now": 2_400}, "b": {"viewers_now": 2_400, "rebuffering_now": hits}}
            )
            for dimension, document in (("", whole), ("cdn", cdns)):
                row = ("acme", dimension, T0 // 60_000 - 60 + minute, msgspec.json.encode(document).decode())
                connection.execute("INSERT INTO serving.live_minutes VALUES (%s, %s, %s, %s)", row)
