"""The live feed reads topic `live` from Kafka on a thread of its own: all partitions, some minutes back, committed records only.

It belongs to no consumer group: every dashboard shows everything, and needs no stored position. The client reconnects by itself.
The feed only finds out whether the broker answers, so that the page can show it.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from services.rim.kafka.connection import client_config, log_client_error
from shared import codec
from shared.codec import Undecodable
from shared.schemas.live import Live
from shared.settings import Settings
from shared.topics import LIVE

log = structlog.get_logger(__name__)

POLL_SECONDS: Final = 0.5
RECORDS_PER_POLL_MAX: Final = 2_000
#: How often the broker is probed while no record arrives.
PROBE_SECONDS: Final = 3.0
ANSWER_SECONDS_MAX: Final = 2.0
STOP_SECONDS_MAX: Final = 10.0


class LiveFeed:
    """The thread. `on_records` and `on_reachable` are called on it; they must hand over and return."""

    def __init__(
        self,
        settings: Settings,
        *,
        back_ms: int,
        on_records: Callable[[Sequence[Live]], None],
        on_reachable: Callable[[bool], None],
        on_death: Callable[[str], None],
    ) -> None:
        self._partitions = LIVE.partitions(settings.profile)
        self._back_ms = back_ms
        self._on_records = on_records
        self._on_reachable = on_reachable
        self._on_death = on_death
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live-feed", daemon=True)
        self._config = client_config(settings, "dashboard-live") | consumer_config()
        self._answered_at = time.monotonic()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Starts reading."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and its consumer."""
        self._stop.set()
        self._thread.join(STOP_SECONDS_MAX)

    def _run(self) -> None:
        try:
            consumer = Consumer(self._config)
            try:
                self._assign(consumer)
                while not self._stop.is_set():
                    self._read(consumer)
            finally:
                consumer.close()
        except Exception as error:
            # The thread's top: every error that ends it must be known.
            log.exception("live_feed_died")
            self._on_death(f"{type(error).__name__}: {error}")

    def _assign(self, consumer: Consumer) -> None:
        """Starts every partition `back_ms` ago; waits for the broker as long as it takes."""
        since_ms = time.time_ns() // 1_000_000 - self._back_ms
        wanted = [TopicPartition(LIVE.name, partition, since_ms) for partition in range(self._partitions)]
        while not self._stop.is_set():
            try:
                positions = consumer.offsets_for_times(wanted, timeout=ANSWER_SECONDS_MAX)
            except KafkaException:
                self._on_reachable(False)
                self._stop.wait(POLL_SECONDS)
                continue
            # A partition without a record that young answers with the end.
            consumer.assign(positions)
            self._on_reachable(True)
            return

    def _read(self, consumer: Consumer) -> None:
        messages = consumer.consume(RECORDS_PER_POLL_MAX, timeout=POLL_SECONDS)
        records = []
        for message in messages:
            error = message.error()
            if error is not None:
                # Connections recover by themselves; the probe finds out whether they have.
                log.warning("live_feed", code=error.name(), error=error.str())
                if error.code() == KafkaError._AUTO_OFFSET_RESET:
                    raise KafkaException(error)
                continue
            try:
                records.append(codec.LIVE.decode(message.value() or b""))
            except Undecodable as problem:
                log.error("live_undecodable", partition=message.partition(), offset=message.offset(), why=str(problem))
        if records:
            self._answered_at = time.monotonic()
            self._on_records(records)
            self._on_reachable(True)
        elif time.monotonic() - self._answered_at > PROBE_SECONDS:
            self._probe(consumer)

    def _probe(self, consumer: Consumer) -> None:
        try:
            consumer.list_topics(LIVE.name, timeout=ANSWER_SECONDS_MAX)
        except KafkaException:
            self._on_reachable(False)
        else:
            self._answered_at = time.monotonic()
            self._on_reachable(True)


def consumer_config() -> dict[str, Any]:
    """What the feed's consumer needs besides the connection."""
    return {
        # Required by the client, never used: nothing is subscribed or committed.
        "group.id": "dashboard-live",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        # What was kept is deleted by time and size: where the offset is gone, what is left is what there is to show.
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 200,
        "error_cb": log_client_error("dashboard-live"),
    }
