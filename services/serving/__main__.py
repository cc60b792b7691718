"""Starts the service `serving`: settings, topic, then reading. `python -m services.serving`; `repair` mends sums that differ.

Exit codes: 0 done, 1 it could not continue, 2 wrong settings, 3 the topic or a port not available.
"""

import argparse
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

import psycopg
import structlog
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from services.rim.admin.admin import AdminServer, Check
from services.rim.database.postgres import certificate_files
from services.rim.kafka.connection import BOOT_SECONDS_MAX, TopicsWrong, client_config, verify_topics
from services.rim.process.crash_points import CrashPoints
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import certificates, logs, metrics
from services.serving.comparing import Comparing
from services.serving.database import ViewsDatabase
from services.serving.live.database import LiveDatabase
from services.serving.live.landing import TOPICS as LIVE_TOPICS
from services.serving.live.landing import LiveLanding
from services.serving.reading import Reading
from services.serving.repair import repair
from services.serving.settings import ServingSettings
from shared.settings import SettingsError
from shared.topics import VIEWS, Topic

log = structlog.get_logger("services.serving")

#: A step ends sooner: Postgres limits its statements. If Postgres itself is stopped, only a restart ends the step.
HANGS_SECONDS: Final = 180.0
EXIT_DIED: Final = 1
EXIT_SETTINGS: Final = 2
EXIT_BOOT: Final = 3


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs until stopped, or repairs; the exit code."""
    given = parser().parse_args(arguments)
    try:
        settings = ServingSettings.load(with_secrets(ServingSettings, environ))
    except SettingsError as error:
        sys.stderr.write(f"serving: {error}\n")
        return EXIT_SETTINGS
    logs.configure("serving", settings)
    try:
        if given.job == "repair":
            for line in repair(settings, refill=given.refill):
                print(line)  # noqa: T201 - the command's output
            return 0
        certificates.watch(*settings.certificate_files, read_again=certificate_files(settings.postgres_dsn))
        metrics.declare("serving")
        _serve(settings, stop_on_signals())
    except (TopicsWrong, OSError) as error:
        log.error("cannot_start", problem=str(error))
        return EXIT_BOOT
    except KafkaException as error:
        log.error("kafka_refused", error=error.args[0].str())
        return EXIT_DIED
    except psycopg.OperationalError as error:
        log.error("postgres_away", kind=type(error).__name__)
        return EXIT_DIED
    except Exception as error:
        log.exception("died", kind=type(error).__name__)
        return EXIT_DIED
    log.info("stopped")
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line: nothing, to read; or `repair`."""
    parser = argparse.ArgumentParser(prog="python -m services.serving", description=__doc__)
    parser.set_defaults(job="read", refill=False)
    mending = parser.add_subparsers(metavar="job").add_parser("repair", help="mend hours of which the sums differ")
    mending.add_argument(
        "--refill", action="store_true", help="delete all hot rows; they are read from topic views again"
    )
    mending.set_defaults(job="repair")
    return parser


def _serve(settings: ServingSettings, stop: threading.Event) -> None:
    wanted = [VIEWS, *LIVE_TOPICS] if settings.live_days else [VIEWS]
    verify_topics(settings, wanted)
    ids = topic_ids(settings, wanted)
    dsn, crash_points = settings.postgres_dsn.get_secret_value(), CrashPoints(settings.crash_at)
    database = ViewsDatabase(dsn, ids[VIEWS.name], VIEWS.partitions(settings.profile), crash_points)
    reading = Reading(settings, database, now_ms=_now_ms)
    comparing = Comparing(dsn, settings, stop)
    died: list[Exception] = []
    live = None
    if settings.live_days:

        def end(error: Exception) -> None:
            died.append(error)
            stop.set()

        live_database = LiveDatabase(dsn, settings.live_customers_max, crash_points)
        live = LiveLanding(settings, live_database, ids, now_ms=_now_ms, on_death=end)
    stepping: list[Reading | LiveLanding] = [reading, live] if live else [reading]
    admin = AdminServer(
        settings.admin_host,
        settings.admin_port,
        settings,
        is_alive=lambda: Check(
            time.monotonic() - min(one.stepped_at for one in stepping) < HANGS_SECONDS, "the last step does not end"
        ),
        is_ready=lambda: Check(not reading.waits_for, f"waits for {reading.waits_for}" if reading.waits_for else "ok"),
    )
    admin.start()
    comparing.start()
    if live:
        live.start()
    try:
        reading.run(stop)
    finally:
        stop.set()
        if live:
            live.stop()
        comparing.join()
        admin.stop()
    if died:
        raise died[0]


def topic_ids(settings: ServingSettings, wanted: Sequence[Topic]) -> dict[str, str]:
    """The ids that the cluster gave the topics, by name: one that is made again gets another."""
    admin = AdminClient(client_config(settings, "serving-identity"))
    names = [topic.name for topic in wanted]
    asked = admin.describe_topics(TopicCollection(names), request_timeout=BOOT_SECONDS_MAX)
    return {name: str(asked[name].result().topic_id) for name in names}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
