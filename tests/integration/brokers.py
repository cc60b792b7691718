"""Brokers that have their topics from the first moment.

Each partition costs a broker CPU time when it starts and while it runs, so a test says which topics it needs.
"""

import atexit
import functools
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from deploy.local.broker import Broker
from deploy.topics import create_topics
from services.processor.catalogue import APPLICATIONS
from shared import topics
from shared.settings import Settings
from shared.topics import Topic

#: What a collector verifies at its start.
OF_COLLECTOR: Final = (
    *(topics.BEACONS, topics.SPANS, topics.API_CALLS, topics.RECORDINGS),
    *(topics.RECEIVED, topics.REJECTED),
)


def topics_of(application: str) -> tuple[Topic, ...]:
    """What a slot of the application verifies at its start."""
    return (*APPLICATIONS[application]({}).topics, topics.PRESENCE)


OF_VIEWS: Final = topics_of("video_views")


@contextmanager
def broker_with_topics(
    folder: Path, wanted: Iterable[Topic] = topics.ALL, *, properties: Mapping[str, str] | None = None
) -> Iterator[Broker]:
    """A running broker with these topics, killed at the end: nobody reads its data again.

    Its folder is a copy of one that was formatted once in a run. All such brokers are one cluster to their clients, so a test of
    two clusters makes its second by itself.
    """
    shutil.copytree(_formatted(), folder / "data")
    broker = Broker(folder, properties=properties)
    try:
        broker.start()
        if declared := list(wanted):
            create_topics(Settings(kafka_bootstrap=broker.bootstrap), declared)
        yield broker
    finally:
        broker.kill()


def at_work(broker: Broker) -> Broker:
    """The broker, which a test may have left stopped or killed, at work again."""
    if broker.is_running:
        broker.child.signal(signal.SIGCONT)
    else:
        broker.start()
    return broker


@functools.cache
def _formatted() -> Path:
    """The data of a broker that was never started."""
    folder = Path(tempfile.mkdtemp(prefix="playhead-broker-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Broker(folder).format()
    return folder / "data"
