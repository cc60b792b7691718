"""Starts the dashboard: settings, topics, feed, queries, application, listener. Stops it cleanly.

`python -m services.dashboard owner-link` prints a link for the first owner, `login-link ADDRESS` one that logs somebody in, once;
`begin-again ADDRESS` one that is the only way in: password, second factor, sessions and logins at the provider end;
`migrate-accounts` makes or upgrades schema `accounts`.

Exit codes: 0 done, 2 wrong settings, 3 topics or ports not available, 4 the live feed died.
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import structlog
from aiohttp import web

from services.accounts import first_start
from services.dashboard import commands
from services.dashboard.assembly import Fate, Parts, assemble
from services.dashboard.commands import EXIT_BOOT, EXIT_SETTINGS
from services.dashboard.settings import DashboardSettings
from services.rim.database.postgres import certificate_files
from services.rim.kafka.connection import TopicsWrong, verify_topics
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import certificates, logs, metrics
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
        *([Path(settings.lookup_ca_file)] if settings.lookup_ca_file else []),
        read_again=[
            *certificate_files(settings.postgres_dsn),
            *certificate_files(settings.customers_dsn),
            *certificate_files(settings.accounts_dsn),
        ],
    )
    metrics.declare("dashboard")
    stop = stop_on_signals()
    try:
        verify_topics(settings, [LIVE])
    except TopicsWrong as error:
        log.error("topics_wrong", problem=str(error))
        return EXIT_BOOT
    return asyncio.run(_serve(settings, stop))


async def _serve(settings: DashboardSettings, stop: threading.Event) -> int:
    fate = Fate()
    parts = assemble(settings, fate, stop)
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


async def _listen(parts: Parts, settings: DashboardSettings) -> None:
    await parts.runner.setup()
    await web.TCPSite(parts.runner, settings.host, settings.port).start()
    # Last: `/readyz` answers 200 only once the process listens.
    parts.admin.start()


async def _drain(parts: Parts, fate: Fate) -> None:
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


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
