"""Starts webhooks: settings, topics, then reading. Stops it cleanly. `python -m services.webhooks`.

Exit codes: 0 done, 1 it could not continue, 2 wrong settings, 3 topics or a port not available.
"""

import asyncio
import os
import sys
import threading

import aiohttp
import structlog
from confluent_kafka import KafkaException

from services.rim.admin.admin import AdminServer, Check
from services.rim.http.signing import SecretWrong, key_of
from services.rim.http.tls import connector
from services.rim.kafka.connection import TopicsWrong, verify_topics
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import certificates, logs, metrics
from services.webhooks.delivery import Delivery, Policy
from services.webhooks.reading import Reading
from services.webhooks.settings import WebhooksSettings
from shared.settings import SettingsError
from shared.topics import API_ANOMALIES, WEBHOOKS_FAILED

log = structlog.get_logger("services.webhooks")

EXIT_DIED = 1
EXIT_SETTINGS = 2
EXIT_BOOT = 3


def main() -> int:
    """Runs until stopped; the exit code."""
    try:
        settings = WebhooksSettings.load(with_secrets(WebhooksSettings, os.environ))
        key = key_of(settings.secret.get_secret_value())
    except (SettingsError, SecretWrong) as error:
        sys.stderr.write(f"webhooks: {error}\n")
        return EXIT_SETTINGS
    logs.configure("webhooks", settings)
    certificates.watch(*settings.certificate_files)
    metrics.declare("webhooks")
    stop = stop_on_signals()
    try:
        verify_topics(settings, [API_ANOMALIES, WEBHOOKS_FAILED])
        asyncio.run(_serve(settings, key, stop))
    except (TopicsWrong, OSError) as error:
        log.error("cannot_start", problem=str(error))
        return EXIT_BOOT
    except KafkaException as error:
        log.error("kafka_refused", error=error.args[0].str())
        return EXIT_DIED
    except Exception as error:
        log.exception("died", kind=type(error).__name__)
        return EXIT_DIED
    log.info("stopped")
    return 0


async def _serve(settings: WebhooksSettings, key: bytes, stop: threading.Event) -> None:
    policy = Policy(settings.attempts_max, settings.backoff_ms, settings.backoff_ms_max)
    timeout = aiohttp.ClientTimeout(total=settings.answer_ms_max / 1000)
    async with aiohttp.ClientSession(connector=connector(), timeout=timeout) as session:
        reading = Reading(settings, Delivery(session, settings.url.get_secret_value(), key, policy))
        admin = AdminServer(
            settings.admin_host,
            settings.admin_port,
            settings,
            is_alive=lambda: Check(True),
            is_ready=lambda: Check(reading.is_assigned, "ok" if reading.is_assigned else "not yet of the group"),
        )
        admin.start()
        try:
            await reading.run(stop)
        finally:
            admin.stop()


if __name__ == "__main__":
    sys.exit(main())
