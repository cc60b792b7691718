"""Submitting: produces records of requests to the application's inputs, and waits until all in-sync replicas have them."""

import asyncio
import contextlib
import threading
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from services.processor.engine.application.application import Application
from services.processor.engine.application.requests import Submit
from services.processor.runtime.kafka.ownership import boot_seconds
from services.processor.runtime.questions import Unanswered
from services.rim.kafka.connection import client_config, log_client_error
from shared.partitioning import partition_of
from shared.settings import Settings
from shared.topics import RECORD_BYTES_MAX

POLL_SECONDS: Final = 0.1
JOIN_SECONDS_MAX: Final = 5.0
#: How long the client itself tries: longer than any request waits, so a write may still succeed after its request has ended.
DELIVERY_MS_MAX: Final = 30_000
QUEUE_RECORDS_MAX: Final = 20_000
QUEUE_KBYTES_MAX: Final = 32_768


class ProducerDead(RuntimeError):
    """The producer can never produce again, and so the process must end."""


class Submitter:
    """One producer, in addition to those of the partitions. Make it and call `take` on the loop's thread."""

    def __init__(self, settings: Settings, application: Application) -> None:
        self._profile = settings.profile
        self._loop = asyncio.get_running_loop()
        self._log_error = log_client_error("requests")
        self._death: str | None = None
        self._producer = Producer(
            {
                **client_config(settings, f"{application.id}.requests"),
                "error_cb": self._on_error,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "compression.codec": "lz4",
                "message.max.bytes": RECORD_BYTES_MAX + 100_000,
                "delivery.timeout.ms": DELIVERY_MS_MAX,
                "queue.buffering.max.messages": QUEUE_RECORDS_MAX,
                "queue.buffering.max.kbytes": QUEUE_KBYTES_MAX,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="submissions", daemon=True)
        self._thread.start()

    async def submit(self, step: Submit, deadline: float) -> None:
        """Stores the record by `deadline` (`boot_seconds`). Raises `Unanswered`: then it may be stored, or may still be."""
        stored: asyncio.Future[None] = self._loop.create_future()

        def delivered(error: KafkaError | None, _message: Message) -> None:
            # On the polling thread; the loop may have ended meanwhile.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, stored, error)

        partition = partition_of(step.key, step.topic.partitions(self._profile))
        try:
            self._producer.produce(step.topic.name, step.value, step.key, partition, on_delivery=delivered)
        except BufferError:
            raise Unanswered("too many writes wait for Kafka") from None
        except KafkaException as error:
            raise Unanswered(f"the write was not stored: {error.args[0].name()}") from error
        try:
            await asyncio.wait_for(stored, deadline - boot_seconds())
        except TimeoutError:
            raise Unanswered("Kafka did not confirm the write in time") from None

    def close(self) -> None:
        """Ends the thread; waiting records are abandoned."""
        self._stopping.set()
        self._thread.join(JOIN_SECONDS_MAX)

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(POLL_SECONDS)
            if self._death is not None:
                raise ProducerDead(self._death)

    def _on_error(self, error: KafkaError) -> None:
        self._log_error(error)
        if error.fatal():
            self._death = f"the producer of requests is dead: {error.str()}"


def _settle(stored: asyncio.Future[None], error: KafkaError | None) -> None:
    if stored.done():
        return
    if error is None:
        stored.set_result(None)
    else:
        stored.set_exception(Unanswered(f"the write was not stored: {error.name()}"))
