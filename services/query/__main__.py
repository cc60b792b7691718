"""Starts the service `query`: settings, Postgres, DuckDB, listener. Stops it cleanly. `python -m services.query`.

Exit codes: 0 done, 1 it could not continue, 2 wrong settings, 3 a port not available.
"""

import asyncio
import contextlib
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from aiohttp import web

from services.accounts.credential_queue import AT_ONCE_MAX
from services.accounts.http.guard import Cookie
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.accounts.looks import AccountsAudit
from services.accounts.service import QUESTIONS_OF_ORGANISATION_MAX
from services.query.answering import Answering
from services.query.deleting import Deleting
from services.query.exporting import Exporting
from services.query.http.app import Door, Sources, make_app, make_runner
from services.query.memory import Memory
from services.query.rim.columns import Columns
from services.query.rim.engine import Engine
from services.query.rim.export_files import ExportFiles
from services.query.rim.hot import HotDatabase
from services.query.rim.in_turns import InTurns
from services.query.rim.processor import Processor
from services.query.rim.single import SingleViews
from services.query.rim.warehouse import ViewsTable
from services.query.settings import QuerySettings
from services.query.suspecting import Suspecting
from services.rim.admin.admin import AdminServer, Check
from services.rim.database.pool import Postgres
from services.rim.database.postgres import certificate_files
from services.rim.http.lookups import Lookups
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import certificates, logs, metrics
from services.rim.turns.question_limits import InTurn
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
    certificates.watch(
        *([Path(settings.lookup_ca_file)] if settings.lookup_ca_file else []),
        read_again=[*certificate_files(settings.postgres_dsn), *certificate_files(settings.accounts_dsn)],
    )
    metrics.declare("query")
    stop = stop_on_signals()
    try:
        code = asyncio.run(_serve(settings, stop))
    except Exception as error:
        log.exception("died", kind=type(error).__name__)
        return EXIT_DIED
    if code == 0:
        log.info("stopped")
    return code


@dataclass
class _Parts:
    """What the process is made of, put together once."""

    postgres: Postgres
    accounts: Postgres
    engine: Engine
    #: None: all is read from files.
    memory: Memory | None
    #: None: the processor's lookups are off.
    lookup: Processor | None
    #: None: there is no folder for exports.
    exporting: Exporting | None
    deleting: Deleting
    runner: web.AppRunner
    admin: AdminServer


def _assemble(settings: QuerySettings, stop: threading.Event) -> _Parts:
    postgres = Postgres(
        settings.postgres_dsn.get_secret_value(),
        service="query",
        connections_max=settings.postgres_connections_max,
        # Sooner than the question: so its answer says who is away.
        seconds_max=settings.seconds_max / 2,
    )
    # Its own pool: the caller is identified also while all others wait for rows.
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
    in_turns = InTurns(postgres, settings.postgres_connections_max)
    table = ViewsTable(settings.warehouse_dir)
    memory = Memory(Columns(settings.columns_bytes_max), engine) if settings.columns_bytes_max else None
    answering = Answering(
        table,
        HotDatabase(in_turns, settings.hot_rows_max),
        engine,
        rows_max=settings.rows_max,
        answers_bytes_max=settings.answers_bytes_max,
        memory=memory,
    )
    lookup, exporting = _lookup(settings), _exporting(settings, answering)
    single = SingleViews(in_turns, engine, table, settings.warehouse_dir)
    app = make_app(
        Sources(answering, Suspecting(answering), single, lookup, exporting),
        Door(
            Identities(accounts),
            Hosts(settings.hosts),
            Cookie(is_secure=settings.is_secure),
            AccountsAudit(accounts, _now_ms, turns=_turns_of_notes(settings)),
            settings.proxies,
        ),
        caller_questions_max=settings.caller_questions_max,
        caller_requests_per_second=settings.caller_requests_per_second,
        seconds_max=settings.seconds_max,
        days_max=settings.days_max,
        now_ms=_now_ms,
    )
    # Postgres or the warehouse being away does not count: answers say so.
    admin = AdminServer(
        settings.admin_host,
        settings.admin_port,
        settings,
        is_alive=lambda: Check(True),
        is_ready=lambda: Check(not stop.is_set(), "draining" if stop.is_set() else "ok"),
    )
    runner = make_runner(app, settings.drain_seconds_max)
    return _Parts(postgres, accounts, engine, memory, lookup, exporting, Deleting(accounts, exporting), runner, admin)


def _turns_of_notes(settings: QuerySettings) -> InTurn:
    """Of notes of looks: they leave connections to look-ups of credentials, and organisations take turns."""
    at_once = max(1, settings.postgres_connections_max - AT_ONCE_MAX)
    return InTurn(at_once=1, most=QUESTIONS_OF_ORGANISATION_MAX, of_all=at_once)


def _lookup(settings: QuerySettings) -> Processor | None:
    if not settings.lookup_url or settings.lookup_token is None:
        return None
    token = settings.lookup_token.get_secret_value()
    seconds_max, ca_file = settings.seconds_max / 4, settings.lookup_ca_file
    return Processor(Lookups(settings.lookup_url, token, seconds_max=seconds_max, ca_file=ca_file))


def _exporting(settings: QuerySettings, answering: Answering) -> Exporting | None:
    if settings.exports_dir is None:
        return None
    return Exporting(
        ExportFiles(settings.exports_dir),
        answering,
        rows_max=settings.export_rows_max,
        seconds_max=settings.export_seconds_max,
        bytes_max=settings.exports_bytes_max,
        hours=settings.exports_hours,
        under_way_max=settings.exports_under_way_max,
        days_max=settings.days_max,
        now_ms=_now_ms,
    )


async def _serve(settings: QuerySettings, stop: threading.Event) -> int:
    parts = _assemble(settings, stop)
    await parts.postgres.open()
    await parts.accounts.open()
    if parts.lookup is not None:
        await parts.lookup.open()
    stopping = asyncio.create_task(asyncio.to_thread(stop.wait))
    keeping = [asyncio.create_task(parts.deleting.keep())]
    if parts.exporting is not None:
        keeping.append(asyncio.create_task(parts.exporting.keep()))
    try:
        try:
            await _listen(parts, settings)
        except OSError as error:
            log.error("cannot_listen", problem=str(error))
            return EXIT_BOOT
        log.info("ready", host=settings.host, port=settings.port, admin_port=settings.admin_port)
        await asyncio.wait({stopping, *keeping}, return_when=asyncio.FIRST_COMPLETED)
        return 0
    finally:
        stop.set()
        await parts.runner.cleanup()
        for task in keeping:
            await _end(task)
        await stopping
        if parts.memory is not None:
            parts.memory.close()
        parts.engine.close()
        await parts.postgres.close()
        await parts.accounts.close()
        if parts.lookup is not None:
            await parts.lookup.close()
        parts.admin.stop()


async def _listen(parts: _Parts, settings: QuerySettings) -> None:
    await parts.runner.setup()
    await web.TCPSite(parts.runner, settings.host, settings.port).start()
    parts.admin.start()


async def _end(keeping: "asyncio.Task[None]") -> None:
    """Ends exports, or deletions: one that is under way begins again after the restart. Raises what they died of."""
    keeping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await keeping


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
