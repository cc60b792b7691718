"""What the dashboard is made of, put together from its settings."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

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
from services.dashboard.app import Door, make_app, make_runner
from services.dashboard.arrivals.reading import ArrivalReader
from services.dashboard.arrivals.routes import ArrivalRoutes
from services.dashboard.forwarding import Forwarding
from services.dashboard.limits.queries import PostgresLimits
from services.dashboard.live.board import LiveBoard
from services.dashboard.live.history import LiveHistory
from services.dashboard.live.kafka_reader import LiveFeed
from services.dashboard.live.landed.past_routes import PostgresPast
from services.dashboard.live.landed.slices import LandedSlices
from services.dashboard.live.landed.sums import PostgresLanded
from services.dashboard.replay import Replay
from services.dashboard.settings import DashboardSettings
from services.dashboard.views import ProcessorViews
from services.rim.admin.admin import AdminServer, Check
from services.rim.database.pool import Postgres
from services.rim.database.postgres import Dsn
from services.rim.http.lookups import Lookups
from services.rim.telemetry import metrics
from shared.metrics import DASHBOARD_LIVE_AGE_SECONDS


@dataclass
class Fate:
    """What has become of the process: why its feed died, and whether it is on its way out."""

    died: str = ""
    is_draining: bool = False

    def alive(self) -> Check:
        """Whether the feed is alive; its reason where it is not."""
        return Check(not self.died, self.died or "ok")

    def ready(self) -> Check:
        """Kafka or Postgres being away does not count: the page shows it itself."""
        return Check(False, "draining") if self.is_draining else self.alive()


@dataclass
class Parts:
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


def assemble(settings: DashboardSettings, fate: Fate, stop: threading.Event) -> Parts:
    """The parts, none of them begun; `stop` is set when the feed dies."""

    def on_death(why: str) -> None:
        fate.died = why
        stop.set()

    serving = _database(settings, settings.postgres_dsn)
    board, feed = _live(settings, serving, on_death)
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
            Identities(accounts.lookups),
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
            AccountsAudit(accounts.postgres, _now_ms, turns=accounts.turns),
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
            turns=accounts.turns,
        ),
        arrivals=ArrivalRoutes(ArrivalReader(settings), _now_ms),
    )
    runner = make_runner(app, settings.drain_seconds_max)
    admin = AdminServer(settings.admin_host, settings.admin_port, settings, is_alive=fate.alive, is_ready=fate.ready)
    return Parts(board, feed, serving, customers, keys, views, accounts, forwarding, runner, admin)


def _live(
    settings: DashboardSettings, serving: Postgres, on_death: Callable[[str], None]
) -> tuple[LiveBoard, LiveFeed]:
    """The live numbers, and what feeds them."""
    history_ms = settings.live_history_seconds_max * 1_000
    history = LiveHistory(
        history_ms=history_ms,
        settle_ms=round(settings.live_settle_seconds * 1_000),
        customers_max=settings.live_customers_max,
    )
    board = LiveBoard(history, now_ms=_now_ms, landed=LandedSlices(PostgresLanded(serving), now_ms=_now_ms))
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


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
