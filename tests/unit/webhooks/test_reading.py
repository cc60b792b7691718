"""The reader of webhooks with a consumer that is stood in for: what is bounded, kept, dropped, and what ends it."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from services.webhooks import reading
from services.webhooks.message import Message
from services.webhooks.reading import Reading
from services.webhooks.settings import WebhooksSettings
from tests.unit.webhooks.anomalies import revision

TOPIC = "api_anomalies"


@dataclass
class Record:
    """One message as the client gives it, or an error."""

    place: int = 0
    content: bytes = b""
    failed: KafkaError | None = None

    def error(self) -> KafkaError | None:
        return self.failed

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.place

    def key(self) -> bytes:
        return b"key"

    def value(self) -> bytes:
        return self.content


@dataclass
class Client:
    """A consumer and a producer; `reads` is what each `consume` gives, and `None` stands for a rebalance that takes all."""

    reads: list[list[Record] | None]
    stop: threading.Event
    #: Stopped once all is read and this holds.
    until: Callable[["Client"], bool] = lambda _: True
    stored: list[int] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    committed: int = 0
    produced: list[dict[str, bytes]] = field(default_factory=list)
    refuses: bool = False
    config: dict[str, Any] = field(default_factory=dict)
    _revoked: Any = None

    def __call__(self, config: dict[str, Any]) -> "Client":
        self.config |= config
        return self

    def subscribe(self, _topics: list[str], *, on_assign: Any, on_revoke: Any) -> None:
        on_assign(self, self.assignment())
        self._revoked = on_revoke

    def consume(self, _most: int, _seconds: float) -> list[Record]:
        if not self.reads:
            if self.until(self):
                self.stop.set()
            return []
        read = self.reads.pop(0)
        if read is None:
            self._revoked(self, self.assignment())
            return []
        return read

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, 0)]

    def pause(self, _partitions: list[TopicPartition]) -> None:
        self.paused.append("paused")

    def resume(self, _partitions: list[TopicPartition]) -> None:
        self.paused.append("resumed")

    def store_offsets(self, *, offsets: list[TopicPartition]) -> None:
        if self.refuses:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.stored += [one.offset for one in offsets]

    def commit(self, *, asynchronous: bool) -> None:
        assert not asynchronous
        self.committed += 1

    def produce(self, _topic: str, _value: bytes, _key: bytes, *, headers: Any, on_delivery: Any) -> None:
        self.produced.append(dict(headers))
        on_delivery(None, None)

    def flush(self, _seconds: float) -> int:
        return 0

    def close(self) -> None:
        pass


@dataclass
class Deliveries:
    """What is delivered; the receiver answers once it may."""

    outcome: str | None = None
    may: asyncio.Event = field(default_factory=asyncio.Event)
    done: list[str] = field(default_factory=list)

    async def deliver(self, message: Message) -> str | None:
        await self.may.wait()
        # An answer takes a while: the reader's own loop goes on meanwhile.
        for _ in range(100):
            await asyncio.sleep(0)
        self.done.append(message.id)
        return self.outcome


def reader(monkeypatch: pytest.MonkeyPatch, client: Client, deliveries: Deliveries, **settings: Any) -> Reading:
    monkeypatch.setattr(reading, "Consumer", client)
    monkeypatch.setattr(reading, "Producer", client)
    given = {"url": "http://h", "secret": "a secret of sixteen", "drain_seconds_max": 30.0} | settings
    return Reading(WebhooksSettings(**given), deliveries)  # type: ignore[arg-type]


def test_the_group_gives_the_partitions_of_a_killed_process_to_another_when_its_session_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client([], threading.Event())

    reader(monkeypatch, client, Deliveries(), session_ms=6_000)

    assert (client.config["session.timeout.ms"], client.config["heartbeat.interval.ms"]) == (6_000, 1_200)


async def test_reading_waits_while_much_is_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, deliveries = threading.Event(), Deliveries()
    records = [Record(place, revision(1, host=f"h{place}")) for place in range(4)]
    client = Client([records, []], stop)
    under_test = reader(monkeypatch, client, deliveries, pending_max=4)
    running = asyncio.create_task(under_test.run(stop))
    await asyncio.to_thread(stop.wait, 60)
    assert client.paused == ["paused"]
    assert client.stored == []
    # What is in hand is delivered before it ends.
    deliveries.may.set()
    await asyncio.wait_for(running, 60)
    assert client.stored == [1, 2, 3, 4]
    assert under_test.is_assigned


async def test_reading_goes_on_once_half_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, deliveries = threading.Event(), Deliveries()
    deliveries.may.set()
    records = [Record(0, revision(1)), Record(1, revision(1, host="b"))]
    client = Client([records], stop, until=lambda one: "resumed" in one.paused)
    await asyncio.wait_for(reader(monkeypatch, client, deliveries, pending_max=1).run(stop), 60)
    assert client.paused == ["paused", "resumed"]


async def test_what_is_not_taken_or_no_anomaly_is_dead_lettered_and_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, deliveries = threading.Event(), Deliveries(outcome="answered 500")
    deliveries.may.set()
    client = Client([[Record(0, b"{"), Record(1, revision(2)), Record(2, revision(1))]], stop)
    await asyncio.wait_for(reader(monkeypatch, client, deliveries).run(stop), 60)
    assert [one["origin"] for one in client.produced] == [b"api_anomalies/0/0", b"api_anomalies/0/2"]
    assert client.produced[1]["reason"] == b"answered 500"
    assert client.stored == [1, 2, 3]


async def test_a_partition_that_others_get_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, deliveries = threading.Event(), Deliveries()
    client = Client([[Record(0, revision(1)), Record(1, revision(3, state="closed"))], None, []], stop)
    running = asyncio.create_task(reader(monkeypatch, client, deliveries).run(stop))
    await asyncio.to_thread(stop.wait, 60)
    # The receiver answers by now, and it is too late: the owner of the partition sends it.
    deliveries.may.set()
    await asyncio.wait_for(running, 60)
    assert (deliveries.done, client.stored, client.committed) == ([], [], 1)


async def test_a_position_that_is_another_s_by_now_is_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, deliveries = threading.Event(), Deliveries()
    deliveries.may.set()
    client = Client([[Record(0, revision(1))]], stop, refuses=True)
    await asyncio.wait_for(reader(monkeypatch, client, deliveries).run(stop), 60)
    assert len(deliveries.done) == 1


async def test_kafka_that_is_away_is_waited_for_and_one_that_refuses_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, deliveries = threading.Event(), Deliveries()
    away = Record(failed=KafkaError(KafkaError._ALL_BROKERS_DOWN))
    await asyncio.wait_for(reader(monkeypatch, Client([[away]], stop), deliveries).run(stop), 60)
    refused = Record(failed=KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaException):
        await reader(monkeypatch, Client([[refused]], threading.Event()), deliveries).run(threading.Event())
