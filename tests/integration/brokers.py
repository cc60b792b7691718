"""Brokers that have every declared topic from their first moment."""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.local.broker import Broker
from deploy.topics import create_topics
from shared.settings import Settings


@contextmanager
def broker_with_topics(folder: Path) -> Iterator[Broker]:
    """A running broker with every declared topic, killed at the end: nobody reads its data again.

    Its data are a copy of those of another broker, made once in a run: to format a folder and to create the topics costs as much
    CPU time as to start. All such brokers are one cluster to their clients, so a test of two clusters makes its second by itself.
    """
    shutil.copytree(_made(), folder / "data")
    broker = Broker(folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


@functools.cache
def _made() -> Path:
    """The data of a broker that has been stopped after its topics were created."""
    folder = Path(tempfile.mkdtemp(prefix="playhead-broker-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with Broker(folder) as broker:
        create_topics(Settings(kafka_bootstrap=broker.bootstrap))
    return folder / "data"
