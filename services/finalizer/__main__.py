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

from services.finalizer import commands, folding
from services.finalizer.driver import Driver, StoppedEarly, clock_ms, driving
from services.finalizer.failures import JobFailed
from services.finalizer.health import Health
from services.finalizer.jobs.background_thread import BackgroundThread
from services.finalizer.jobs.deletions import asking
from services.finalizer.jobs.deletions.learned import Learned
from services.finalizer.jobs.deletions.open_state import OpenState
from services.finalizer.jobs.deletions.steps import Deletions
from services.finalizer.jobs.maintenance import Maintenance
from services.finalizer.jobs.rounds import Rounds
from services.finalizer.row_topics import RowTopic
from services.finalizer.serving.deletion_requests import DeletionRequests
from services.finalizer.settings import FinalizerSettings, is_local
from services.finalizer.streaming import stream
from services.finalizer.streaming.batches import Batches
from services.finalizer.streaming.raw import RawLanding
from services.finalizer.streaming.rows import RowLanding
from services.finalizer.streaming.stalls import Stalls
from services.finalizer.streaming.starting import starting_offsets
from services.finalizer.warehouse import checkpoint_lock, identity
from services.finalizer.warehouse.checkpoint_lock import CheckpointInUse
from services.finalizer.warehouse.tables import ALL, OF_VIEWS, RAW, ROWS, UNPARSED_ROWS, layout_of
from services.rim.admin.admin import AdminServer
from services.rim.database.migrations import DatabaseNewer
from services.rim.database.postgres import certificate_files
from services.rim.kafka.connection import TopicsWrong, verify_topics
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import certificates, disks, logs, metrics
from shared.settings import SettingsError
from shared.topics import BEACONS, LATE, REJECTED, VIEWS

log = structlog.get_logger("services.finalizer")

EXIT_SETTINGS: Final = 2
_LOOK_SECONDS: Final = 1.0

#: What ends a job with a message that says what to do, and needs no trace.
EXPECTED: Final = (JobFailed, DatabaseNewer, OSError, TopicsWrong)


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
    kafka = {*settings.certificate_files, *settings.views_kafka.certificate_files}
    databases = (settings.postgres_dsn, settings.customers_dsn, settings.accounts_dsn)
    certificates.watch(*kafka, read_again=[file for dsn in databases for file in certificate_files(dsn)])
    metrics.declare("finalizer")
    stop = stop_on_signals()
    try:
        if given.run is land:
            land(settings, stop, once=given.once)
        elif given.run is forget:
            forget(settings, stop, given)
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
    asking.add_to(jobs, forget)
    jobs.add_parser("schema", help="print every table's columns as JSON").set_defaults(run=None)
    return parser


def schema() -> None:
    """Prints the schema of all tables: the file that the next version is compared with."""
    print(json.dumps({table.name: layout_of(table) for table in ALL}, indent=1))  # noqa: T201 - its output


def forget(settings: FinalizerSettings, stop: threading.Event, given: argparse.Namespace) -> None:
    """Asks for a deletion, and has it done: by the stream that runs, or by one that is run until it is done."""
    asked = asking.Asked(settings, asking.ask(settings, given))
    try:
        land(settings, stop, once=False, until=asked.is_over)
    except CheckpointInUse:
        while not asked.is_over() and not stop.wait(_LOOK_SECONDS):
            pass
    for line in asked.lines():
        print(line)  # noqa: T201 - its output


def land(
    settings: FinalizerSettings, stop: threading.Event, *, once: bool, until: Callable[[], bool] = lambda: False
) -> None:
    """Lands until `stop` is set, or until what is given; `once`: until all that there is has landed. Raises `CheckpointInUse`."""
    # Before the port: a stream that runs has both, and `forget` waits for the one that has the checkpoint.
    with checkpoint_lock.hold(settings.checkpoint_dir):
        _land(settings, stop, once=once, until=until)


def _land(settings: FinalizerSettings, stop: threading.Event, *, once: bool, until: Callable[[], bool]) -> None:
    health = Health()
    for name, location in (("warehouse", settings.warehouse_dir), ("checkpoint", settings.checkpoint_dir)):
        if is_local(location):
            disks.watch(name, Path(location))
    admin = AdminServer(
        settings.admin_host, settings.admin_port, settings, is_alive=health.alive, is_ready=health.ready
    )
    admin.start()
    try:
        verify_topics(settings.views_kafka, [VIEWS])
        of_rows = [row_topic.topic for row_topic in settings.row_topics]
        verify_topics(settings, [BEACONS, LATE, REJECTED, *of_rows])
        with driving(settings, stop) as driver:
            streams, maintained = _start(driver, once=once)
            deletions = _deletions(driver, streams)
            background = BackgroundThread(
                driver.spark,
                driver.rebuilding,
                # Those that end by themselves have their rounds afterwards, whole.
                [] if once else maintained,
                every_seconds=settings.rollup_seconds,
                stop=driver.stop,
                also=deletions.advance,
            )
            background.start()
            health.watch([*(one.batches for one in streams), background])
            log.info("streams_started", trigger_seconds=settings.trigger_seconds, once=once)
            stalls = (
                Stalls(settings.views_kafka, [VIEWS.name]),
                Stalls(settings, [*RAW, *(topic.name for topic in of_rows)]),
            )

            def watch() -> None:
                background.watch()
                for one in stalls:
                    one.look()
                if until():
                    stop.set()

            try:
                is_over = stream.run(streams, stop, drain_seconds_max=settings.drain_seconds_max, watch=watch)
            finally:
                background.join(settings.drain_seconds_max)
            background.watch()
            if once:
                driver.rebuilding.rebuild_dirty(driver.spark, background.stream)
                deletions.advance(although_stopping=True)
                for one in maintained if is_over else ():
                    one.run_if_due(driver.spark, although_stopping=True)
    except StoppedEarly:
        log.info("stopped_early")
    finally:
        admin.stop()


def _deletions(driver: Driver, streams: Sequence[stream.Stream]) -> Deletions:
    settings = driver.settings
    has_recordings = any(topic.application == "recordings" for topic in settings.row_topics)
    requests = DeletionRequests(settings.accounts_database)
    return Deletions(
        driver,
        requests,
        OpenState(settings, has_recordings=has_recordings),
        Learned(settings, requests),
        turns=[turn for one in streams for turn in one.batches.turns],
    )


def _start(driver: Driver, *, once: bool) -> tuple[list[stream.Stream], list[Maintenance]]:
    """One stream a topic, each with its checkpoint and its tables: one that fails or waits holds up no other's.

    And what is maintained of each.
    """
    settings, spark = driver.settings, driver.spark
    warehouse = identity.warehouse_id(spark, settings.warehouse_dir)
    views_id = identity.topic_ids(settings.views_kafka, [VIEWS.name])[VIEWS.name]
    raw_ids = identity.topic_ids(settings, list(RAW))
    row_ids = (
        identity.topic_ids(settings, [row_topic.name for row_topic in settings.row_topics])
        if settings.row_topics
        else {}
    )
    # All are held to what they belong to before the first one starts.
    starting = {}
    for topic, topic_id in ({VIEWS.name: views_id} | row_ids | raw_ids).items():
        folder = stream.checkpoint(settings, RAW[topic].name if topic in RAW else topic)
        is_new = identity.hold_to(spark, folder, warehouse=warehouse, topic=topic, topic_id=topic_id)
        kafka = settings.views_kafka if topic == VIEWS.name else settings
        # Asked only for a new checkpoint: tables are read for it.
        starting[topic] = (
            starting_offsets(spark, settings.warehouse_dir, kafka, topic, topic_id) if is_new else "earliest"
        )
    started = [
        _start_views(driver, starting[VIEWS.name], once=once),
        *(_start_raw(driver, topic, raw_ids[topic], starting[topic], once=once) for topic in RAW),
        *(_start_rows(driver, topic, starting[topic.name], once=once) for topic in settings.row_topics),
    ]
    return [one for one, _ in started], [maintenance for _, maintenance in started]


def _rounds(driver: Driver) -> Rounds:
    return Rounds(driver.serving, driver.settings.maintenance_seconds, clock_ms)


def _start_views(driver: Driver, starting: str, *, once: bool) -> tuple[stream.Stream, Maintenance]:
    settings, landing = driver.settings, driver.landing
    offsets_max = settings.offsets_per_trigger_max
    # Rows that are read again are merged by revision.
    records = stream.read(driver.spark, settings.views_kafka, VIEWS.name, offsets_max=offsets_max, starting=starting)
    kept = [table for table in OF_VIEWS if table not in RAW.values()]
    if settings.row_topics:
        # Streams only append to it, which conflicts with no other writer.
        kept.append(UNPARSED_ROWS)
    maintenance = Maintenance.of(
        settings,
        kept,
        driver.earlier_ms,
        driver.stop,
        turn=landing.turn,
        serving=driver.serving,
        rounds=_rounds(driver),
    )
    batches = Batches("views", landing, driver.stop, turns=[landing.turn])
    return stream.start(records, batches, settings, trigger_seconds=settings.trigger_seconds, once=once), maintenance


def _start_raw(
    driver: Driver, topic: str, topic_id: str, starting: str, *, once: bool
) -> tuple[stream.Stream, Maintenance]:
    settings = driver.settings
    offsets_max = settings.raw_offsets_per_trigger_max
    records = stream.read(driver.spark, settings, topic, offsets_max=offsets_max, starting=starting)
    landing = RawLanding(settings.warehouse_dir, topic, topic_id, clock_ms=clock_ms, crash_points=driver.crash_points)
    batches = Batches(RAW[topic].name, landing, driver.stop, turns=[landing.turn])
    # Appends conflict with no maintenance: that waits for no turn.
    maintenance = Maintenance.of(settings, [RAW[topic]], driver.earlier_ms, driver.stop, rounds=_rounds(driver))
    return stream.start(
        records, batches, settings, trigger_seconds=settings.raw_trigger_seconds, once=once
    ), maintenance


def _start_rows(driver: Driver, topic: RowTopic, starting: str, *, once: bool) -> tuple[stream.Stream, Maintenance]:
    settings = driver.settings
    offsets_max = settings.raw_offsets_per_trigger_max
    # Rows that are read again are merged by its key.
    records = stream.read(driver.spark, settings, topic.name, offsets_max=offsets_max, starting=starting)
    landing = RowLanding(settings.warehouse_dir, topic, clock_ms=clock_ms, crash_points=driver.crash_points)
    maintenance = Maintenance.of(
        settings, [ROWS[topic.name]], driver.earlier_ms, driver.stop, turn=landing.turn, rounds=_rounds(driver)
    )
    batches = Batches(topic.name, landing, driver.stop, turns=[landing.turn])
    return stream.start(
        records, batches, settings, trigger_seconds=settings.raw_trigger_seconds, once=once
    ), maintenance


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
