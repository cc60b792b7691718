"""The ends of inputs on three brokers: one that hangs stops the clocks of its own partitions alone."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from deploy.topics import create_topics
from services.processor.runtime.kafka import end_offsets
from services.processor.runtime.kafka.end_offsets import End, Ends
from shared.topics import BEACONS
from tests.integration.cluster import Cluster, ReplicatedSettings
from tests.integration.slots import wait_until

pytestmark = pytest.mark.integration

At = tuple[str, int]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    # A broker that hangs is not taken for dead while the test runs: its partitions have no other leader.
    with Cluster(tmp_path, {"broker.session.timeout.ms": "600000"}) as running:
        yield running


def test_a_broker_that_hangs_stops_the_clocks_of_its_own_partitions_alone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For as long as the test runs, the broker gives no answer, not even that it gives none.
    monkeypatch.setattr(end_offsets, "ANSWER_SECONDS_MAX", 600.0)
    settings = ReplicatedSettings(kafka_bootstrap=cluster.bootstrap)
    create_topics(settings, [BEACONS])
    led = leaders(cluster)
    watched = [at for partitions in led.values() for at in partitions]
    ends = Ends(settings)
    ends.start()
    ends.watch(watched)
    try:
        wait_until(lambda: len(newest(ends, watched)) == len(watched), "all ends are known")
        controller = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=20).controller_id
        hanging = next(node for node in led if node != controller and led[node])
        paused_at = time.monotonic()
        cluster.brokers[hanging].child.signal(signal.SIGSTOP)
        # What it was asked before it hung is answered, or not: what it is asked later is not.
        others = [at for node, partitions in led.items() if node != hanging for at in partitions]
        for _ in range(3):
            expect_newer(ends, others, time.monotonic())
        assert all(end.asked_at <= paused_at for end in newest(ends, led[hanging]).values())
        cluster.brokers[hanging].child.signal(signal.SIGCONT)
        expect_newer(ends, watched, time.monotonic())
    finally:
        ends._stop.set()


def leaders(cluster: Cluster) -> dict[int, list[At]]:
    """The partitions of the input that each broker leads."""
    found: dict[int, list[At]] = {node: [] for node in cluster.brokers}
    topic = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(BEACONS.name, timeout=20)
    for number, partition in topic.topics[BEACONS.name].partitions.items():
        found[partition.leader].append((BEACONS.name, number))
    return found


def expect_newer(ends: Ends, partitions: list[At], since: float) -> None:
    """Waits until the ends of these are confirmed that were asked for after `since` (monotonic seconds)."""
    wait_until(lambda: all(end.asked_at > since for end in newest(ends, partitions).values()), "ends are confirmed")


def newest(ends: Ends, partitions: list[At]) -> dict[At, End]:
    return {(topic, number): end for topic, number in partitions for end in ends.of([topic], number).values()}
