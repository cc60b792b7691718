"""From where the client reads a partition, on a real broker that answers late."""

import signal
import threading
from collections.abc import Iterable, Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.local.broker import Broker
from services.processor.runtime.kafka.positions import Positions
from shared.topics import Topic
from tests.integration.parts.slots import wait_until

pytestmark = pytest.mark.integration

RECORDS = 100
#: The client asks again where a partition begins after half a second.
LATE_SECONDS = 0.3


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return ()


@pytest.fixture
def topic(broker: Broker) -> Iterator[str]:
    """A topic of two partitions, the first with records."""
    name = f"positions-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(name, str(number).encode(), partition=0)
    assert producer.flush(30) == 0
    yield name
    admin.delete_topics([name])[name].result()


def test_a_partition_is_read_from_its_position_though_the_broker_answers_late(broker: Broker, topic: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
    )
    positions = Positions(consumer, [topic])
    try:
        # Afterwards the client knows the leader.
        positions.rewind(topic, 1, None)
        positions.carry_out_rewinds()
        assert consumer.consume(1, 30)
        broker.child.signal(signal.SIGSTOP)
        threading.Timer(LATE_SECONDS, lambda: broker.child.signal(signal.SIGCONT)).start()
        positions.start()
        positions.rewind(topic, 0, RECORDS // 2, leader_epoch=0)
        positions.carry_out_rewinds()
        read: list[int | None] = []

        def has_read_all() -> bool:
            # The end of the other partition may come once more, among them.
            messages = consumer.consume(RECORDS // 2, 1.0)
            read.extend(message.offset() for message in messages if not message.error())
            return len(read) >= RECORDS // 2

        wait_until(has_read_all, "the rest is read")
        assert read == list(range(RECORDS // 2, RECORDS))
    finally:
        broker.child.signal(signal.SIGCONT)
        consumer.close()
