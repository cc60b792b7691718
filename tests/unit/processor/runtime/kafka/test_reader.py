"""The slot's consumer and its errors, by kind: what the client mends, what is borne for a time, what ends the slot and says why."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.processor.runtime.kafka.reader import STRANGE_ERRORS_MAX, Reader
from services.processor.runtime.kafka.refusals import InputGone, KafkaRefused, SlotFenced, WorkerFailed
from shared.topics import BEACONS


class Message:
    """A record, or an error where there is one."""

    def __init__(self, offset: int = 0, error: KafkaError | None = None, partition: int = 3) -> None:
        self._offset = offset
        self._error = error
        self._partition = partition

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str | None:
        return BEACONS.name

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def leader_epoch(self) -> int:
        return 4

    def timestamp(self) -> tuple[int, int]:
        return (2, 1_000)

    def key(self) -> bytes:
        return b"acme:a"

    def value(self) -> bytes:
        return b"{}"

    def headers(self) -> list[tuple[str, str | bytes | None]] | None:
        return [("index", b"7"), ("text", "ä"), ("none", None)] if self._offset else None


class Client:
    """Stands in for the Kafka client: gives what the test gave it, one batch after the other, and nothing then."""

    def __init__(self, *batches: list[Message] | Exception) -> None:
        self._batches = list(batches)

    def consume(self, _number: int, _seconds: float) -> list[Message]:
        batch = self._batches.pop(0) if self._batches else []
        if isinstance(batch, Exception):
            raise batch
        return batch


def reader(*batches: list[Message] | Exception, refused_seconds_max: float = 60.0) -> Reader:
    client: Any = Client(*batches)
    return Reader(client, [BEACONS.name], records_max=100, refused_seconds_max=refused_seconds_max)


def failed(code: int, **kind: bool) -> KafkaError:
    return KafkaError(code, "as the client would say", **kind)


#: An error comes with the records, or is raised in their stead.
WAYS: list[Callable[[KafkaError], list[Message] | Exception]] = [
    lambda error: [Message(error=error)],
    KafkaException,
]


def test_records_are_dealt_by_partition_with_where_they_were_read_to() -> None:
    end = failed(KafkaError._PARTITION_EOF)
    batch = [Message(7), Message(9), Message(4, partition=5), Message(12, end), Message(8, end, partition=1)]
    dealt, number = reader(batch).read(0.0)
    assert number == 5
    read = {partition: ([r.offset for r in one.records], one.position) for (_, partition), one in dealt.items()}
    # Offsets have holes, so the end of a partition says more than its last record.
    assert read == {3: ([7, 9], 12), 5: ([4], 5), 1: ([], 8)}


@pytest.mark.parametrize("way", WAYS, ids=["returned", "raised"])
@pytest.mark.parametrize(
    ("error", "outcome", "words"),
    [
        (
            KafkaError(KafkaError._AUTO_OFFSET_RESET, "log truncation detected: end is 34"),
            InputGone,
            "was cut off .* 34",
        ),
        (failed(KafkaError._AUTO_OFFSET_RESET), InputGone, r"gone from Kafka \(retention\)"),
        (failed(KafkaError._FATAL, fatal=True), WorkerFailed, "the consumer is dead: _FATAL"),
        (failed(KafkaError.UNKNOWN_MEMBER_ID, fatal=True), WorkerFailed, "the consumer is dead: UNKNOWN_MEMBER_ID"),
        # As KIP-848 reports it: not fatal by its flag.
        (failed(KafkaError._FATAL), WorkerFailed, "the consumer is dead"),
        (failed(KafkaError.FENCED_INSTANCE_ID, fatal=True), SlotFenced, "another process has this slot"),
    ],
)
def test_what_the_client_cannot_mend_ends_the_slot_and_says_why(
    way: Callable[[KafkaError], list[Message] | Exception], error: KafkaError, outcome: type[Exception], words: str
) -> None:
    with pytest.raises(outcome, match=words) as raised:
        reader(way(error)).read(0.0)
    assert type(raised.value) is outcome


@pytest.mark.parametrize("way", WAYS, ids=["returned", "raised"])
def test_what_the_client_mends_ends_nothing(way: Callable[[KafkaError], list[Message] | Exception]) -> None:
    one = reader(way(failed(KafkaError._TRANSPORT)), way(failed(KafkaError._ALL_BROKERS_DOWN)), [Message(1)])
    assert [one.read(0.0)[0] for _ in range(2)] == [{}, {}]
    assert one.read(0.0)[0]


def test_what_is_refused_is_borne_for_a_time_though_the_client_reports_it_once() -> None:
    refusal = [Message(error=failed(KafkaError.TOPIC_AUTHORIZATION_FAILED))]
    one = reader(refusal)
    for _ in range(3):
        one.read(0.0)
    late = reader(refusal, refused_seconds_max=0.0)
    with pytest.raises(KafkaRefused, match=r"beacons/3.*TOPIC_AUTHORIZATION_FAILED"):
        late.read(0.0)


def test_what_is_granted_is_not_held_against_it() -> None:
    one = reader([Message(error=failed(KafkaError.TOPIC_AUTHORIZATION_FAILED))], [Message(1)])
    one.read(0.0)
    one.read(0.0)
    one._refusals._seconds_max = 0.0
    one.read(0.0)


def test_a_client_that_cannot_say_what_it_has_after_a_pause_is_asked_again_but_not_for_ever() -> None:
    strange = SystemError("returned a result with an exception set")
    one = reader(*[strange] * STRANGE_ERRORS_MAX, [Message(1)], *[strange] * (STRANGE_ERRORS_MAX + 1))
    for _ in range(STRANGE_ERRORS_MAX):
        assert one.read(0.0) == ({}, 0)
    assert one.read(0.0)[1] == 1
    for _ in range(STRANGE_ERRORS_MAX):
        assert one.read(0.0) == ({}, 0)
    with pytest.raises(WorkerFailed, match="the consumer is dead"):
        one.read(0.0)


def test_an_application_that_takes_records_by_their_headers_has_these_in_place_of_values() -> None:
    client: Any = Client([Message(0), Message(1)])
    dealt, _ = Reader(client, [BEACONS.name], records_max=9, refused_seconds_max=1.0, by_headers=True).read(0.0)
    first, second = dealt[BEACONS.name, 3].records
    assert (first.value, first.headers) == (None, ())
    assert (second.value, second.headers) == (None, (("index", b"7"), ("text", "ä".encode()), ("none", None)))


def test_others_are_not_asked_for_headers_which_cost() -> None:
    dealt, _ = reader([Message(1)]).read(0.0)
    (record,) = dealt[BEACONS.name, 3].records
    assert (record.value, record.headers) == (b"{}", ())
