"""Starts notifications: settings, topics, schema, then landing, publishing and sending. `python -m services.notifications`.

`python -m services.notifications migrate` makes or upgrades schema `alerts` and ends. Exit codes: 0 done, 1 it could not continue,
2 wrong settings, 3 topics, Postgres or a port not available.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Sequence

import psycopg
import structlog
from confluent_kafka import KafkaException

from services.alerts.store import deliveries, schema
from services.notifications import senders
from services.notifications.landing import Landing
from services.notifications.mails import Mails
from services.notifications.publishing import Publishing
from services.notifications.senders import Senders
from services.notifications.sending import Sending
from services.notifications.settings import NotificationsSettings
from services.rim.admin.admin import AdminServer, Check
from services.rim.database.migrations import DatabaseNewer
from services.rim.database.pool import NotPublished, Postgres, PostgresAway
from services.rim.database.postgres import certificate_files
from services.rim.kafka.connection import TopicsWrong, verify_topics
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import certificates, logs, metrics
from shared.settings import SettingsError
from shared.topics import ALERT_EVENTS, ALERT_RULES

log = structlog.get_logger("services.notifications")

EXIT_DIED = 1
EXIT_SETTINGS = 2
EXIT_BOOT = 3
_CLEAN_SECONDS = 3_600.0
#: A question to Postgres may hold what is published to Kafka meanwhile.
_POSTGRES_SECONDS_MAX = 10.0


def main(arguments: Sequence[str] = ()) -> int:
    """Runs until stopped; the exit code."""
    try:
        settings = NotificationsSettings.load(with_secrets(NotificationsSettings, os.environ))
    except SettingsError as error:
        sys.stderr.write(f"notifications: {error}\n")
        return EXIT_SETTINGS
    logs.configure("notifications", settings)
    if list(arguments) not in ([], ["migrate"]):
        sys.stderr.write("notifications: the only command is migrate\n")
        return EXIT_SETTINGS
    certificates.watch(*settings.certificate_files, read_again=certificate_files(settings.postgres_dsn))
    metrics.declare("notifications")
    try:
        schema.migrate(settings.postgres_dsn.get_secret_value())
        if arguments:
            return 0
        stop = stop_on_signals()
        verify_topics(settings, [ALERT_EVENTS, ALERT_RULES])
        asyncio.run(_serve(settings, stop))
    except (TopicsWrong, OSError, psycopg.Error, DatabaseNewer) as error:
        # psycopg's texts may name hosts and users.
        problem = type(error).__name__ if isinstance(error, psycopg.Error) else str(error)
        log.error("cannot_start", problem=problem)
        return EXIT_BOOT
    except KafkaException as error:
        log.error("kafka_refused", error=error.args[0].str())
        return EXIT_DIED
    except Exception as error:
        log.exception("died", kind=type(error).__name__)
        return EXIT_DIED
    log.info("stopped")
    return 0


async def _serve(settings: NotificationsSettings, stop: threading.Event) -> None:
    postgres = Postgres(
        settings.postgres_dsn.get_secret_value(),
        service="notifications",
        connections_max=settings.postgres_connections_max,
        seconds_max=_POSTGRES_SECONDS_MAX,
        writes=True,
    )
    await postgres.open()
    async with senders.session(settings) as session:
        mails = Mails(settings)
        sending = Sending(settings, postgres, Senders(settings, session, mails))
        landing = Landing(settings, postgres, sending.wake.set)
        publishing = Publishing(settings, postgres)
        admin = AdminServer(
            settings.admin_host,
            settings.admin_port,
            settings,
            is_alive=lambda: Check(True),
            is_ready=lambda: Check(landing.is_assigned, "ok" if landing.is_assigned else "not yet of the group"),
        )
        admin.start()
        loops = [asyncio.create_task(one) for one in (sending.run(), publishing.run(), _keep_clean(postgres))]
        reading = asyncio.create_task(landing.run(stop))
        try:
            await asyncio.wait({reading, *loops}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # A loop that has ended has failed: the process ends with it, and starts again.
            stop.set()
            for task in loops:
                task.cancel()
            ended = await asyncio.gather(reading, *loops, return_exceptions=True)
            admin.stop()
            mails.close()
            await postgres.close()
        for one in ended:
            if isinstance(one, Exception):
                raise one


async def _keep_clean(postgres: Postgres) -> None:
    while True:
        try:
            await postgres.ask(deliveries.clean)
        except (PostgresAway, NotPublished):
            log.warning("cannot_clean")
        await asyncio.sleep(_CLEAN_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
