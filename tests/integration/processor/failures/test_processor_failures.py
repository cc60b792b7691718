"""kill -9, stalls and rebalances at every step of commit, flush and takeover: no view is missing, doubled, wrong, split or open."""

import signal
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.state.meta import META_KEY, Meta
from services.processor.engine.state.rows import pack
from services.processor.runtime.kafka.clients import partition_producer
from services.processor.runtime.partition.transaction import Committer, Unclear
from services.rim.process.crash_points import CrashPoint, CrashPoints
from shared.topics import BEACONS, VIDEO_VIEWS_CHANGELOG
from tests.integration.parts.failing import Scene, delete_group
from tests.integration.parts.feed import committed
from tests.integration.parts.installed import COUNTS, PARTITIONS, kafka
from tests.integration.parts.slots import Slot, wait_until

pytestmark = pytest.mark.integration

APPLICATION = application(FinishRules())


def came_to(scene: Scene, slot: Slot, point: str) -> None:
    """Feeds until the slot comes to the point.

    A slot that takes longer to start than a feed lasts folds all of it in few commits, and would never come to a later one.
    """
    scene.feed(seconds=3)

    def has_come() -> bool:
        if slot.reached(point):
            return True
        if not scene.feeds[-1].is_alive():
            scene.feed(seconds=3)
        return False

    wait_until(has_come, f"the slot came to {point}", 120)


def with_state(scene: Scene) -> int:
    """How many partitions have committed rows."""
    messages = committed(scene.bootstrap, VIDEO_VIEWS_CHANGELOG)
    return len({message.partition() for message in messages if message.key() != META_KEY})


def killed_at(slot: Slot, *armed: str, before: Callable[[], object] = lambda: None) -> None:
    """Starts the slot again and again, each time to be killed at the next point; then unarmed.

    `before` is called before each start: what it sends makes the slot come to the point, however long the slot takes to start.
    """
    for each in armed:
        before()
        slot.arm(PROCESSOR_CRASH_AT=each)
        slot.start()
        assert slot.ended() == -signal.SIGKILL, each
    slot.arm(PROCESSOR_CRASH_AT="")
    slot.start()


def test_kill_at_every_step_of_a_commit(scene: Scene) -> None:
    # Each partition commits once for what came before the slot: no more is certain, however late the slot begins.
    points = [f"{point}:{PARTITIONS - 2}" for point in ("begun", "produced", "offsets_sent", "committed")]
    killed_at(scene.slot(), *points, before=lambda: scene.feed(views=60, seconds=6))
    scene.expect_truth()


def test_kill_at_every_step_of_a_flush(scene: Scene) -> None:
    # Large rows that all wait to be flushed make several slices, and with a small write buffer RocksDB writes them to files
    # while the flush still goes on: rows ahead of their position.
    scene.feed(views=1_200, seconds=2, text_bytes=10_000).finish()
    slot = scene.slot(PROCESSOR_WRITE_BUFFER_BYTES=str(1 << 20), PROCESSOR_FLUSH_INTERVAL_MS="1500")
    # Each partition is flushed once for what came before the slot: no more is certain, however late the slot begins.
    points = ["slice_written:2", f"rows_written:{PARTITIONS - 2}", f"flushed:{PARTITIONS - 2}"]
    killed_at(slot, *points, before=lambda: scene.feed(views=60, seconds=6))
    scene.expect_truth()


def test_kill_at_every_step_of_a_takeover(scene: Scene) -> None:
    slot = scene.started(PROCESSOR_FLUSH_INTERVAL_MS="60000")
    scene.feed(views=100, seconds=6)
    wait_until(lambda: with_state(scene) == PARTITIONS, "every partition has something to replay")
    slot.kill()
    killed_at(slot, *(f"{point}:{PARTITIONS - 1}" for point in ("fenced", "replaying")))
    scene.expect_truth()


@pytest.mark.parametrize("point", ["produced", "offsets_sent"])
def test_a_zombie_that_wakes_in_its_commit_after_its_partitions_went_to_another(scene: Scene, point: str) -> None:
    # It stops itself inside a commit, past every time-out, and wakes with an open transaction.
    zombie = scene.slot(PROCESSOR_CRASH_AT=f"{point}:25:stop")
    zombie.start()
    came_to(scene, zombie, point)
    successor = scene.slot()
    successor.start()
    wait_until(lambda: successor.working() == PARTITIONS, "the successor has all partitions")
    zombie.wake()
    wait_until(lambda: bool(zombie.events("lost")), "the zombie knows that it lost its partitions")
    scene.expect_truth()
    assert zombie.is_running
    assert zombie.terminate() == 0


def test_a_zombie_that_wakes_inside_its_own_fence_and_fences_its_successor(scene: Scene) -> None:
    # It stops itself in the last of its takeovers; what it sends when it wakes fences the partition's owner by then.
    zombie = scene.slot(PROCESSOR_CRASH_AT=f"fencing:{PARTITIONS}:stop")
    zombie.start()
    came_to(scene, zombie, "fencing")
    successor = scene.slot()
    successor.start()
    wait_until(lambda: successor.working() == PARTITIONS, "the successor has all partitions")
    taken_before = len(zombie.events("partition_taken_over"))
    zombie.wake()
    scene.feed(seconds=3)

    def has_fenced() -> bool:
        """A commit of the successor was refused, as it went on or as it gave the partition up; or the zombie took one."""
        is_given_up = [event for event in successor.events("revoked") if not event["committed"]]
        return (
            bool(successor.events("commit_unclear") or is_given_up)
            or len(zombie.events("partition_taken_over")) > taken_before
        )

    wait_until(has_fenced, "the zombie's fence is past the successor, the owner")
    scene.expect_truth()
    assert zombie.is_running
    assert successor.is_running
    assert zombie.terminate() == 0


class Overtaken(CrashPoints):
    """Lets the successor of a partition take it while its former owner stands at a point of its commit."""

    def __init__(self, point: CrashPoint, successor: Producer) -> None:
        super().__init__()
        self._point = point
        self._successor = successor

    def reach(self, here: CrashPoint) -> None:
        if here == self._point:
            self._successor.init_transactions(30)


@pytest.mark.parametrize("point", ["begun", "offsets_sent"])
def test_a_successors_fence_refuses_what_the_former_owner_still_commits(scene: Scene, point: CrashPoint) -> None:
    settings, partition = kafka(scene.broker.bootstrap), 3
    former, successor = (partition_producer(settings, APPLICATION, partition) for _ in range(2))
    former.init_transactions(30)
    changes: dict[bytes, bytes | None] = {b"\x04acme:former": pack(0, b"row")}
    committer = Committer(former, APPLICATION, partition, COUNTS, Overtaken(point, successor))
    # Reported as a fence; or, inside a delivery report, as an error that the client cannot express.
    with pytest.raises(Unclear):
        committer.commit(Checkpoint(changes, [], Meta({}, 0, 1), 0, {}), None, time.monotonic() + 60)


@pytest.mark.parametrize("point", ["begun", "offsets_sent"])
def test_a_rebalance_during_a_commit(scene: Scene, point: str) -> None:
    slot = scene.slot(PROCESSOR_CRASH_AT=f"{point}:25:stop", PROCESSOR_SESSION_MS="20000")
    slot.start()
    came_to(scene, slot, point)
    admin = AdminClient({"bootstrap.servers": scene.broker.bootstrap})
    # Another member, which is there at once: a slot would take as long to start as the one that is stopped has.
    other = Consumer(
        {
            "bootstrap.servers": scene.broker.bootstrap,
            "group.id": "video_views",
            "partition.assignment.strategy": "cooperative-sticky",
            "enable.auto.commit": False,
        }
    )

    def is_rebalancing() -> bool:
        other.poll(0)
        group = admin.describe_consumer_groups(["video_views"])["video_views"].result()
        return bool(group.state.name == "PREPARING_REBALANCING")

    def has_partitions() -> bool:
        other.poll(0)
        return bool(other.assignment())

    try:
        other.subscribe([BEACONS.name])
        wait_until(is_rebalancing, "the other's join waits for the one that commits")
        slot.wake()
        wait_until(has_partitions, "the other has partitions")
    finally:
        other.close()
    # The other's leave may still go round: whether the slot commits all of its last live bucket says nothing here.
    scene.expect_truth()


def test_a_commit_of_unknown_outcome(scene: Scene) -> None:
    slot = scene.started(PROCESSOR_COMMIT_MS_MAX="700", PROCESSOR_SESSION_MS="20000")
    scene.feed(seconds=6)
    # So it has views whose end is a commit, whatever has come by then.
    wait_until(lambda: with_state(scene) > 0, "the slot commits what is fed")
    scene.broker.child.signal(signal.SIGSTOP)
    try:
        wait_until(lambda: bool(slot.events("commit_unclear")), "a commit's deadline has passed")
    finally:
        scene.broker.child.signal(signal.SIGCONT)
    scene.expect_truth()
    assert slot.terminate() == 0


def test_a_broker_that_is_killed_and_restarted_under_load(scene: Scene) -> None:
    slot = scene.started()
    feed = scene.feed(seconds=6)
    feed.join(1.5)
    scene.broker.kill()
    scene.broker.start()
    scene.expect_truth(seconds=90)
    assert slot.terminate() == 0


@pytest.mark.parametrize("point", ["produced", "offsets_sent"])
def test_a_broker_that_is_killed_and_restarted_in_the_middle_of_a_transaction(scene: Scene, point: str) -> None:
    # The client lets the time of a commit pass in which the broker died.
    limits = {"PROCESSOR_SESSION_MS": "20000", "PROCESSOR_COMMIT_MS_MAX": "2000"}
    slot = scene.slot(PROCESSOR_CRASH_AT=f"{point}:25:stop", **limits)
    slot.start()
    came_to(scene, slot, point)
    scene.broker.kill()
    scene.broker.start()
    slot.wake()
    scene.expect_truth(seconds=90)
    assert slot.terminate() == 0


def test_offsets_of_the_group_that_are_gone(scene: Scene) -> None:
    slot = scene.started()
    scene.feed(views=100, seconds=5)
    wait_until(lambda: len(scene.rows.read()) >= 10, "views were folded and finished")
    slot.kill()
    delete_group(scene.broker)
    slot.start()
    scene.expect_truth()


def test_another_process_with_its_id_ends_the_slot_with_a_clear_last_line(scene: Scene) -> None:
    # One that the group had dropped would join again, and fence the other. One that is fenced ends after a session.
    slot = scene.started(PROCESSOR_SESSION_MS="8000")
    scene.feed(seconds=3)
    successor = scene.slot(PROCESSOR_SESSION_MS="8000")
    successor.arm(PROCESSOR_SLOT="test/0")
    successor.start()
    assert slot.ended() == 4
    assert "fenced" in slot.last_line().lower()
    scene.expect_truth()
