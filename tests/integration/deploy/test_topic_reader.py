"""The demo's reader of topics: it counts every committed record, knows when it has read all, and keeps no error to itself."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.demo.comparing.compare import ViewRecords
from deploy.demo.comparing.topic_reader import TopicReader
from shared import codec, topics
from shared.settings import Settings
from tests.integration.finalizer.finalizing import a_view
from tests.integration.parts.brokers import OF_VIEWS, broker_with_topics
from tests.integration.parts.installed import kafka

pytestmark = pytest.mark.integration

_SECONDS_MAX = 120.0


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Settings]:
    """A broker of its own: the reader reads everything that was ever written."""
    with broker_with_topics(tmp_path / "broker", OF_VIEWS) as broker:
        yield kafka(broker.bootstrap)


@pytest.fixture
def reader(fresh: Settings) -> Iterator[TopicReader]:
    made = TopicReader(fresh)
    yield made
    made.close()


@pytest.fixture
def producer(fresh: Settings) -> Producer:
    made = Producer({"bootstrap.servers": fresh.kafka_bootstrap, "transactional.id": "test-topic-reader"})
    made.init_transactions(_SECONDS_MAX)
    return made


def test_each_committed_record_of_views_is_counted_and_a_doubled_one_is_reported(
    reader: TopicReader, producer: Producer
) -> None:
    _write_views(producer, ("a", 1), ("b", 1), ("b", 2), ("a", 1))
    producer.commit_transaction()
    _write_views(producer, ("c", 1))
    producer.abort_transaction()
    producer.begin_transaction()
    producer.produce(topics.REJECTED.name, b"not understood", partition=0)
    producer.commit_transaction()

    # Behind the last record of each partition stand the markers of the transactions: they are read, too.
    assert reader.read(_SECONDS_MAX)
    assert reader.seen.views == ViewRecords(records=4, distinct=3, again=1)
    assert reader.seen.rejected == 1

    _write_views(producer, ("b", 2))
    producer.commit_transaction()
    assert reader.read(_SECONDS_MAX)
    assert reader.seen.views == ViewRecords(records=5, distinct=3, again=1)


def test_not_all_is_read_while_a_transaction_is_open(reader: TopicReader, producer: Producer) -> None:
    _write_views(producer, ("a", 1))

    assert not reader.read(1.0)
    assert reader.seen.views == ViewRecords()

    producer.commit_transaction()
    assert reader.read(_SECONDS_MAX)
    assert reader.seen.views == ViewRecords(records=1, distinct=1)


def test_records_that_are_gone_before_they_were_read_are_an_error(fresh: Settings, producer: Producer) -> None:
    _write_views(producer, ("a", 1))
    producer.commit_transaction()
    admin = AdminClient({"bootstrap.servers": fresh.kafka_bootstrap})
    gone = TopicPartition(topics.VIEWS.name, 0, 1)
    admin.delete_records([gone])[gone].result(_SECONDS_MAX)

    with closing(TopicReader(fresh)) as reader, pytest.raises(KafkaException, match="_AUTO_OFFSET_RESET"):
        reader.read(_SECONDS_MAX)


def _write_views(producer: Producer, *revisions: tuple[str, int]) -> None:
    """Begins a transaction and writes these (view, revision) into partition 0."""
    producer.begin_transaction()
    for view_id, revision in revisions:
        view = a_view(view_id, revision=revision)
        producer.produce(topics.VIEWS.name, codec.VIEW.encode(view), key=view_id.encode(), partition=0)
    assert producer.flush(_SECONDS_MAX) == 0
