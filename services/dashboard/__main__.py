"""Starts the dashboard: settings, topics, feed, queries, application, listener. Stops it cleanly.

`python -m services.dashboard owner-link` prints a link for the first owner, `login-link ADDRESS` one that logs somebody in, once;
`migrate-accounts` makes or upgrades schema `accounts`.

Exit codes: 0 done, 2 wrong settings, 3 topics or ports not available, 4 the live feed died.
"""

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
from aiohttp import web

from services.accounts import first_start
from services.accounts.http.external import CALLBACK_PATH, External
from services.accounts.http.guard import Cookie
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.accounts.http.routes import AccountRoutes
from services.accounts.looks import AccountsAudit
from services.accounts.provider import Provider
from services.accounts.service import Accounts
from services.alerts.http.routes import AlertRoutes
from services.alerts.service import Alerting
from services.alerts.trying.running import Trying
from services.dashboard import commands
from services.dashboard.app import Door, make_app, make_runner
from services.dashboard.arrivals.reading import ArrivalReader
from services.dashboard.arrivals.routes import ArrivalRoutes
from services.dashboard.commands import EXIT_BOOT, EXIT_SETTINGS
from services.dashboard.forwarding import Forwarding
from services.dashboard.limits.queries import PostgresLimits
from services.dashboard.live.board import LiveBoard
from services.dashboard.live.feed import LiveFeed
from services.dashboard.live.history import LiveHistory
from services.dashboard.live.past_routes import PostgresPast
from services.dashboard.replay import Replay
from services.dashboard.settings import DashboardSettings
from services.dashboard.views import ProcessorViews
from services.rim.admin.admin import AdminServer, Check
from services.rim.database.pool import Postgres
from services.rim.database.postgres import Dsn, certificate_files
from services.rim.http.lookups import Lookups
from services.rim.kafka.connection import TopicsWrong, verify_topics
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import certificates, logs, metrics
from shared.metrics import DASHBOARD_LIVE_AGE_SECONDS
from shared.settings import SettingsError
from shared.topics import LIVE

log = structlog.get_logger(__name__)

EXIT_DEAD = 4


def main(arguments: Sequence[str] = ()) -> int:
    """Runs the dashboard until a signal stops it, or a command; returns the exit code."""
    try:
        settings = DashboardSettings.load(with_secrets(DashboardSettings, os.environ))
    except SettingsError as error:
        sys.stderr.write(f"dashboard: {error}\n")
        return EXIT_SETTINGS
    if arguments:
        return commands.run(settings, arguments)
    logs.configure("dashboard", settings)
    certificates.watch(
        *settings.certificate_files,
        *certificate_files(settings.postgres_dsn),
        *certificate_files(settings.customers_dsn),
        *certificate_files(settings.accounts_dsn),
        *([Path(settings.lookup_ca_file)] if settings.lookup_ca_file else []),
    )
    metrics.declare("dashboard")
    stop = stop_on_signals()
    try:
        verify_topics(settings, [LIVE])
    except TopicsWrong as error:
        log.error("topics_wrong", problem=str(error))
        return EXIT_BOOT
    return asyncio.run(_serve(settings, stop))


@dataclass
class _Fate:
    """What has become of the process: why its feed died, and whether it is on its way out."""

    died: str = ""
    is_draining: bool = False

    def alive(self) -> Check:
        return Check(not self.died, self.died or "ok")

    def ready(self) -> Check:
        """Kafka or Postgres being away does not count: the page shows it itself."""
        return Check(False, "draining") if self.is_draining else self.alive()


@dataclass
class _Parts:
    """What the process is made of, put together once."""

    board: LiveBoard
    feed: LiveFeed
    #: The serving database.
    serving: Postgres
    #: Of the customers, where they have a database of their own.
    customers: Postgres | None
    #: Of their write keys, where that is not the accounts' database.
    keys: Postgres | None
    views: ProcessorViews | None
    accounts: Accounts
    forwarding: Forwarding
    runner: web.AppRunner
    admin: AdminServer


def _assemble(settings: DashboardSettings, fate: _Fate, stop: threading.Event) -> _Parts:
    def on_death(why: str) -> None:
        fate.died = why
        stop.set()

    board, feed = _live(settings, on_death)
    serving = _database(settings, settings.postgres_dsn)
    customers = None if settings.customers_dsn is None else _database(settings, settings.customers_dsn)
    keys = None
    if settings.customers_dsn is not None or settings.accounts_dsn is not None:
        keys = _database(settings, settings.customers_dsn or settings.postgres_dsn, writes=True)
    views = _views(settings)
    accounts = Accounts(
        settings.accounts_address,
        connections_max=settings.postgres_connections_max,
        seconds_max=settings.query_seconds_max,
    )
    cookie = Cookie(is_secure=settings.is_secure)
    forwarding = Forwarding(settings.query_url, wait_seconds_max=settings.query_wait_seconds_max)
    app = make_app(
        board,
        views,
        Door(
            Identities(accounts.postgres),
            AccountRoutes(
                accounts,
                cookie=cookie,
                proxies=settings.proxies,
                page_url=settings.page_url,
                customers=keys,
                external=_external(settings),
            ),
            Hosts(settings.hosts),
            cookie,
            AccountsAudit(accounts.postgres, _now_ms),
        ),
        streams_max=settings.streams_max,
        caller_requests_per_second=settings.caller_requests_per_second,
        now_ms=_now_ms,
        recordings=_recordings(settings),
        limits=PostgresLimits(customers or serving, serving),
        past=PostgresPast(serving),
        forwarding=forwarding,
        alerts=AlertRoutes(
            Alerting(accounts.postgres),
            Trying(serving, _now_ms),
            now_ms=_now_ms,
            proxies=settings.proxies,
        ),
        arrivals=ArrivalRoutes(ArrivalReader(settings), _now_ms),
    )
    runner = make_runner(app, settings.drain_seconds_max)
    admin = AdminServer(settings.admin_host, settings.admin_port, settings, is_alive=fate.alive, is_ready=fate.ready)
    return _Parts(board, feed, serving, customers, keys, views, accounts, forwarding, runner, admin)


def _live(settings: DashboardSettings, on_death: Callable[[str], None]) -> tuple[LiveBoard, LiveFeed]:
    """The live numbers, and what feeds them."""
    history_ms = settings.live_history_seconds_max * 1_000
    history = LiveHistory(
        history_ms=history_ms,
        settle_ms=round(settings.live_settle_seconds * 1_000),
        customers_max=settings.live_customers_max,
    )
    board = LiveBoard(history, now_ms=_now_ms)
    metrics.gauge(DASHBOARD_LIVE_AGE_SECONDS).set_function(lambda: board.age_seconds)
    feed = LiveFeed(
        settings,
        back_ms=history_ms,
        on_records=board.hand_over,
        on_reachable=board.set_reachable,
        on_death=on_death,
    )
    return board, feed


def _database(settings: DashboardSettings, dsn: Dsn, *, writes: bool = False) -> Postgres:
    return Postgres(
        dsn.get_secret_value(),
        service="dashboard",
        connections_max=settings.postgres_connections_max,
        seconds_max=settings.query_seconds_max,
        writes=writes,
    )


def _views(settings: DashboardSettings) -> ProcessorViews | None:
    if not settings.lookup_url or settings.lookup_token is None:
        return None
    token = settings.lookup_token.get_secret_value()
    seconds_max, ca_file = settings.query_seconds_max, settings.lookup_ca_file
    return ProcessorViews(Lookups(settings.lookup_url, token, seconds_max=seconds_max, ca_file=ca_file))


def _recordings(settings: DashboardSettings) -> Replay | None:
    if not settings.recordings_lookup_url or settings.lookup_token is None:
        return None
    token = settings.lookup_token.get_secret_value()
    return Replay(settings.recordings_lookup_url, token, settings.rrweb_dir, settings.lookup_ca_file)


def _external(settings: DashboardSettings) -> External | None:
    if not settings.oidc_issuer or settings.oidc_client_secret is None:
        return None
    provider = Provider(
        settings.oidc_issuer,
        settings.oidc_client_id,
        settings.oidc_client_secret.get_secret_value(),
        f"{settings.page_url}{CALLBACK_PATH}",
    )
    return External(provider, settings.oidc_name)


async def _serve(settings: DashboardSettings, stop: threading.Event) -> int:
    fate = _Fate()
    parts = _assemble(settings, fate, stop)
    stopping = asyncio.create_task(asyncio.to_thread(stop.wait))
    settling = asyncio.create_task(parts.board.keep_settling())
    await parts.serving.open()
    await parts.accounts.open()
    await parts.forwarding.open()
    keeping = asyncio.create_task(first_start.keep(parts.accounts, partial(commands.announce, settings)))
    for pool in (parts.customers, parts.keys):
        if pool is not None:
            await pool.open()
    if parts.views is not None:
        await parts.views.open()
    parts.feed.start()
    code = 0
    try:
        await _listen(parts, settings)
        log.info("ready", host=settings.host, port=settings.port, admin_port=settings.admin_port)
        await asyncio.wait({stopping, settling, keeping}, return_when=asyncio.FIRST_COMPLETED)
    except OSError as error:
        log.error("cannot_listen", problem=str(error))
        code = EXIT_BOOT
    if settling.done():
        fate.died = f"settling: {settling.exception()!r}"
    if keeping.done():
        fate.died = f"accounts: {keeping.exception()!r}"
    stop.set()
    await stopping
    await _drain(parts, fate)
    settling.cancel()
    keeping.cancel()
    await asyncio.wait({settling, keeping})
    parts.admin.stop()
    if fate.died:
        log.error("stopped_dead", why=fate.died)
        return EXIT_DEAD
    log.info("stopped")
    return code


async def _listen(parts: _Parts, settings: DashboardSettings) -> None:
    await parts.runner.setup()
    await web.TCPSite(parts.runner, settings.host, settings.port).start()
    # Last: `/readyz` answers 200 only once the process listens.
    parts.admin.start()


async def _drain(parts: _Parts, fate: _Fate) -> None:
    """Ends the streams (pages listen elsewhere then), finishes what is under way, and lets Kafka and Postgres go."""
    fate.is_draining = True
    parts.board.close()
    await parts.runner.cleanup()
    await asyncio.to_thread(parts.feed.stop)
    await parts.serving.close()
    await parts.accounts.close()
    await parts.forwarding.close()
    for pool in (parts.customers, parts.keys):
        if pool is not None:
            await pool.close()
    if parts.views is not None:
        await parts.views.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
