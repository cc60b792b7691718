"""The finalizer's composition root: `python -m services.finalizer stream` lands views for ever, `... once` what there is."""

import argparse
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from services.finalizer import checkpoint_lock, session, tables
from services.finalizer.checkpoint_lock import CheckpointInUse
from services.finalizer.health import Health
from services.finalizer.jobs import stream
from services.finalizer.jobs.landing import Landing
from services.finalizer.serving import Serving, ServingAway
from services.finalizer.session import JarsMissing
from services.finalizer.settings import FinalizerSettings
from services.finalizer.tables import TableDiffers
from services.rim import logs
from services.rim.admin import AdminServer
from services.rim.crash_points import CrashPoints
from services.rim.kafka import TopicsWrong, verify_topics
from services.rim.stopping import stop_on_signals
from shared.settings import SettingsError
from shared.topics import VIEWS

log = structlog.get_logger("services.finalizer")

EXIT_SETTINGS: Final = 2


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs the job; returns the exit code: 0 when it ended as asked, 1 when it could not go on, 2 for wrong settings."""
    parser = argparse.ArgumentParser(prog="python -m services.finalizer", description=__doc__)
    parser.add_argument("job", choices=("stream", "once"), help="land for ever, or what there is now")
    job = parser.parse_args(arguments).job
    try:
        settings = FinalizerSettings.load(environ)
    except SettingsError as error:
        print(f"finalizer: {error}", file=sys.stderr)  # noqa: T201 - there are no logs yet
        return EXIT_SETTINGS
    logs.configure("finalizer", settings)
    stop = stop_on_signals()
    health = Health()
    admin = AdminServer(settings.admin_host, settings.admin_port, is_alive=health.alive, is_ready=health.ready)
    try:
        admin.start()
        with checkpoint_lock.hold(settings.checkpoint_dir):
            run(settings, health, stop, once=job == "once")
    except (CheckpointInUse, JarsMissing, TopicsWrong, TableDiffers, ServingAway, OSError) as error:
        log.error("cannot_run", error=str(error), kind=type(error).__name__)
        return 1
    except Exception as error:
        log.exception("died", kind=type(error).__name__)
        return 1
    finally:
        admin.stop()
    log.info("stopped")
    return 0


def run(settings: FinalizerSettings, health: Health, stop: threading.Event, *, once: bool) -> None:
    """Opens everything, lands until told to stop, closes everything."""
    verify_topics(settings, [VIEWS])
    serving = Serving(
        settings.postgres_dsn.get_secret_value(), away_seconds_max=settings.postgres_away_seconds_max, stop=stop
    )
    serving.open()
    spark = session.start(settings)
    try:
        tables.ensure(spark, settings.warehouse_dir, auto_compact=settings.auto_compact)
        landing = Landing(
            settings.warehouse_dir,
            serving,
            slices_max=settings.slices_max,
            stop=stop,
            clock_ms=lambda: time.time_ns() // 1_000_000,
            crash_points=CrashPoints(settings.crash_at),
        )
        query = stream.start(stream.read(spark, settings), landing, settings, once=once)
        health.watch(landing)
        log.info("stream_started", query_id=str(query.id), trigger_seconds=settings.trigger_seconds, once=once)
        stream.run(query, landing, stop, drain_seconds_max=settings.drain_seconds_max)
    finally:
        serving.close()
        spark.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
