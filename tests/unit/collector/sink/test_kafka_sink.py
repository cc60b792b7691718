"""The sink on Kafka when Kafka is not there: no broker is needed to find out what it does then."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from services.collector.sink import kafka_sink
from services.collector.sink.kafka_sink import KafkaSink, producer_config
from services.collector.sink.sink import Unstored
from shared.settings import Settings
from tests.contracts.sink_contract import beacon_record

#: Nothing listens on this port: it is reserved.
NOWHERE = Settings(kafka_bootstrap="127.0.0.1:1")

OnDelivery = Callable[[KafkaError | None, Message | None], None]


def make(
    *,
    deaths: list[str] | None = None,
    ack_seconds_max: float = 30.0,
    queue_records_max: int = 1_000,
    producer_type: Any = None,
    **config: Any,
) -> KafkaSink:
    limits = {"queue_records_max": queue_records_max, "queue_kbytes_max": 1_024}
    more = {} if producer_type is None else {"producer_type": producer_type}
    return KafkaSink(
        producer_config(NOWHERE, "test", linger_ms=0, **limits)
        | {"log_level": 0, "log.connection.close": False}
        | config,
        ack_seconds_max=ack_seconds_max,
        on_death=(deaths if deaths is not None else []).append,
        **limits,
        **more,
    )


async def reason_of(sink: KafkaSink, records: int) -> str:
    with pytest.raises(Unstored) as unstored:
        await sink.store([beacon_record(number) for number in range(records)])
    return unstored.value.reason


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_request_that_gets_no_ack_in_time_is_unknown_and_stays_under_way() -> None:
    sink = make(ack_seconds_max=0.05)
    assert await reason_of(sink, 3) == "deadline"
    assert sink.records_waiting() == 3
    assert sink.health().ok
    assert await sink.close(0.05) == 3


async def test_a_record_that_kafka_gave_up_is_reported_as_such() -> None:
    sink = make(ack_seconds_max=60, **{"delivery.timeout.ms": 100})
    assert await reason_of(sink, 2) == "delivery_failed"
    assert sink.records_waiting() == 0
    assert await sink.close(30) == 0


async def test_a_nearly_full_queue_refuses_whole_requests() -> None:
    sink = make(ack_seconds_max=0.05, queue_records_max=10)
    assert await reason_of(sink, 7) == "deadline"
    assert await reason_of(sink, 2) == "queue_full"
    assert sink.records_waiting() == 7
    assert await reason_of(sink, 1) == "deadline"
    assert sink.records_waiting() == 8
    assert await sink.close(0) == 8


async def test_a_queue_that_is_full_half_way_fails_the_whole_request() -> None:
    sink = make(ack_seconds_max=60, **{"queue.buffering.max.messages": 4, "delivery.timeout.ms": 200})
    assert await reason_of(sink, 10) == "queue_full"
    # The four that went in are still under way, and counted until they are reported on.
    assert sink.records_waiting() == 4
    await until(lambda: sink.records_waiting() == 0)
    assert await sink.close(30) == 0


class FakeProducer:
    """A producer whose every report comes from the test."""

    def __init__(self, _config: dict[str, Any], **_: Any) -> None:
        self.reports: deque[tuple[OnDelivery, KafkaError | None]] = deque()
        self.taken: list[bytes] = []
        self.handlers: list[OnDelivery] = []
        self.refusing: Exception | None = None
        self.refusing_from = 0
        self.report_at_once = False
        self.broken = False

    def produce(self, _topic: str, value: bytes, *_: Any, on_delivery: OnDelivery, **__: Any) -> None:
        if self.refusing is not None and len(self.taken) >= self.refusing_from:
            raise self.refusing
        self.taken.append(value)
        self.handlers.append(on_delivery)
        if self.report_at_once:
            on_delivery(None, None)

    def poll(self, _seconds: float) -> int:
        if self.broken:
            raise RuntimeError("poll broke")
        time.sleep(0.001)
        count = len(self.reports)
        for _ in range(count):
            on_delivery, error = self.reports.popleft()
            on_delivery(error, None)
        return count

    def __len__(self) -> int:
        return 0


def make_fake(deaths: list[str]) -> tuple[KafkaSink, FakeProducer]:
    fake = FakeProducer({})
    return make(producer_type=lambda *_, **__: fake, deaths=deaths), fake


async def test_a_request_is_stored_when_its_last_record_is_and_not_before() -> None:
    sink, fake = make_fake([])
    storing = asyncio.create_task(sink.store([beacon_record(number) for number in range(3)]))
    await until(lambda: len(fake.handlers) == 3)
    other = asyncio.create_task(sink.store([beacon_record(3)]))
    await until(lambda: len(fake.handlers) == 4)

    fake.reports.extend((fake.handlers[number], None) for number in (0, 1, 3))
    await other
    assert not storing.done()
    assert sink.records_waiting() == 3
    fake.reports.append((fake.handlers[2], None))
    await storing
    assert sink.records_waiting() == 0
    await sink.close(1)


async def test_one_record_that_was_not_stored_fails_its_request_and_no_other() -> None:
    sink, fake = make_fake([])
    failing = asyncio.create_task(sink.store([beacon_record(number) for number in range(3)]))
    good = asyncio.create_task(sink.store([beacon_record(3)]))
    await until(lambda: len(fake.handlers) == 4)

    refused = KafkaError(KafkaError.NOT_ENOUGH_REPLICAS)
    fake.reports.append((fake.handlers[0], refused))
    fake.reports.extend((handler, None) for handler in fake.handlers[1:])
    with pytest.raises(Unstored, match="delivery_failed"):
        await failing
    await good
    await sink.close(1)


async def test_a_fatal_error_is_the_end() -> None:
    deaths: list[str] = []
    sink, fake = make_fake(deaths)
    fake.refusing = KafkaException(KafkaError(KafkaError._FATAL, "fenced", fatal=True))

    assert await reason_of(sink, 1) == "delivery_failed"
    assert deaths == ["fatal producer error: fenced"]
    assert not sink.health().ok
    assert await reason_of(sink, 1) == "dead"
    await sink.close(1)


async def test_a_refused_record_that_is_not_fatal_fails_its_request_alone() -> None:
    deaths: list[str] = []
    sink, fake = make_fake(deaths)
    fake.report_at_once = True
    fake.refusing, fake.refusing_from = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)), 2

    assert await reason_of(sink, 5) == "delivery_failed"
    # Both that were taken had been reported on before the third was refused.
    await until(lambda: sink.records_waiting() == 0)
    fake.refusing = None
    await sink.store([beacon_record(9)])
    assert sink.records_waiting() == 0
    assert (deaths, sink.health().ok) == ([], True)
    await sink.close(1)


async def test_a_dead_poll_thread_is_the_end_and_says_why() -> None:
    deaths: list[str] = []
    sink, fake = make_fake(deaths)
    fake.broken = True
    await until(lambda: not sink.health().ok)
    assert "poll broke" in deaths[0]
    assert "poll broke" in sink.health().why
    assert await reason_of(sink, 1) == "dead"


async def test_a_poll_thread_that_hangs_is_no_longer_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, _ = make_fake([])
    assert sink.health().ok
    monkeypatch.setattr(kafka_sink, "POLL_AGE_SECONDS_MAX", -1.0)
    assert "no delivery reports" in sink.health().why
    await sink.close(1)
