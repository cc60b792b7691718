"""What the finalizer asks the broker: which topics stand still behind an open transaction, and where a new checkpoint begins."""

import json
from collections.abc import Iterable, Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.local.broker import Broker
from deploy.local.process import wait_until
from services.finalizer.streaming import starting
from services.finalizer.streaming.stalls import stalled
from services.finalizer.warehouse import identity
from shared.topics import Topic
from tests.integration.parts.installed import kafka

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return ()


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def topic(admin: AdminClient) -> Iterator[str]:
    name = f"finalizer.{uuid4().hex}"
    admin.create_topics([NewTopic(name, num_partitions=2)])[name].result(30)
    wait_until(lambda: len(getattr(admin.list_topics(timeout=10).topics.get(name), "partitions", ())) == 2, 30, name)
    yield name
    admin.delete_topics([name])


def test_records_behind_an_open_transaction_are_reported_until_it_ends(
    broker: Broker, admin: AdminClient, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(5):
        producer.produce(topic, b"v", partition=number % 2)
    producer.flush(30)

    assert stalled(admin, [topic, "views"])[topic] == 5
    producer.commit_transaction(30)
    wait_until(lambda: stalled(admin, [topic])[topic] == 0, 30, "nothing stands still")
    assert stalled(admin, ["no-such-topic"]) == {"no-such-topic": 0}


def test_a_new_checkpoint_begins_after_what_is_held_and_at_the_first_where_that_is_of_another_topic(
    broker: Broker, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(4):
        producer.produce(topic, b"v", partition=0)
    producer.flush(30)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    try:
        assert starting._starts(consumer, topic, {0: 3}) == {"0": 3, "1": 0}
        # More than the topic ever had: it was recreated.
        assert starting._starts(consumer, topic, {0: 9, 1: 2}) == {"0": 0, "1": 0}
    finally:
        consumer.close()


def test_a_topic_that_is_recreated_has_another_identity(broker: Broker, admin: AdminClient, topic: str) -> None:
    settings = kafka(broker.bootstrap)
    before = identity.topic_ids(settings, [topic])
    assert identity.topic_ids(settings, [topic]) == before
    admin.delete_topics([topic])[topic].result(30)
    wait_until(lambda: topic not in admin.list_topics(timeout=10).topics, 30, "the topic is gone")
    admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result(30)
    wait_until(lambda: topic in admin.list_topics(timeout=10).topics, 30, "the topic is back")

    after = identity.topic_ids(settings, [topic])

    assert after != before
    assert json.dumps(after), "it stands in the checkpoint as JSON"
