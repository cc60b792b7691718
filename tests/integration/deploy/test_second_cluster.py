"""Finished views on another cluster: MirrorMaker carries each exactly once, through kill -9 and what a processor has aborted."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from bench.processor.check import read_committed
from deploy.local.broker import Broker
from deploy.local.paths import KAFKA_LOG4J, MIRRORMAKER_JARS, MIRRORMAKER_PROPERTIES
from deploy.local.ports import free_port
from deploy.local.process import Child
from deploy.topics import create_topics
from shared import topics
from tests.integration.finalizer.finalizing import Topic, a_view
from tests.integration.parts.brokers import another_cluster
from tests.integration.parts.installed import kafka

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SECONDS_MAX = 240.0


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[topics.Topic]:
    return (topics.VIEWS,)


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Broker]:
    with another_cluster(tmp_path / "second") as running:
        yield running


def mirrormaker(first: Broker, second: Broker, folder: Path, name: str) -> Child:
    """A worker, with the file that is shipped."""
    environ = {
        **os.environ,
        "FIRST_BOOTSTRAP": first.bootstrap,
        "SECOND_BOOTSTRAP": second.bootstrap,
        "TOPICS": topics.VIEWS.name,
        "REPLICATION_FACTOR": "1",
        "REST_PORT": str(free_port()),
    }
    argv = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    argv += [f"-Dlog4j2.configurationFile={KAFKA_LOG4J.as_uri()}", "-cp", f"{MIRRORMAKER_JARS}/*"]
    argv += ["org.apache.kafka.connect.mirror.MirrorMaker", str(MIRRORMAKER_PROPERTIES)]
    return Child(name, argv, log_file=folder / f"{name}.log", env=environ)


def test_every_view_is_there_once_through_a_kill(own_broker: Broker, second: Broker, tmp_path: Path) -> None:
    create_topics(kafka(second.bootstrap), [topics.VIEWS])
    topic = Topic(own_broker.bootstrap, "processor")
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        topic.send([a_view(f"view-{sent + number}") for number in range(count)])
        topic.send([a_view(f"never-{sent}")], commit=False)
        sent += count

    def there() -> int:
        return len(read_committed(second.bootstrap, topics.VIEWS.name))

    send(300)
    worker = mirrormaker(own_broker, second, tmp_path, "mirrormaker-1")
    successor = mirrormaker(own_broker, second, tmp_path, "mirrormaker-2")
    try:
        worker.start()
        worker.wait_until(lambda: there() > 0, SECONDS_MAX, "the first views are there")
        # In the middle of its work: more has come than it can have carried.
        send(3_000)
        worker.kill()
        send(300)
        successor.start()
        successor.wait_until(lambda: there() >= sent, SECONDS_MAX, "everything is there")
        send(1)
        successor.wait_until(lambda: there() >= sent, SECONDS_MAX, "it goes on")
    finally:
        worker.stop(30)
        successor.stop(30)
    here = sorted(read_committed(own_broker.bootstrap, topics.VIEWS.name))
    assert sorted(read_committed(second.bootstrap, topics.VIEWS.name)) == here
    assert len(here) == sent
