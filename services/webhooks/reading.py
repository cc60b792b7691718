"""Reads topic `api_anomalies` in a group of its own, delivers, and keeps its position: each record at least once."""

import asyncio
import threading
from typing import Any, Final

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from services.rim.kafka.connection import client_config, log_client_error, passes, session_config
from services.rim.telemetry.metrics import counter, gauge
from services.webhooks.delivery import Delivery
from services.webhooks.lanes import Lanes, Place, ReadRecord
from services.webhooks.message import message_of
from services.webhooks.settings import WebhooksSettings
from shared.codec import Undecodable
from shared.metrics import WEBHOOKS_MESSAGES, WEBHOOKS_PENDING
from shared.topics import API_ANOMALIES, WEBHOOKS_FAILED

log = structlog.get_logger(__name__)

GROUP: Final = "webhooks"
_READ_SECONDS: Final = 0.2
_READ_MAX: Final = 100
#: How long Kafka may take to take a dead-lettered message, seconds; then the process ends, and starts again at that message.
_PRODUCE_SECONDS_MAX: Final = 60.0


class Reading:
    """The consumer and its lanes. `run` is the process's life."""

    def __init__(self, settings: WebhooksSettings, delivery: Delivery) -> None:
        self._pending_max = settings.pending_max
        self._drain_seconds_max = settings.drain_seconds_max
        self._delivery = delivery
        self._consumer = Consumer(
            client_config(settings, GROUP)
            | {
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.offset.store": False,
                "auto.commit.interval.ms": 1_000,
                **session_config(settings.session_ms),
                "error_cb": log_client_error(GROUP),
            }
        )
        self._producer = Producer(
            client_config(settings, GROUP)
            | {"acks": "all", "enable.idempotence": True, "message.timeout.ms": int(_PRODUCE_SECONDS_MAX * 1_000)}
        )
        self._lanes = Lanes(self._work, self._die)
        self._dropped: list[Place] = []
        self._is_paused = False
        self._death: BaseException | None = None
        #: Whether the group has given this process its partitions, if only none.
        self.is_assigned = False

    async def run(self, stop: threading.Event) -> None:
        """Reads and delivers until stopped. Raises what ended it: `KafkaException`, or a fault."""
        self._consumer.subscribe([API_ANOMALIES.name], on_assign=self._assigned, on_revoke=self._revoked)
        try:
            while not stop.is_set() and self._death is None:
                read = await asyncio.to_thread(self._consumer.consume, _READ_MAX, _READ_SECONDS)
                self._drop_revoked()
                for message in read:
                    self._take_message(message)
                gauge(WEBHOOKS_PENDING).set(self._lanes.pending)
                self._bound()
        finally:
            await self._lanes.end(0 if self._death else self._drain_seconds_max)
            await asyncio.to_thread(self._consumer.close)
        if self._death is not None:
            raise self._death

    def _take_message(self, message: Any) -> None:
        error = message.error()
        if error is None:
            self._lanes.add(
                ReadRecord(message.topic(), message.partition(), message.offset(), message.key(), message.value())
            )
        elif passes(error):
            # The client finds its way back by itself.
            log.warning("kafka_away", error=error.str())
        else:
            raise KafkaException(error)

    def _bound(self) -> None:
        """Reads no further while much is in hand; it goes on asking, so that the group knows that it lives."""
        if not self._is_paused and self._lanes.pending >= self._pending_max:
            self._consumer.pause(self._consumer.assignment())
            self._is_paused = True
        elif self._is_paused and self._lanes.pending <= self._pending_max // 2:
            self._consumer.resume(self._consumer.assignment())
            self._is_paused = False

    async def _work(self, record: ReadRecord) -> None:
        outcome = await self._outcome(record)
        counter(WEBHOOKS_MESSAGES).labels(outcome).inc()
        try:
            self._consumer.store_offsets(offsets=[TopicPartition(record.topic, record.partition, record.offset + 1)])
        except KafkaException as error:
            # It went to another member meanwhile, which sends it again: receivers know it by its id.
            if error.args[0].code() != KafkaError._STATE:
                raise

    async def _outcome(self, record: ReadRecord) -> str:
        try:
            message = message_of(record.value or b"")
        except Undecodable as error:
            await self._dead_letter(record, str(error))
            return "undecodable"
        if message is None:
            return "passed_over"
        why = await self._delivery.deliver(message)
        if why is None:
            return "delivered"
        await self._dead_letter(record, why)
        return "dead_letter"

    async def _dead_letter(self, record: ReadRecord, why: str) -> None:
        """Raises `KafkaException` when Kafka does not take it in time."""
        failures: list[KafkaError] = []
        self._producer.produce(
            WEBHOOKS_FAILED.name,
            record.value,
            record.key,
            headers=[
                ("reason", why.encode()),
                ("origin", f"{record.topic}/{record.partition}/{record.offset}".encode()),
            ],
            on_delivery=lambda error, _: failures.append(error) if error is not None else None,
        )
        left = await asyncio.to_thread(self._producer.flush, _PRODUCE_SECONDS_MAX + 5)
        if failures or left:
            raise KafkaException(failures[0] if failures else KafkaError(KafkaError._MSG_TIMED_OUT))
        log.warning("dead_letter", origin=f"{record.topic}/{record.partition}/{record.offset}", why=why)

    # Called by the client within `consume`, on its thread, while the loop waits for it.

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        log.info("assigned", partitions=sorted(one.partition for one in partitions))
        self.is_assigned = True
        self._is_paused = False

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        try:
            # What is delivered is not to be delivered again by the next owner of the partition.
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            log.info("not_committed", error=error.args[0].name())
        self._dropped += [(one.topic, one.partition) for one in partitions]

    def _drop_revoked(self) -> None:
        dropped, self._dropped = self._dropped, []
        self._lanes.drop(dropped)

    def _die(self, error: BaseException) -> None:
        self._death = error
