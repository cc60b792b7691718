"""The topics of the servers, and their records."""

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from shared.partitioning import view_key

PARTITIONS = 8
_SECONDS_MAX = 30.0


def create(bootstrap: str, names: set[str]) -> None:
    """Makes those that are not there."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    there = admin.list_topics(timeout=_SECONDS_MAX).topics
    wanted = [NewTopic(name, PARTITIONS, 1) for name in sorted(names) if name not in there]
    if wanted:
        for made in admin.create_topics(wanted).values():
            made.result(_SECONDS_MAX)


def records_in(bootstrap: str, topic: str) -> int:
    """How many records a topic holds."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    partitions = consumer.list_topics(topic, timeout=_SECONDS_MAX).topics[topic].partitions
    count = 0
    for number in partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_SECONDS_MAX)
        count += high - low
    consumer.close()
    return count


def keys_in(bootstrap: str, topic: str, customer_id: str) -> int:
    """How many records of a customer's views a topic holds."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True})
    partitions = consumer.list_topics(topic, timeout=_SECONDS_MAX).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    count, ended = 0, 0
    while ended < len(partitions):
        for message in consumer.consume(1_000, timeout=1.0):
            if message.error() is not None:
                ended += 1
            else:
                count += (message.key() or b"").startswith(view_key(customer_id, ""))
    consumer.close()
    return count
