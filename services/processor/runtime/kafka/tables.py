"""Reads the topics of an application's global tables, outside the group: every process has every partition of them."""

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Final

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from services.processor.engine.application.application import Application
from services.processor.engine.application.tables import Tables
from services.processor.engine.record import Record
from services.processor.runtime.kafka.clients import table_consumer
from services.processor.runtime.kafka.refusals import REFUSED, Refusals, WorkerFailed
from services.processor.runtime.telemetry import gauges
from services.processor.settings import ProcessorSettings
from services.rim.kafka.connection import client_config

log = structlog.get_logger(__name__)

READ_RECORDS_MAX: Final = 1_000
READ_SECONDS: Final = 0.1
#: Read and not yet taken in: the thread waits where the loop is behind.
WAITING_BATCHES_MAX: Final = 20
#: Taken in by one turn of the loop, so that the partitions do not wait.
TURN_RECORDS_MAX: Final = 2_000
ANSWER_SECONDS_MAX: Final = 5.0
RETRY_SECONDS: Final = 0.5

At = tuple[str, int]


class TableReader:
    """Fills `tables` by a thread of its own and the turns of the loop. An application without tables costs nothing."""

    def __init__(self, settings: ProcessorSettings, application: Application) -> None:
        self.tables = Tables(application.tables)
        self._settings = settings
        self._application = application
        counts = {table.topic.name: table.topic.partitions(settings.profile) for table in application.tables}
        self._places = [(topic, number) for topic, count in counts.items() for number in range(count)]
        self._refusals = Refusals(settings.refused_ms_max / 1000)
        #: Read, with the positions after it; a None in place of records: the topic that begins again.
        self._waiting: deque[tuple[list[Record], dict[At, int], str | None]] = deque()
        #: The offset before which everything was taken in. Changed by the loop, read by takeovers.
        self._positions: dict[At, int] = {}
        self._ids: dict[str, str] = {}
        self._restarted: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to read."""
        if self._places and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tables", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2 * ANSWER_SECONDS_MAX)

    # The loop.

    def turn(self) -> None:
        """Takes in what was read, up to a bound."""
        taken = 0
        while self._waiting and taken < TURN_RECORDS_MAX:
            records, positions, restarted = self._waiting.popleft()
            if restarted is not None:
                self.tables.restart(restarted)
                self._positions = {at: offset for at, offset in self._positions.items() if at[0] != restarted}
            self.tables.take_records(records)
            self._positions |= positions
            taken += len(records) + 1
        if taken:
            gauges.show_tables(self.tables.sizes())

    def check_topics(self, present: Mapping[str, str]) -> None:
        """Reads a table from its beginning whose topic was created again; `present` are ids, by name."""
        for topic in {topic for topic, _ in self._places} & present.keys():
            if self._ids.setdefault(topic, present[topic]) != present[topic]:
                log.warning("table_replaced", topic=topic)
                self._ids[topic] = present[topic]
                self._restarted.add(topic)

    # Takeovers.

    def wait_until_read(self, given_up: threading.Event) -> bool:
        """Waits until the tables have all that their topics have now. False once `given_up` is set.

        Asks the leaders for their ends, after the call: what a former owner has seen is before these.
        """
        ends = self._ends(given_up) if self._places else {}
        began_at = reported_at = time.monotonic()
        while ends is not None:
            missing = {at: end for at, end in ends.items() if self._positions.get(at, 0) < end}
            if not missing:
                return True
            if time.monotonic() - reported_at > ANSWER_SECONDS_MAX:
                reported_at = time.monotonic()
                waited = round(reported_at - began_at, 1)
                log.warning("table_waits", places=[f"{topic}/{number}" for topic, number in missing], seconds=waited)
            if given_up.wait(READ_SECONDS):
                return False
        return False

    def _ends(self, given_up: threading.Event) -> dict[At, int] | None:
        while True:
            admin = AdminClient(client_config(self._settings, "table-ends"))
            wanted = {TopicPartition(*at): OffsetSpec.latest() for at in self._places}  # type: ignore[no-untyped-call]
            try:
                answers = admin.list_offsets(
                    wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=ANSWER_SECONDS_MAX
                )
                return {(at.topic, at.partition): answer.result().offset for at, answer in answers.items()}
            except KafkaException as exception:
                log.warning("table_waits", error=exception.args[0].str())
            if given_up.wait(RETRY_SECONDS):
                return None

    # The thread.

    def _run(self) -> None:
        consumer = table_consumer(self._settings, self._application)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in self._places])
        try:
            while not self._stop.is_set():
                self._refusals.check()
                while self._restarted:
                    self._restart(consumer, self._restarted.pop())
                if len(self._waiting) >= WAITING_BATCHES_MAX:
                    self._stop.wait(READ_SECONDS)
                    continue
                self._read(consumer.consume(READ_RECORDS_MAX, READ_SECONDS))
        finally:
            consumer.close()

    def _read(self, messages: list[Message]) -> None:
        records: list[Record] = []
        positions: dict[At, int] = {}
        for message in messages:
            error, at = message.error(), (message.topic() or "", message.partition() or 0)
            offset = message.offset() or 0
            if error is None:
                records.append(Record(*at, offset, message.timestamp()[1], message.key(), message.value()))
                positions[at] = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                positions[at] = offset
            else:
                self._note(error, at)
                continue
            self._refusals.clear(f"{at[0]}/{at[1]}")
        if positions:
            self._waiting.append((records, positions, None))

    def _note(self, error: KafkaError, at: At) -> None:
        place = f"{at[0]}/{at[1]}" if at[0] else "tables"
        if error.code() in REFUSED:
            self._refusals.note(place, error)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET and at[0]:
            # The topic has not the offset any more: it was created again.
            self._restarted.add(at[0])
        elif error.fatal():
            raise WorkerFailed(f"the consumer of tables is dead: {error.str()}")
        else:
            log.warning("table_error", place=place, code=error.name(), error=error.str())

    def _restart(self, consumer: Consumer, topic: str) -> None:
        places = [TopicPartition(topic, number) for name, number in self._places if name == topic]
        consumer.incremental_unassign(places)
        self._waiting.append(([], {}, topic))
        begins = [TopicPartition(topic, at.partition, OFFSET_BEGINNING) for at in places]
        consumer.incremental_assign(begins)
