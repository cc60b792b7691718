"""Gives changed rules to the processor: writes each environment's rules to topic `alert_rules` while its row is locked.

So versions of one environment are in the topic in their order, with any number of processes. A process that ends between the
record and its commit writes the same version again, which the processor passes over.
"""

import asyncio
from functools import partial
from typing import Final

import psycopg
import structlog
from confluent_kafka import KafkaError, KafkaException, Producer

from services.alerts.store import rules
from services.alerts.store.rules import RulesUnread
from services.rim.database.pool import NotPublished, Postgres, PostgresAway
from services.rim.kafka.connection import client_config, log_client_error
from shared import codec
from shared.partitioning import partition_of
from shared.schemas.alerts.rule import AlertRules
from shared.settings import Settings
from shared.topics import ALERT_RULES

log = structlog.get_logger(__name__)

#: Rules are in force within 5 s: this, and a commit of the processor.
LOOK_SECONDS: Final = 0.5
AWAY_SECONDS: Final = 1.0
#: Less than the time that a question to Postgres may take: the transaction is open meanwhile.
_PRODUCE_SECONDS_MAX: Final = 4.0


class Publishing:
    """The loop that publishes."""

    def __init__(self, settings: Settings, postgres: Postgres) -> None:
        self._postgres = postgres
        self._partitions = ALERT_RULES.partitions(settings.profile)
        self._producer = Producer(
            client_config(settings, "notifications-rules")
            | {
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": round(_PRODUCE_SECONDS_MAX * 1_000),
                "error_cb": log_client_error("notifications-rules"),
            }
        )
        #: Environments with a rule that this version cannot read, each with the version of its rules.
        self._unread: dict[str, int] = {}

    async def run(self) -> None:
        """Publishes until cancelled. Raises errors that it cannot handle."""
        while True:
            try:
                published = await self._postgres.ask(self._publish_next)
            except (PostgresAway, NotPublished) as error:
                log.warning("cannot_publish", kind=type(error).__name__)
                await asyncio.sleep(AWAY_SECONDS)
                continue
            except RulesUnread as error:
                # The processor keeps the environment's former rules, until they change again or a later version reads them.
                self._unread.update([error.unread])
                log.error("rules_unread", customer=error.unread[0], version=error.unread[1], why=str(error.__cause__))
                continue
            except KafkaException as error:
                log.warning("cannot_publish", kind=error.args[0].name())
                await asyncio.sleep(AWAY_SECONDS)
                continue
            if not published:
                await asyncio.sleep(LOOK_SECONDS)

    async def _publish_next(self, connection: psycopg.AsyncConnection) -> bool:
        """False where there is nothing to publish. Raises `KafkaException`, which undoes the transaction."""
        changed = await rules.lock_unpublished(connection, self._unread.items())
        if changed is None:
            return False
        await asyncio.to_thread(partial(self._produce, changed))
        await rules.set_published(connection, changed)
        log.info("rules_published", customer=changed.customer_id, version=changed.version, rules=len(changed.rules))
        return True

    def _produce(self, changed: AlertRules) -> None:
        failures: list[KafkaError] = []
        key = changed.customer_id.encode()
        self._producer.produce(
            ALERT_RULES.name,
            codec.ALERT_RULES.encode(changed),
            key,
            partition_of(key, self._partitions),
            on_delivery=lambda error, _: failures.append(error) if error is not None else None,
        )
        left = self._producer.flush(_PRODUCE_SECONDS_MAX + 0.5)
        if failures or left:
            raise KafkaException(failures[0] if failures else KafkaError(KafkaError._MSG_TIMED_OUT))
