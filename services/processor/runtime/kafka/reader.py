"""Reader: reads the slot's consumer a batch at a time and handles its errors by kind."""

from collections.abc import Iterable
from typing import Final

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from services.processor.engine.record import Record
from services.processor.runtime.kafka.refusals import REFUSED, InputGone, Refusals, SlotFenced, WorkerFailed
from services.processor.runtime.telemetry.record_traces import RecordTraces

log = structlog.get_logger(__name__)

#: Errors in a row that the client cannot express before it counts as dead.
STRANGE_ERRORS_MAX: Final = 10


class Batch:
    """What was read of one partition: records in order, and the offset up to (not including) which it was read with them."""

    __slots__ = ("last", "position", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.position = 0
        #: The message of the last record.
        self.last: Message | None = None

    @property
    def leader_epoch(self) -> int | None:
        """The leader epoch of the last record; None without one."""
        return None if self.last is None else self.last.leader_epoch()


#: By topic and partition.
Dealt = dict[tuple[str, int], Batch]


class Reader:
    """Reads up to `records_max` records at once. Raises `WorkerFailed` when the slot cannot go on."""

    def __init__(
        self,
        consumer: Consumer,
        topics: Iterable[str],
        *,
        records_max: int,
        refused_seconds_max: float,
        by_headers: bool = False,
        record_traces: RecordTraces | None = None,
    ) -> None:
        """`by_headers`: records are read by their headers, without their values. `record_traces` sees every message."""
        self._consumer = consumer
        self._refusals = Refusals(refused_seconds_max)
        self._topics = ", ".join(topics)
        self._records_max = records_max
        self._by_headers = by_headers
        self._record_traces = record_traces
        self._strange_errors = 0

    def read(self, seconds: float) -> tuple[Dealt, int]:
        """The records that arrived within `seconds`, and the number of messages. The group's callbacks run in here."""
        messages = self.consume(seconds)
        self._refusals.check()
        dealt: Dealt = {}
        topic, number, by_headers = "", -1, self._by_headers
        batch = Batch()
        record_traces = self._record_traces
        for message in messages:
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                at = f"{message.topic()}/{message.partition()}" if message.topic() else "the group"
                self._check(error, at)
                continue
            # They come in long runs of one partition.
            if message.partition() != number or message.topic() != topic:
                topic, number = message.topic() or "", message.partition() or 0
                batch = dealt.setdefault((topic, number), Batch())
            offset = message.offset() or 0
            if error is None:
                if record_traces is not None:
                    record_traces.read(message)
                key, value = message.key(), None if by_headers else message.value()
                headers = _headers(message) if by_headers else ()
                batch.records.append(Record(topic, number, offset, message.timestamp()[1], key, value, headers))
                batch.position = offset + 1
                batch.last = message
            else:
                batch.position = offset
        for topic, partition in dealt:
            self._refusals.clear(f"{topic}/{partition}")
        return dealt, len(messages)

    def restart(self) -> None:
        """The group has changed the assignment: requests that were refused before are repeated or dropped."""
        self._refusals.forget()

    def consume(self, seconds: float) -> list[Message]:
        """Messages in their order of arrival, errors included."""
        try:
            messages = self._consumer.consume(self._records_max, seconds)
        except KafkaException as exception:
            self._check(exception.args[0], "the group")
            return []
        except SystemError as error:
            # The client reports a time-out after a pause by an error that is no exception. More than that is no pause.
            self._strange_errors += 1
            if self._strange_errors > STRANGE_ERRORS_MAX:
                raise WorkerFailed(f"the consumer is dead: {error}") from error
            log.warning("consumer_error", code="SystemError", error=str(error))
            return []
        self._strange_errors = 0
        return messages

    def _check(self, error: KafkaError, what: str) -> None:
        """Errors by kind: an error from which librdkafka recovers is logged; any other ends the slot."""
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            if "truncation" in error.str():
                raise InputGone(
                    f"{what}: the log was cut off after its records were folded (an unclean leader election, or a disk that lost"
                    f" its tail): {error.str()}. Find out why. To continue from the broker's end offset:"
                    " python -m services.processor begin-topic TOPIC --partition PARTITION --offset OFFSET"
                )
            raise InputGone(
                f"records of {self._topics} that were not folded yet are gone from Kafka (retention): {error.str()}."
                " Restore them or reset the application by hand; going on would lose them silently."
            )
        if error.code() == KafkaError.FENCED_INSTANCE_ID or "fenced" in error.str().lower():
            raise SlotFenced(f"another process has this slot: {error.str()}")
        if error.code() in REFUSED:
            self._refusals.note(what, error)
            return
        if error.fatal() or error.code() == KafkaError._FATAL:
            raise WorkerFailed(f"the consumer is dead: {error.name()}: {error.str()}")
        log.warning("consumer_error", code=error.name(), error=error.str())


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    found: list[tuple[str, bytes | None]] = []
    for header in message.headers() or ():
        name, value = header[0], header[1]
        found.append((name, value.encode() if isinstance(value, str) else value))
    return tuple(found)
