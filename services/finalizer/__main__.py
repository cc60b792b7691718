"""The finalizer's composition root: `python -m services.finalizer <job>`; `--help` lists the jobs."""

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import structlog
from pyspark.sql import DataFrame

from services.finalizer import commands, folding, identity
from services.finalizer.checkpoint_lock import CheckpointInUse
from services.finalizer.driver import Driver, clock_ms, writing
from services.finalizer.health import Health
from services.finalizer.identity import CheckpointForeign
from services.finalizer.jobs import raw, stream
from services.finalizer.jobs.batches import Batches
from services.finalizer.jobs.forget import TooManyViews
from services.finalizer.jobs.maintenance import Maintenance
from services.finalizer.jobs.raw import RawLanding
from services.finalizer.jobs.reprocess import NothingReprocessed
from services.finalizer.jobs.stalls import Stalls
from services.finalizer.jobs.stream import DataLost
from services.finalizer.locations import is_local
from services.finalizer.serving import Fenced, ServingAway
from services.finalizer.session import JarsMissing
from services.finalizer.settings import FinalizerSettings
from services.finalizer.tables import ALL, RAW, TableDiffers, told
from services.rim import certificates, disks, logs, metrics
from services.rim.admin import AdminServer
from services.rim.kafka import TopicsWrong, verify_topics
from services.rim.migrations import MigrationChanged
from services.rim.postgres import certificate_files
from services.rim.secrets import with_secrets
from services.rim.stopping import stop_on_signals
from shared.settings import SettingsError
from shared.topics import BEACONS, LATE, REJECTED, VIEWS

log = structlog.get_logger("services.finalizer")

EXIT_SETTINGS: Final = 2

#: What ends a job with a message that says what to do, and needs no trace.
EXPECTED: Final = (
    CheckpointForeign,
    CheckpointInUse,
    DataLost,
    Fenced,
    JarsMissing,
    MigrationChanged,
    NothingReprocessed,
    OSError,
    ServingAway,
    TableDiffers,
    TooManyViews,
    TopicsWrong,
)


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs a job; returns the exit code: 0 when it ended as asked, 1 when it could not go on, 2 for wrong settings."""
    options = parser()
    given = options.parse_args(arguments)
    commands.refuse_wrong(options, given)
    if given.run is None:
        schema()
        return 0
    try:
        environ = with_secrets(FinalizerSettings, environ)
        settings = FinalizerSettings.load(environ)
        folding.refuse_wrong_settings(environ)
    except SettingsError as error:
        print(f"finalizer: {error}", file=sys.stderr)  # noqa: T201 - there are no logs yet
        return EXIT_SETTINGS
    logs.configure("finalizer", settings)
    certificates.watch(*settings.certificate_files, *certificate_files(settings.postgres_dsn))
    metrics.declare("finalizer")
    stop = stop_on_signals()
    try:
        if given.run is land:
            land(settings, stop, once=given.once)
        else:
            given.run(commands.Job(settings, stop, given, environ))
    except EXPECTED as error:
        log.error("cannot_run", error=str(error), kind=type(error).__name__)
        return 1
    except Exception as error:
        log.exception("died", kind=type(error).__name__)
        return 1
    log.info("stopped")
    return 0


def parser() -> argparse.ArgumentParser:
    """The jobs and what each is given; `run` is what does it."""
    parser = argparse.ArgumentParser(prog="python -m services.finalizer", description=__doc__)
    jobs = parser.add_subparsers(required=True, metavar="job")
    landing = jobs.add_parser("stream", help="land what the topics bring, until SIGTERM")
    landing.add_argument("--once", action="store_true", help="land what there is now, then end: for cron")
    landing.set_defaults(run=land)
    commands.add_to(jobs)
    jobs.add_parser("schema", help="tell every table's columns as JSON").set_defaults(run=None)
    return parser


def schema() -> None:
    """Prints the schema of all tables: the file that the next version is held against."""
    print(json.dumps({table.name: told(table) for table in ALL}, indent=1))  # noqa: T201 - its output


def land(settings: FinalizerSettings, stop: threading.Event, *, once: bool) -> None:
    """Lands until told to stop; `once`: until all that there is has landed."""
    health = Health()
    for name, location in (("warehouse", settings.warehouse_dir), ("checkpoint", settings.checkpoint_dir)):
        if is_local(location):
            disks.watch(name, Path(location))
    admin = AdminServer(
        settings.admin_host, settings.admin_port, settings.admin_token, is_alive=health.alive, is_ready=health.ready
    )
    admin.start()
    try:
        verify_topics(settings, [VIEWS, BEACONS, LATE, REJECTED])
        with writing(settings, stop) as driver:
            ids = identity.topic_ids(settings, [VIEWS.name, *RAW])
            identity.hold_to(driver.spark, settings.checkpoint_dir, settings.warehouse_dir, ids)
            streams = _start(driver, once=once)
            health.watch([one.batches for one in streams])
            log.info("streams_started", trigger_seconds=settings.trigger_seconds, once=once)
            stalls = Stalls(settings, [VIEWS.name, *RAW])
            stream.run(streams, stop, drain_seconds_max=settings.drain_seconds_max, watch=stalls.look)
    finally:
        admin.stop()


def _start(driver: Driver, *, once: bool) -> list[stream.Stream]:
    settings, spark = driver.settings, driver.spark
    views = stream.read(
        spark, settings, [VIEWS.name], offsets_max=settings.offsets_per_trigger_max, starting="earliest"
    )
    # Told only for a new checkpoint: the tables are read for it.
    is_new = identity.is_new(spark, settings.checkpoint_dir, "raw")
    starting = raw.starting_offsets(spark, settings.warehouse_dir, settings) if is_new else "earliest"
    records = stream.read(
        spark, settings, list(RAW), offsets_max=settings.raw_offsets_per_trigger_max, starting=starting
    )
    raw_landing = RawLanding(settings.warehouse_dir, clock_ms=clock_ms, crash_points=driver.crash_points)
    return [
        stream.start(views, Batches("views", _land_and_maintain(driver), driver.stop), settings, once=once),
        stream.start(records, Batches("raw", raw_landing, driver.stop), settings, once=once),
    ]


def _land_and_maintain(driver: Driver) -> Callable[[DataFrame, int], int]:
    maintenance = Maintenance.of(driver.settings, driver.serving, clock_ms)

    def work(batch: DataFrame, batch_id: int) -> int:
        records = driver.landing(batch, batch_id)
        maintenance.run_if_due(batch.sparkSession)
        return records

    return work


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
