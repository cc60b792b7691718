"""Reads topic `views` in a group, committed records only, and lands them: rows and positions in one transaction of Postgres.

The positions in Postgres are the truth; the group only shares partitions out. After any failure, this process drops what it
has read, asks Postgres for the positions of its partitions, and reads on from there.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from services.rim.database.postgres import LOST
from services.rim.kafka.connection import client_config, log_client_error, passes, session_config
from services.rim.telemetry.metrics import counter, gauge, histogram
from services.serving.database import NOT_THERE, Extent, Move, NotKept, Superseded, ViewsDatabase
from services.serving.rows import Row, newest, row_of
from services.serving.settings import ServingSettings
from shared.metrics import (
    SERVING_DELAY_SECONDS,
    SERVING_LAG_RECORDS,
    SERVING_RECORDS,
    SERVING_SUPERSEDED,
    SERVING_TRANSACTION_SECONDS,
    SERVING_VIEWS,
)
from shared.topics import VIEWS

log = structlog.get_logger(__name__)

GROUP: Final = "serving"
POLL_SECONDS: Final = 0.5
ANSWER_SECONDS_MAX: Final = 10.0
_BACKOFF_SECONDS: Final = 0.2
_BACKOFF_SECONDS_MAX: Final = 5.0
_OBSERVE_SECONDS: Final = 5.0
#: How often an idle process asks whether its positions are still those of Postgres: a repair resets them.
_VERIFY_SECONDS: Final = 5.0
#: A transaction ends at so many bytes of records: a row may have some 100 KB.
_BYTES_MAX: Final = 16 * 1024 * 1024
_RECORDS_AT_ONCE: Final = 500


class Reading:
    """The consumer and its database. `run` is the process's life."""

    def __init__(self, settings: ServingSettings, database: ViewsDatabase, *, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._database = database
        self._now_ms = now_ms
        self._consumer = Consumer(client_config(settings, GROUP) | _consumer_config(settings))
        #: What the group has given this process, if only none.
        self._partitions: list[int] | None = None
        #: Where each of them goes on, as Postgres has it; None: it must be asked.
        self._positions: dict[int, int] | None = None
        self._is_whole = False
        self._next_observation = 0.0
        self._next_verification = 0.0
        self._backoff_seconds = _BACKOFF_SECONDS
        #: Monotonic seconds at which it last did something.
        self.stepped_at = time.monotonic()
        #: Why it does not land now, or empty.
        self.waits_for = "the group"

    def run(self, stop: threading.Event) -> None:
        """Reads and lands until stopped. Raises `KafkaException` where Kafka refuses, and Postgres's errors that are no outage."""
        self._consumer.subscribe([VIEWS.name], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        try:
            while not stop.is_set():
                self._step(stop)
        finally:
            self._consumer.close()
            self._database.close()

    def _step(self, stop: threading.Event) -> None:
        self.stepped_at = time.monotonic()
        try:
            if self._partitions and self._positions is None:
                self._begin()
            messages = self._read(stop)
            if self._positions is not None and messages:
                self._land(messages)
            if self._positions and time.monotonic() >= self._next_verification:
                self._next_verification = time.monotonic() + _VERIFY_SECONDS
                self._database.verify(self._positions)
                self._observe_lag()
            if self._positions and not self._is_whole:
                self._is_whole = self._database.finish_filling()
            self._backoff_seconds = _BACKOFF_SECONDS
        except Superseded as error:
            counter(SERVING_SUPERSEDED).inc()
            log.warning("superseded", why=str(error))
            self._start_over("positions")
        except NotKept:
            self._wait("the finalizer", "nothing is kept yet")
        except NOT_THERE as error:
            self._wait("the finalizer", type(error).__name__)
        except KafkaException as error:
            if not passes(error.args[0]):
                raise
            self._wait("Kafka", error.args[0].name())
        except LOST as error:
            # Its text may name hosts and users.
            self._wait("Postgres", type(error).__name__)

    def _wait(self, for_what: str, why: str) -> None:
        """Drops what was read, and lets some time pass, in which the group hears of this process."""
        log.warning("waiting", waits_for=for_what, why=why, seconds=self._backoff_seconds)
        self._start_over(for_what)
        deadline = time.monotonic() + self._backoff_seconds
        while (left := deadline - time.monotonic()) > 0:
            self._check(self._consumer.poll(min(left, POLL_SECONDS)))
        self._backoff_seconds = min(2 * self._backoff_seconds, _BACKOFF_SECONDS_MAX)

    def _start_over(self, waits_for: str) -> None:
        self._database.close()
        self._positions, self._is_whole = None, False
        self.waits_for = waits_for
        self._consumer.assign([])

    def _begin(self) -> None:
        """Reads on from the positions that Postgres has."""
        extents = {}
        for partition in self._partitions or ():
            place = TopicPartition(VIEWS.name, partition)
            found = self._consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS_MAX)
            if found is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            extents[partition] = Extent(*found)
        positions = self._database.positions(extents, now_ms=self._now_ms())
        # A position that the topic no longer has is answered with its first record, by `auto.offset.reset`.
        self._consumer.assign(
            [TopicPartition(VIEWS.name, partition, offset) for partition, offset in positions.items()]
        )
        self._positions = positions
        self.waits_for = ""
        log.info("reading", positions=positions)

    def _read(self, stop: threading.Event) -> list[Any]:
        """What is there, at least what came within `linger_ms` of a first record."""
        first = self._consumer.poll(POLL_SECONDS)
        if first is None:
            return []
        if first.error() is None and self._settings.linger_ms:
            stop.wait(self._settings.linger_ms / 1_000)
        messages = [first]
        size_bytes = len(first)
        while len(messages) < self._settings.records_max and size_bytes < _BYTES_MAX:
            more = self._consumer.consume(min(_RECORDS_AT_ONCE, self._settings.records_max - len(messages)), 0)
            if not more:
                break
            messages += more
            size_bytes += sum(map(len, more))
        return messages

    def _land(self, messages: list[Any]) -> None:
        assert self._positions is not None
        rows: list[Row] = []
        ends: dict[int, int] = {}
        first_ms: dict[int, int] = {}
        outcomes: Counter[str] = Counter()
        appended_ms: list[int] = []
        for message in messages:
            partition = message.partition()
            if self._check(message):
                ends[partition] = message.offset() + 1
                appended_ms.append(message.timestamp()[1])
                first_ms.setdefault(partition, message.timestamp()[1])
                row = row_of(message.value())
                if isinstance(row, str):
                    outcomes[row] += 1
                    log.warning("not_a_view", reason=row, partition=partition, offset=message.offset())
                else:
                    outcomes["view"] += 1
                    rows.append(row)
            elif message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF:
                # Past marks of transactions, which are no records.
                ends[partition] = message.offset()
        moves = {
            partition: Move(self._positions[partition], end, first_ms.get(partition))
            for partition, end in ends.items()
            if partition in self._positions and end != self._positions[partition]
        }
        # Marks alone are worth no transaction, but at first, when it matters whether the end was reached.
        if not moves or (not appended_ms and self._is_whole):
            return
        with histogram(SERVING_TRANSACTION_SECONDS).time():
            new = self._database.land(newest(rows), moves)
        self._positions |= {partition: move.next_offset for partition, move in moves.items()}
        counter(SERVING_VIEWS).inc(new)
        for outcome, count in outcomes.items():
            counter(SERVING_RECORDS).labels(outcome).inc(count)
        now_ms = self._now_ms()
        for append_ms in appended_ms:
            histogram(SERVING_DELAY_SECONDS).observe(max(0, now_ms - append_ms) / 1_000)
        self._observe_lag()

    def _observe_lag(self) -> None:
        if time.monotonic() < self._next_observation:
            return
        self._next_observation = time.monotonic() + _OBSERVE_SECONDS
        lag = 0
        for partition, position in (self._positions or {}).items():
            found = self._consumer.get_watermark_offsets(TopicPartition(VIEWS.name, partition), cached=True)
            lag += 0 if found is None else max(0, found[1] - position)
        gauge(SERVING_LAG_RECORDS).set(lag)

    def _check(self, message: Any) -> bool:
        """Whether it is a record; raises `KafkaException` of an error that does not pass by itself."""
        error = None if message is None else message.error()
        if message is None or error is None:
            return message is not None
        if error.code() == KafkaError._PARTITION_EOF:
            return False
        if passes(error):
            log.warning("kafka_away", error=error.str())
            return False
        raise KafkaException(error)

    # Called by the client within `poll` and `consume`.

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._partitions = sorted(one.partition for one in partitions)
        self._positions = None
        self.waits_for = "positions" if self._partitions else ""
        # Nothing is read until Postgres has said from where.
        consumer.assign([])
        log.info("assigned", partitions=self._partitions)

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._partitions, self._positions = None, None
        self.waits_for = "the group"
        log.info("revoked", partitions=sorted(one.partition for one in partitions))


def _consumer_config(settings: ServingSettings) -> dict[str, Any]:
    return {
        "group.id": GROUP,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        # Of each partition.
        "queued.max.messages.kbytes": 8_192,
        "fetch.max.bytes": _BYTES_MAX,
        **session_config(settings.session_ms),
        "error_cb": log_client_error(GROUP),
    }
