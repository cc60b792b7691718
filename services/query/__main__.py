"""Starts the service `query`: settings, Postgres, DuckDB, listener. Stops it cleanly. `python -m services.query`.

Exit codes: 0 done, 1 it could not continue, 2 wrong settings, 3 a port not available.
"""

import asyncio
import os
import sys
import threading
import time
from typing import Final

import structlog
from aiohttp import web

from services.accounts.http.guard import Cookie
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.query.answering import Answering
from services.query.http.app import Door, Sources, make_app, make_runner
from services.query.rim.audit import AccountsAudit
from services.query.rim.engine import Engine
from services.query.rim.hot import HotDatabase
from services.query.rim.processor import Processor
from services.query.rim.single import SingleViews
from services.query.rim.warehouse import ViewsTable
from services.query.settings import QuerySettings
from services.query.suspecting import Suspecting
from services.rim.admin.admin import AdminServer, Check
from services.rim.database.pool import Postgres
from services.rim.database.postgres import certificate_files
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import certificates, logs, metrics
from shared.settings import SettingsError

log = structlog.get_logger("services.query")

EXIT_DIED: Final = 1
EXIT_SETTINGS: Final = 2
EXIT_BOOT: Final = 3


def main() -> int:
    """Runs until stopped; the exit code."""
    try:
        settings = QuerySettings.load(with_secrets(QuerySettings, os.environ))
    except SettingsError as error:
        sys.stderr.write(f"query: {error}\n")
        return EXIT_SETTINGS
    logs.configure("query", settings)
    certificates.watch(*certificate_files(settings.postgres_dsn), *certificate_files(settings.accounts_dsn))
    metrics.declare("query")
    stop = stop_on_signals()
    try:
        asyncio.run(_serve(settings, stop))
    except OSError as error:
        log.error("cannot_listen", problem=str(error))
        return EXIT_BOOT
    except Exception as error:
        log.exception("died", kind=type(error).__name__)
        return EXIT_DIED
    log.info("stopped")
    return 0


async def _serve(settings: QuerySettings, stop: threading.Event) -> None:
    postgres = Postgres(
        settings.postgres_dsn.get_secret_value(),
        service="query",
        connections_max=settings.postgres_connections_max,
        # Sooner than the question: so its answer says who is away.
        seconds_max=settings.seconds_max / 2,
    )
    # Its own pool: whoever asks is to be known also while all others wait for rows.
    accounts = Postgres(
        settings.accounts_address,
        service="query-accounts",
        connections_max=settings.postgres_connections_max,
        seconds_max=settings.seconds_max / 2,
        writes=True,
    )
    engine = Engine(
        settings.warehouse_dir,
        threads=settings.threads,
        memory_bytes_max=settings.memory_bytes_max,
        questions_max=settings.questions_max,
    )
    table = ViewsTable(settings.warehouse_dir)
    answering = Answering(
        table,
        HotDatabase(postgres, settings.hot_rows_max),
        engine,
        rows_max=settings.rows_max,
        answers_max=settings.answers_max,
    )
    lookup = None
    if settings.lookup_url and settings.lookup_token is not None:
        token = settings.lookup_token.get_secret_value()
        lookup = Processor(settings.lookup_url, token, seconds_max=settings.seconds_max / 4)
    app = make_app(
        Sources(
            answering,
            Suspecting(answering),
            SingleViews(postgres, engine, table, settings.warehouse_dir),
            lookup,
        ),
        Door(
            Identities(accounts),
            Hosts(settings.hosts),
            Cookie(is_secure=settings.is_secure),
            AccountsAudit(accounts, _now_ms),
            settings.proxies,
        ),
        caller_questions_max=settings.caller_questions_max,
        seconds_max=settings.seconds_max,
        days_max=settings.days_max,
        now_ms=_now_ms,
    )
    runner = make_runner(app, settings.drain_seconds_max)
    # Postgres or the warehouse being away does not count: answers say so.
    admin = AdminServer(
        settings.admin_host,
        settings.admin_port,
        settings.admin_token,
        is_alive=lambda: Check(True),
        is_ready=lambda: Check(not stop.is_set(), "draining" if stop.is_set() else "ok"),
    )
    await postgres.open()
    await accounts.open()
    if lookup is not None:
        await lookup.open()
    try:
        await runner.setup()
        await web.TCPSite(runner, settings.host, settings.port).start()
        admin.start()
        log.info("ready", host=settings.host, port=settings.port, admin_port=settings.admin_port)
        await asyncio.to_thread(stop.wait)
    finally:
        stop.set()
        await runner.cleanup()
        engine.close()
        await postgres.close()
        await accounts.close()
        if lookup is not None:
            await lookup.close()
        admin.stop()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
