"""Three brokers: one that hangs holds up its own partitions alone; one that is killed under load costs no view."""

import time
from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.runtime.kafka import end_offsets
from services.processor.runtime.kafka.end_offsets import End, Ends
from shared.partitioning import partition_of, view_key
from shared.topics import BEACONS, LIVE, PRESENCE
from tests.chaos.faults import DROPPED
from tests.integration.parts.cluster import NODES, Cluster, ReplicatedSettings
from tests.integration.parts.failing import Scene, scene_of
from tests.integration.parts.feed import Feed, observed, uncommitted
from tests.integration.parts.installed import PARTITIONS, PROFILE, variables
from tests.integration.parts.slots import Slot, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

At = tuple[str, int]

#: A slot that gets no CPU for seconds beside three brokers is not dead: members are not what hangs here.
CALM: Final = {"PROCESSOR_SESSION_MS": "6000"}
#: It leads partitions of the input, and coordinates nothing: what hangs with it is what it leads. Each view's commit has a record
#: for its customer's partition of topic live: that of the test's customer has another leader.
HANGING: Final = 3
COORDINATORS: Final = ("__transaction_state", "__consumer_offsets")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Brokers behind proxies."""
    with Cluster(tmp_path_factory.mktemp("cluster"), proxied=True) as running:
        settings = ReplicatedSettings(kafka_bootstrap=running.bootstrap, topics_profile=PROFILE)
        wanted = [
            _new(topic.name, topic.partitions(settings.profile), topic.config(settings.profile), leading)
            for topic in [*application(FinishRules()).topics, PRESENCE]
            for leading in [HANGING - 1 if topic in (LIVE, PRESENCE) else NODES]
        ]
        wanted += [_new(name, 4, {"cleanup.policy": "compact"}, HANGING - 1) for name in COORDINATORS]
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for created in admin.create_topics(wanted).values():
            created.result(60)
        wait_until(lambda: len(leaders(running)) == NODES, "every partition has its leader")
        yield running


def leader_of(number: int, leading: int = NODES) -> int:
    """The broker that leads a partition. That with the highest id leads the first: a member that joins gets the lowest half."""
    return (number + leading - 1) % leading + 1


def _new(name: str, partitions: int, config: dict[str, str], leading: int) -> NewTopic:
    """A topic whose partitions are led by the first `leading` brokers in turn."""
    replicas = [
        sorted(range(1, NODES + 1), key=lambda node: node != leader_of(number, leading)) for number in range(partitions)
    ]
    return NewTopic(name, num_partitions=partitions, replica_assignment=replicas, config=config)


@pytest.fixture(scope="module")
def scene(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One for all tests: the views of each are in the topics of the next."""
    with scene_of(cluster.bootstrap, tmp_path_factory.mktemp("scene")) as scene:
        yield scene


def leaders(cluster: Cluster) -> dict[int, list[At]]:
    """The partitions of the input that each broker leads."""
    found: dict[int, list[At]] = {}
    topic = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(BEACONS.name, timeout=20)
    for number, partition in topic.topics[BEACONS.name].partitions.items():
        if partition.leader > 0:
            found.setdefault(partition.leader, []).append((BEACONS.name, number))
    return found


def test_a_broker_that_hangs_stops_the_clocks_of_its_own_partitions_alone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For as long as the test runs, the broker gives no answer, not even that it gives none.
    monkeypatch.setattr(end_offsets, "ANSWER_SECONDS_MAX", 600.0)
    led = leaders(cluster)
    watched = [at for partitions in led.values() for at in partitions]
    ends = Ends(ReplicatedSettings(kafka_bootstrap=cluster.proxied_bootstrap, topics_profile=PROFILE))
    ends.start()
    ends.watch(watched)
    try:
        wait_until(lambda: len(newest(ends, watched)) == len(watched), "all ends are known")
        # What it was asked before it hung is answered, or not: what it is asked later is not.
        cluster.proxies[HANGING].hang()
        hung_at = time.monotonic()
        others = [at for node, partitions in led.items() if node != HANGING for at in partitions]
        for _ in range(3):
            expect_newer(ends, others, time.monotonic())
        assert all(end.asked_at <= hung_at for end in newest(ends, led[HANGING]).values())
        cluster.proxies[HANGING].resume()
        expect_newer(ends, watched, time.monotonic())
    finally:
        cluster.proxies[HANGING].resume()
        ends._stop.set()


def expect_newer(ends: Ends, partitions: list[At], since: float) -> None:
    """Waits until the ends of these are confirmed that were asked for after `since` (monotonic seconds)."""
    wait_until(lambda: all(end.asked_at > since for end in newest(ends, partitions).values()), "ends are confirmed")


def newest(ends: Ends, partitions: list[At]) -> dict[At, End]:
    return {(topic, number): end for topic, number in partitions for end in ends.of([topic], number).values()}


def is_healthy(view_id: str) -> bool:
    """Whether the view's partition is led by a broker that does not hang."""
    return leader_of(partition_of(view_key("acme", view_id), PARTITIONS)) != HANGING


def expect_healthy(scene: Scene, feed: Feed, what: str) -> None:
    """Waits until all views of this feed have their rows whose partitions' leaders do not hang."""
    truth = {view_id: row for view_id, row in feed.truth.items() if is_healthy(view_id)}
    assert 0 < len(truth) < len(feed.truth)

    def is_there() -> bool:
        found = observed(scene.rows.read())
        return all(found.get(view_id) == row for view_id, row in truth.items())

    wait_until(is_there, what, 180)


def taken(slot: Slot) -> set[int]:
    """The partitions that the slot has taken over."""
    return {int(str(event["partition"])) for event in slot.events("partition_taken_over")}


def assigned(slot: Slot) -> set[int]:
    """The partitions that the slot was given."""
    return {number for event in slot.events("assigned") for number in event["partitions"]}  # type: ignore[attr-defined]


def state(cluster: Cluster, *slots: Slot) -> str:
    """Who leads and coordinates what, and the ends of the slots' logs."""
    logs = "\n".join(f"slot {slot.number}: {slot.log_tail()}" for slot in slots)
    return f"coordinator {cluster.coordinator('video_views')}, leaders {leaders(cluster)}\n{logs}"


def expect_ended(cluster: Cluster, slots: list[Slot]) -> None:
    """The slots end when they are asked to, with nothing left to commit.

    A supervisor starts one again that was fenced by its own second request to join.
    """
    wait_until(lambda: not uncommitted(cluster.bootstrap, "video_views", BEACONS), "every beacon is committed", 120)
    for slot in slots:
        code = slot.terminate() if slot.is_running else slot.ended()
        assert code == 0 or DROPPED in slot.last_line(), slot.log_tail()


def test_a_slot_goes_on_with_the_partitions_whose_leaders_do_not_hang_and_takes_them_over(
    cluster: Cluster, scene: Scene
) -> None:
    through = CALM | variables(cluster.proxied_bootstrap)
    first = scene.started(**through)
    wait_until(lambda: len(taken(first)) == PARTITIONS, "all partitions are taken over")
    cluster.proxies[HANGING].hang()
    try:
        # Folds and commits go on.
        feed = scene.feed(views=40, seconds=2)
        feed.finish()
        expect_healthy(scene, feed, "a slot at work goes on with its healthy partitions")
        # A slot that starts meanwhile takes over what is healthy of its share.
        second = scene.slot(**through)
        second.start()
        healthy = {number for number in range(PARTITIONS) if leader_of(number) != HANGING}
        wait_until(
            lambda: bool(taken(second) & healthy),
            lambda: f"the second slot takes over: {state(cluster, first, second)}",
            180,
        )
        assert assigned(second) - healthy, "its share has a partition whose leader hangs"
        feed = scene.feed(views=40, seconds=2)
        feed.finish()
        expect_healthy(scene, feed, "both slots go on with their healthy partitions")
        # The broker did hang: nothing of what it leads has come.
        assert not [view_id for view_id in observed(scene.rows.read()) if not is_healthy(view_id)]
        assert first.is_running
        assert second.is_running
    finally:
        cluster.proxies[HANGING].resume()
    scene.expect_truth(seconds=180)
    expect_ended(cluster, [first, second])


def test_a_broker_of_three_is_killed_under_load_and_comes_back(cluster: Cluster, scene: Scene) -> None:
    slots = [scene.started(**CALM) for _ in range(2)]
    # It coordinates the group, and with it transactions; and it leads partitions of every topic.
    killed = cluster.brokers[cluster.coordinator("video_views")]
    feed = scene.feed(views=150, seconds=8)
    feed.join(3)
    assert feed.is_alive()
    killed.kill()
    scene.expect_truth(seconds=120)
    scene.feed(views=60, seconds=3)
    killed.start()
    scene.expect_truth(seconds=120)
    # The new coordinator may carry out a request to join that the client has given up with the old one: then it fences the
    # member that the client is by now.
    expect_ended(cluster, slots)
