"""Partitions that grow under load: killed at each step of the command, with slots that are started too early and killed."""

import signal
import uuid

import pytest
from confluent_kafka.admin import AdminClient

from deploy.topics import main as topics_command
from services.processor.applications.video_views.live.division import SUMS
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.state.meta import Meta
from services.processor.runtime.operations.state.copies import copied
from shared import topics
from shared.partitioning import partition_of
from tests.integration.parts.failing import Scene
from tests.integration.parts.feed import Feed
from tests.integration.parts.installed import PARTITIONS, kafka, variables
from tests.integration.parts.slots import wait_until
from tests.integration.processor.growing.growth import WANTED, Growth

pytestmark = pytest.mark.integration

GROWN = str(WANTED)


def begun(scene: Scene, *arguments: str, crash_at: str = "") -> Growth:
    environ = {**variables(scene.bootstrap), "PLAYHEAD_LOG_LEVEL": "error"}
    return Growth(scene.folder, environ | ({"PROCESSOR_CRASH_AT": crash_at} if crash_at else {}), *arguments)


def grow(scene: Scene, *arguments: str, crash_at: str = "") -> tuple[int, str]:
    """The exit code of the command (negative: the signal's number), with what it printed."""
    growth = begun(scene, *arguments, crash_at=crash_at)
    return growth.ended(), growth.said


def counts(scene: Scene) -> tuple[int, ...]:
    """How many partitions the topics that grow together have."""
    found = AdminClient({"bootstrap.servers": scene.bootstrap}).list_topics(timeout=10).topics
    return tuple(len(found[topic.name].partitions) for topic in (topics.BEACONS, topics.VIDEO_VIEWS_CHANGELOG))


def load(scene: Scene) -> Feed:
    """More views under way, by the former number of partitions."""
    feed = scene.feed(views=60, seconds=15)
    wait_until(lambda: sum(feed.sent.values()) > 100, "there is load")
    return feed


def rows_of(scene: Scene, partition: int) -> tuple[dict[bytes, bytes], Meta | None]:
    """The committed rows of a partition, with its position."""
    settings = kafka(scene.bootstrap)
    application = APPLICATIONS["video_views"]({})
    with copied(settings, application, partition, scene.folder / f"copy-{uuid.uuid4().hex}") as copy:
        return dict(copy.rows()), copy.meta


def rows_are_at_home(scene: Scene) -> int:
    """Asserts that each row of the changelog is in its key's partition alone; how many there are."""
    seen: set[bytes] = set()
    for partition in range(WANTED):
        rows, meta = rows_of(scene, partition)
        assert meta is None or meta.partitions == WANTED
        own = {key for key in rows if key[0] not in SUMS}
        assert all(partition_of(key[1:], WANTED) == partition for key in own)
        assert not own & seen
        seen |= own
    return len(seen)


def test_state_is_copied_while_slots_work_and_an_end_of_that_changes_nothing(scene: Scene) -> None:
    slot = scene.started()
    load(scene)
    code, said = grow(scene, "--dry-run")
    assert (code, "1 at work, to be stopped once the state is copied" in said) == (0, True), said
    assert counts(scene) == (PARTITIONS, PARTITIONS)

    # Kills of the command, of a process of it and of the slot.
    code, said = grow(scene, crash_at="grow_copying:2")
    assert (code, "was killed; run it again" in said) == (1, True), said
    assert counts(scene) == (PARTITIONS, WANTED)
    killed = begun(scene, "--processes", "2")
    killed.until("now stop all slots")
    # What was copied changes.
    load(scene)
    killed.kill()
    slot.kill()
    slot.start()
    wait_until(slot.is_ready, "it works with a changelog that has grown alone")
    code, said = grow(scene, "--wait", "0")
    assert (code, "is at work, and nothing has grown: stop its slots" in said) == (1, True), said
    assert all(not rows_of(scene, partition)[0] for partition in range(PARTITIONS, WANTED)), "copies are deleted"
    scene.expect_truth()
    assert slot.terminate() == 0


def test_partitions_grow_under_load_through_kills_at_each_step(scene: Scene) -> None:
    slot = scene.started()
    # Produced by the former number of partitions, before and during the growth.
    load(scene)
    raising = begun(scene, crash_at="grow_raised")
    raising.until("now stop all slots")
    feed = load(scene)
    slot.kill()
    assert feed.is_alive(), "views have beacons before and after"
    assert raising.ended() == -signal.SIGKILL
    # It was killed before it looked: the controller has agreed, and the broker learns of it.
    wait_until(lambda: counts(scene) == (WANTED, WANTED), "both topics have grown")
    # As after `kafka-topics --alter`: each refusal names the command.
    slot.start()
    assert slot.ended() == 3
    assert f"python -m deploy.topics grow beacons {WANTED}" in slot.last_line()
    early = scene.slot(PLAYHEAD_BEACON_PARTITIONS=GROWN)
    early.start()
    assert early.ended() == 1
    assert f"python -m deploy.topics grow beacons {WANTED}" in early.last_line()
    for step in ("grow_produced:2", "grow_moved"):
        code, said = grow(scene, crash_at=step)
        assert (code, "was killed; run it again" in said) == (1, True), (step, said)
    code, said = grow(scene)
    assert code == 0, said
    assert rows_are_at_home(scene) > 0
    code, said = grow(scene)
    assert (code, "state of 0 partitions" in said) == (0, True), said

    slot.arm(PLAYHEAD_BEACON_PARTITIONS=GROWN)
    slot.start()
    wait_until(slot.is_ready, "the slot works every partition")
    # Producers still go by the former number.
    scene.feed(views=40, seconds=2)
    slot.kill()
    slot.start()
    scene.expect_truth()
    assert slot.terminate() == 0
    assert rows_are_at_home(scene) > 0


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("spans", "traces: its traces end by event time"),
        ("api_calls", "api_baselines: its windows go by event time"),
        ("user_commands", "users: its state names the offsets"),
        ("recordings", "recordings: its state names the offsets"),
        ("live", "alerts: topic alert_rules is compacted"),
        ("views", "views is no input of an application. What can grow: beacons"),
    ],
)
def test_what_cannot_grow_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], topic: str, why: str
) -> None:
    monkeypatch.setenv("PLAYHEAD_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    assert topics_command(["grow", topic, "16"]) == 1
    assert why in capsys.readouterr().err
