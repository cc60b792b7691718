"""Kafka's errors in a commit, by kind: what is repeated, aborted, left for a takeover to find out, and what ends the slot."""

import time
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.record import Output
from services.processor.engine.state.meta import Meta
from services.processor.runtime.kafka.refusals import KafkaRefused
from services.processor.runtime.partition.transaction import Aborted, Committer, Durable, Fenced, GroupChanged, Unclear
from shared.topics import ALL, BEACONS, VIEWS
from tests.unit.processor.engine.counting import APPLICATION

CHECKPOINT = Checkpoint({b"\x01a": b"row"}, [Output(VIEWS.name, b"a", b"1")], Meta({BEACONS.name: 7}, 0, 1), 1, {})


def error(code: int, **kind: bool) -> KafkaException:
    return KafkaException(KafkaError(code, "as a broker would say", **kind))


ABORTABLE = {"txn_requires_abort": True}
RETRIABLE = {"retriable": True}
FATAL = {"fatal": True}


class Message:
    """A delivered record."""

    def offset(self) -> int:
        return 41

    def timestamp(self) -> tuple[int, int]:
        return (2, 1_000)


class Client:
    """Stands in for the Kafka client: raises what the test says from each call, and refuses records as a broker would."""

    def __init__(self, **raised: list[Exception]) -> None:
        self.raised = raised
        self.calls: list[str] = []
        self.undelivered: KafkaError | None = None
        self.unacknowledged = 0
        self._reports: list[tuple[Any, KafkaError | None]] = []

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.raised.get(name):
            raise self.raised[name].pop(0)

    def begin_transaction(self) -> None:
        self._called("begin_transaction")

    def produce(self, topic: str, *_record: Any, on_delivery: Any = None, **_: Any) -> None:
        self._called("produce")
        self._reports.append((on_delivery, self.undelivered if topic == VIEWS.name else None))

    def poll(self, _seconds: float) -> None:
        self._called("poll")

    def flush(self, _seconds: float) -> int:
        self._called("flush")
        reports, self._reports = self._reports, []
        for on_delivery, failed in reports:
            if on_delivery is not None:
                on_delivery(failed, Message())
        return self.unacknowledged

    def commit_transaction(self, _seconds: float) -> None:
        self._called("commit_transaction")
        if self.undelivered is not None:
            raise error(KafkaError._INCONSISTENT, **ABORTABLE)

    def abort_transaction(self, _seconds: float) -> None:
        self._called("abort_transaction")

    def send_offsets_to_transaction(self, *_: Any) -> None:
        self._called("send_offsets_to_transaction")


def commit(client: Client, seconds: float = 60.0) -> tuple[int, int]:
    """Offset and append time of the commit."""
    return stands_at(committer(client).commit(CHECKPOINT, None, time.monotonic() + seconds))


def stands_at(durable: Durable) -> tuple[int, int]:
    return durable.changelog_offset, durable.append_ms


def committer(client: Client) -> Committer:
    return Committer(client, APPLICATION, 0, dict.fromkeys((topic.name for topic in ALL), 8))  # type: ignore[arg-type]


def test_a_commit_says_where_it_stands() -> None:
    assert commit(Client()) == (42, 1_000)


_CALLS = ("begin_transaction", "produce", "flush", "send_offsets_to_transaction", "commit_transaction")
#: Before these all records are acknowledged.
_SETTLED = _CALLS[3:]


@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize(
    ("code", "kind", "outcome"),
    [
        (KafkaError.ILLEGAL_GENERATION, ABORTABLE, GroupChanged),
        (KafkaError.UNKNOWN_MEMBER_ID, ABORTABLE, GroupChanged),
        # Not of the group: the client has purged records, and the broker may have some of them.
        (KafkaError.NOT_COORDINATOR, ABORTABLE, Unclear),
        (KafkaError._TIMED_OUT, {}, Unclear),
        (KafkaError.UNKNOWN_PRODUCER_ID, FATAL, Unclear),
        (KafkaError._FENCED, FATAL, Fenced),
        (KafkaError._FENCED, ABORTABLE, Fenced),
        (KafkaError.INVALID_PRODUCER_EPOCH, ABORTABLE, Fenced),
        (KafkaError.MSG_SIZE_TOO_LARGE, {}, KafkaRefused),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ABORTABLE, KafkaRefused),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FATAL, KafkaRefused),
    ],
)
def test_an_error_is_dealt_with_by_its_kind(
    call: str, code: int, kind: dict[str, bool], outcome: type[Exception]
) -> None:
    client = Client(**{call: [error(code, **kind)]})
    if outcome is GroupChanged and call not in _SETTLED:
        outcome = Unclear
    with pytest.raises(outcome) as raised:
        commit(client)
    # A fence is a kind of unclear outcome, and neither is aborted: that would be the business of who has the partition.
    assert type(raised.value) is outcome
    assert ("abort_transaction" in client.calls) == (outcome is GroupChanged)


def test_offsets_are_sent_when_all_records_are_acknowledged() -> None:
    client = Client()
    commit(client)
    assert client.calls[-3:] == ["flush", "send_offsets_to_transaction", "commit_transaction"]


def test_offsets_are_sent_again_only_where_they_have_changed_since_a_commit_that_succeeded() -> None:
    client = Client(commit_transaction=[error(KafkaError.UNKNOWN, fatal=True)])
    one = committer(client)

    def is_sent(offset: int) -> bool:
        client.calls.clear()
        meta = Meta({BEACONS.name: offset}, 0, 1)
        one.commit(Checkpoint({b"\x01a": b"row"}, [], meta, 1, {}), None, time.monotonic() + 60)
        return "send_offsets_to_transaction" in client.calls

    with pytest.raises(Unclear):
        is_sent(7)
    assert [is_sent(offset) for offset in (7, 7, 8, 8, 7)] == [True, False, True, False, True]


def test_a_producer_that_may_have_purged_a_record_is_not_used_again() -> None:
    """It would give the record's sequence number to the next one, which a broker that has the first drops as its copy."""
    client = Client()
    client.unacknowledged = 1
    with pytest.raises(Unclear, match="not acknowledged in time"):
        commit(client)
    assert client.calls[-1] == "flush", "neither offsets nor an abort"


def test_what_may_be_repeated_is_repeated() -> None:
    client = Client(commit_transaction=[error(KafkaError._TIMED_OUT, **RETRIABLE)] * 3)
    assert commit(client) == (42, 1_000)
    assert client.calls.count("commit_transaction") == 4


def test_what_may_be_repeated_is_unclear_once_the_deadline_has_passed() -> None:
    client = Client(commit_transaction=[error(KafkaError._TIMED_OUT, **RETRIABLE)] * 3)
    with pytest.raises(Unclear):
        commit(client, seconds=0.0)


def test_an_abort_that_fails_leaves_the_outcome_unclear() -> None:
    client = Client(
        commit_transaction=[error(KafkaError.ILLEGAL_GENERATION, **ABORTABLE)],
        abort_transaction=[error(KafkaError._TIMED_OUT, **RETRIABLE)],
    )
    with pytest.raises(Unclear, match="the abort failed"):
        commit(client)


@pytest.mark.parametrize("failure", [SystemError("a fatal error in a callback"), BufferError("the queue is full")])
def test_what_the_client_cannot_express_is_unclear(failure: Exception) -> None:
    client = Client(begin_transaction=[failure])
    with pytest.raises(Unclear):
        commit(client)


def test_a_full_queue_is_waited_for() -> None:
    client = Client(produce=[BufferError("the queue is full")])
    assert commit(client) == (42, 1_000)
    assert "poll" in client.calls


def test_why_a_record_was_not_delivered_is_asked_for_after_the_first_abort() -> None:
    client = Client()
    client.undelivered = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "as a broker would say")
    one = committer(client)
    with pytest.raises(Aborted):
        one.commit(CHECKPOINT, None, time.monotonic() + 60)
    with pytest.raises(KafkaRefused, match="MSG_SIZE_TOO_LARGE"):
        one.commit(CHECKPOINT, None, time.monotonic() + 60)
    client.undelivered = None
    assert stands_at(one.commit(CHECKPOINT, None, time.monotonic() + 60)) == (42, 1_000)
