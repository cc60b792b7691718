"""Brokers that have every declared topic from their first moment."""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from deploy.local.broker import START_SECONDS_MAX, Broker
from deploy.local.process import wait_until
from deploy.topics import create_topics
from shared.settings import Settings

_ANSWER_SECONDS_MAX: Final = 10.0


@contextmanager
def broker_with_topics(folder: Path) -> Iterator[Broker]:
    """A running broker with every declared topic, killed at the end: nobody reads its data again.

    Its data are a copy of those of another broker, made once in a run: to format a folder and to create the topics costs as much
    CPU time as to start. All such brokers are one cluster to their clients, so a test of two clusters makes its second by itself.
    """
    shutil.copytree(_made(), folder / "data")
    broker = Broker(folder)
    try:
        broker.start()
        wait_until(lambda: _leads_all(broker), START_SECONDS_MAX, "the broker leads every partition")
        yield broker
    finally:
        broker.kill()


def _leads_all(broker: Broker) -> bool:
    """Whether it answers for each partition: it gives the list of topics a moment before it leads them."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    found = admin.list_topics(timeout=_ANSWER_SECONDS_MAX).topics.values()
    wanted = {
        TopicPartition(topic.topic, number): OffsetSpec.latest() for topic in found for number in topic.partitions
    }
    answers = admin.list_offsets(wanted, request_timeout=_ANSWER_SECONDS_MAX)
    return bool(wanted) and all(answer.exception() is None for answer in answers.values())


@functools.cache
def _made() -> Path:
    """The data of a broker that has been stopped after its topics were created."""
    folder = Path(tempfile.mkdtemp(prefix="playhead-broker-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with Broker(folder) as broker:
        create_topics(Settings(kafka_bootstrap=broker.bootstrap))
    return folder / "data"
