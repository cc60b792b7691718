"""The sink on Kafka: one producer, acks from all in-sync replicas, and a thread that collects delivery reports."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from services.collector.sink.records import Record
from services.collector.sink.sink import Unstored, UnstoredReason
from services.rim.admin.admin import Check
from services.rim.kafka.connection import client_config, log_client_error
from shared.settings import Settings
from shared.topics import RECORD_BYTES_MAX

log = structlog.get_logger(__name__)

POLL_SECONDS: Final = 0.1
JOIN_SECONDS_MAX: Final = 5.0
#: A poll thread that has not come round for so long is as good as dead.
POLL_AGE_SECONDS_MAX: Final = 60.0
#: How long librdkafka itself tries. Far longer than any request waits: giving a record up early would leave a gap in its
#: partition's sequence while later records of the view go through.
DELIVERY_MS_MAX: Final = 120_000
#: Above this share of its queue the sink refuses whole requests, so that none is cut in two by a full queue.
SHED_AT: Final = 0.8


def producer_config(
    settings: Settings, client_id: str, *, queue_records_max: int, queue_kbytes_max: int, linger_ms: int
) -> dict[str, Any]:
    """What the collector's producer is given."""
    return client_config(settings, client_id) | {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": linger_ms,
        "compression.codec": "lz4",
        "message.max.bytes": RECORD_BYTES_MAX + 100_000,
        "delivery.timeout.ms": DELIVERY_MS_MAX,
        "queue.buffering.max.messages": queue_records_max,
        "queue.buffering.max.kbytes": queue_kbytes_max,
    }


class _Request:
    """One call of `store`: counts its delivery reports down, so that it costs one wake-up and not one a record."""

    __slots__ = ("bytes", "error", "future", "handed_over", "reported", "settled", "settling")

    def __init__(self, records: int, size_bytes: int, future: asyncio.Future[None], settling: list["_Request"]) -> None:
        self.handed_over = records
        self.bytes = size_bytes
        self.future = future
        self.settling = settling
        self.reported = 0
        self.error: KafkaError | None = None
        self.settled = False

    def on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        """Called by the poll thread, once a record."""
        if error is not None:
            self.error = error
        self.reported += 1
        if self.reported == self.handed_over:
            self.settling.append(self)


class KafkaSink:
    """A `Sink` on one producer. Make it and call `store` on the event loop's thread.

    `on_death` is called, on any thread, when the producer can never produce again; the process must then end, since only
    a new one can.
    """

    def __init__(
        self,
        config: dict[str, Any],
        *,
        queue_records_max: int,
        queue_kbytes_max: int,
        ack_seconds_max: float,
        on_death: Callable[[str], None],
        producer_type: Callable[..., Producer] = Producer,
    ) -> None:
        self._producer = producer_type(config | {"error_cb": self._on_client_error})
        self._log_error = log_client_error(config["client.id"])
        self._shed_records = int(queue_records_max * SHED_AT)
        self._shed_bytes = int(queue_kbytes_max * 1024 * SHED_AT)
        self._ack_seconds_max = ack_seconds_max
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()
        self._waiting_records = 0
        self._waiting_bytes = 0
        #: Requests whose last report came in this round of polling, in order. Touched by the poll thread alone.
        self._settling: list[_Request] = []
        self._death: str | None = None
        self._polled_at = time.monotonic()
        self._stopping = threading.Event()
        self._give_up_at = 0.0
        self._thread = threading.Thread(target=self._poll, name="delivery-reports", daemon=True)
        self._thread.start()

    async def store(self, records: Sequence[Record]) -> None:
        """See `Sink`. A request that fails half-way may be stored in part; its repetition makes duplicates, never gaps."""
        if not records:
            return
        size = sum(len(record.value) for record in records)
        self._refuse_when_full(len(records), size)
        future: asyncio.Future[None] = self._loop.create_future()
        request = _Request(len(records), size, future, self._settling)
        # Counted before the first record is handed over: its report may come at once.
        self._waiting_records += len(records)
        self._waiting_bytes += size
        self._hand_over(request, records)
        deadline = self._loop.call_later(self._ack_seconds_max, _expire, future, self._ack_seconds_max)
        try:
            await future
        finally:
            deadline.cancel()

    def records_waiting(self) -> int:
        """Records handed to the producer and not yet reported on."""
        return self._waiting_records

    def health(self) -> Check:
        """Dead after a fatal error, or when the thread that collects delivery reports died; an unreachable broker is neither."""
        if self._death is not None:
            return Check(False, self._death)
        if time.monotonic() - self._polled_at > POLL_AGE_SECONDS_MAX:
            return Check(False, f"no delivery reports gathered for {POLL_AGE_SECONDS_MAX:.0f} s")
        return Check(True)

    async def close(self, seconds_max: float) -> int:
        """See `Sink`. What it counts was never answered with success."""
        self._give_up_at = time.monotonic() + seconds_max
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, seconds_max + JOIN_SECONDS_MAX)
        self._death = self._death or "closed"
        # What the thread passed on last is settled first. The producer's own length also counts events that are no records.
        await asyncio.sleep(0)
        return self._waiting_records

    def _refuse_when_full(self, records: int, size_bytes: int) -> None:
        if self._death is not None:
            raise Unstored("dead", self._death)
        # A single request passes at any size: the queue itself then decides.
        waiting = self._waiting_records
        if waiting and (waiting + records > self._shed_records or self._waiting_bytes + size_bytes > self._shed_bytes):
            raise Unstored("queue_full", f"{waiting} records wait for Kafka")

    def _hand_over(self, request: _Request, records: Sequence[Record]) -> None:
        """Hands over every record, with no await between them, or raises `Unstored` after a part of them."""
        produce, on_delivery = self._producer.produce, request.on_delivery
        done = 0
        try:
            for record in records:
                # Most records have no headers: for an empty list the client does as much as for a full one.
                give = partial(produce, headers=record.headers) if record.headers else produce
                give(record.topic, record.value, record.key, record.partition, on_delivery=on_delivery)
                done += 1
        except BufferError as error:
            self._give_up(request, done, len(records))
            raise Unstored("queue_full", f"after {done} of {len(records)} records") from error
        except KafkaException as error:
            self._give_up(request, done, len(records))
            cause: KafkaError = error.args[0]
            if cause.fatal():
                self._die(f"fatal producer error: {cause.str()}")
            raise Unstored("delivery_failed", f"{cause.str()} after {done} of {len(records)} records") from error

    def _give_up(self, request: _Request, done: int, wanted: int) -> None:
        # What was handed over stays under way and stays counted until it is reported on.
        self._waiting_records -= wanted - done
        request.future.cancel()
        request.handed_over = done
        if request.reported >= done:
            # The reports were all in before the poll thread could know how few they would be.
            self._loop.call_soon(self._settle, [request])

    def _poll(self) -> None:
        """The poll thread: gathers reports and wakes the loop once a round."""
        try:
            while not self._stopping.is_set() or self._has_work_left():
                self._producer.poll(POLL_SECONDS)
                self._polled_at = time.monotonic()
                if self._settling:
                    settled = self._settling.copy()
                    self._settling.clear()
                    self._loop.call_soon_threadsafe(self._settle, settled)
        except Exception as error:  # a thread's top loop: it logs the cause, and the process ends
            log.exception("delivery_reports_stopped")
            self._die(f"the thread that gathers delivery reports died: {error!r}")

    def _has_work_left(self) -> bool:
        return len(self._producer) > 0 and self._death is None and time.monotonic() < self._give_up_at

    def _settle(self, requests: list[_Request]) -> None:
        """On the loop: resolves requests in the order of their last reports."""
        for request in requests:
            if request.settled:
                continue
            request.settled = True
            self._waiting_records -= request.handed_over
            self._waiting_bytes -= request.bytes
            if request.future.done():
                continue
            if request.error is None:
                request.future.set_result(None)
            else:
                request.future.set_exception(Unstored("delivery_failed", request.error.str()))

    def _on_client_error(self, error: KafkaError) -> None:
        self._log_error(error)
        if error.fatal():
            self._die(f"fatal producer error: {error.str()}")

    def _die(self, why: str) -> None:
        if self._death is None:
            self._death = why
            self._on_death(why)


def _expire(future: asyncio.Future[None], seconds: float) -> None:
    reason: UnstoredReason = "deadline"
    if not future.done():
        future.set_exception(Unstored(reason, f"no acknowledgement within {seconds:g} s; it may still be stored"))
