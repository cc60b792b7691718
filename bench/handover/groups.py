"""Two instances of each system on one topic, with and without a standby, and the state of their groups."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient

from bench.peers.setup import kafka_streams
from deploy.local.process import Child

COMMIT_MS: Final = 100
SESSION_MS: Final = 6_000
_SECONDS_MAX: Final = 30.0
_JVM: Final = ("-Xms512m", "-Xmx1g", "-XX:+UseParallelGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


@dataclass(frozen=True)
class Group:
    """The processes of one system. `first` is the one that dies or leaves; `marker` is in the client id of its member."""

    first: Child
    others: Sequence[Child]
    marker: str

    @property
    def all(self) -> list[Child]:
        """Every process."""
        return [self.first, *self.others]


def playhead(name: str, bootstrap: str, folder: Path, *, standbys: int) -> Group:
    """Two slots on two hosts, `a` and `b`; `b` has a replica of slot `a` where there is a standby."""

    def slot(host: str, number: int, replica: int) -> Child:
        home = folder / f"{host}{number}.{replica}"
        home.mkdir(parents=True)
        words = ["reduced", name, bootstrap, str(folder / host), str(COMMIT_MS), str(home / "commits")]
        options = ["--slot", f"{number}/0", "--replica", str(replica), "--standbys", str(standbys)]
        argv = [sys.executable, "-m", "bench.processor.slot", *words, *options]
        return Child(f"{name}-{number}-{replica}", argv, log_file=home / "log")

    others = [slot("b", 1, 0), *([slot("b", 0, 1), slot("a", 1, 1)] if standbys else [])]
    return Group(slot("a", 0, 0), others, "/0/0")


def streams(name: str, bootstrap: str, folder: Path, *, standbys: int) -> Group:
    """Two instances of Kafka Streams."""
    jars, classes = kafka_streams()

    def instance(host: str) -> Child:
        home = folder / host
        home.mkdir(parents=True)
        given = [name, bootstrap, str(home / "state"), str(COMMIT_MS), str(home / "commits"), "0", "1"]
        properties = [f"-Dclient={host}", f"-Dsession.ms={SESSION_MS}", f"-Dstandbys={standbys}"]
        argv = ["java", *_JVM, *properties, "-cp", f"{classes}:{jars}/*", "ReducedViews", *given]
        return Child(f"{name}-{host}", argv, log_file=home / "log")

    return Group(instance("first"), [instance("second")], "first-")


SYSTEMS: Final = {"Playhead": playhead, "Kafka Streams": streams}


def partitions_of(bootstrap: str, group: str, marker: str) -> set[int]:
    """The partitions of topic `beacons` that the member has whose client id holds `marker`."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    description = admin.describe_consumer_groups([group], request_timeout=_SECONDS_MAX)[group].result()
    return {
        at.partition
        for member in description.members
        if marker in member.client_id and member.assignment is not None
        for at in member.assignment.topic_partitions
        if at.topic == "beacons"
    }


def members(bootstrap: str, group: str) -> int:
    """Members with partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    description = admin.describe_consumer_groups([group], request_timeout=_SECONDS_MAX)[group].result()
    return sum(bool(member.assignment and member.assignment.topic_partitions) for member in description.members)
