"""Partitions that grow under load: killed at each step of the command, with slots that are started too early and killed."""

import os
import signal
import subprocess
import sys

import pytest
from confluent_kafka.admin import AdminClient

from services.processor.applications.video_views.live.division import SUMS
from services.processor.catalogue import APPLICATIONS
from services.processor.runtime.growing import read
from shared import topics
from shared.partitioning import partition_of
from shared.settings import Settings
from tests.integration.failing import Scene
from tests.integration.feed import PARTITIONS
from tests.integration.slots import ROOT, wait_until

pytestmark = pytest.mark.integration

WANTED = 2 * PARTITIONS
GROWN = str(WANTED)


def grow(scene: Scene, *arguments: str, crash_at: str = "") -> tuple[int, str]:
    """The exit code of the command (negative: the signal's number), with what it printed."""
    environ = {**os.environ, "PLAYHEAD_KAFKA_BOOTSTRAP": scene.bootstrap, "PLAYHEAD_LOG_LEVEL": "error"}
    if crash_at:
        environ["PROCESSOR_CRASH_AT"] = crash_at
    ran = subprocess.run(
        [sys.executable, "-m", "deploy.topics", "grow", "beacons", str(WANTED), *arguments],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


def counts(scene: Scene) -> set[int]:
    """How many partitions the topics that grow together have."""
    found = AdminClient({"bootstrap.servers": scene.bootstrap}).list_topics(timeout=10).topics
    return {len(found[topic.name].partitions) for topic in (topics.BEACONS, topics.VIDEO_VIEWS_CHANGELOG)}


def rows_are_at_home(scene: Scene) -> int:
    """Asserts that each row of the changelog is in its key's partition alone; how many there are."""
    settings = Settings(kafka_bootstrap=scene.bootstrap)
    application = APPLICATIONS["video_views"]({})
    seen: set[bytes] = set()
    for partition in range(WANTED):
        rows, meta = read(settings, application, partition)
        assert meta is None or meta.partitions == WANTED
        own = {key for key in rows if key[0] not in SUMS}
        assert all(partition_of(key[1:], WANTED) == partition for key in own)
        assert not own & seen
        seen |= own
    return len(seen)


def test_partitions_grow_under_load_through_kills_at_each_step(scene: Scene) -> None:
    slot = scene.started()
    # Produced by the former number of partitions, before and during the growth.
    feed = scene.feed(views=120, seconds=15)
    wait_until(lambda: sum(feed.sent.values()) > 100, "there is load")
    code, said = grow(scene, "--dry-run")
    assert (code, "is at work: stop its slots" in said) == (1, True), said
    slot.kill()
    assert feed.is_alive(), "views have beacons before and after"
    assert counts(scene) == {PARTITIONS}

    assert grow(scene, crash_at="grow_raised")[0] == -signal.SIGKILL
    assert counts(scene) == {WANTED}
    # As after `kafka-topics --alter`: each refusal names the command.
    slot.start()
    assert slot.ended() == 3
    assert f"python -m deploy.topics grow beacons {WANTED}" in slot.last_line()
    early = scene.slot(PLAYHEAD_BEACON_PARTITIONS=GROWN)
    early.start()
    assert early.ended() == 1
    assert f"python -m deploy.topics grow beacons {WANTED}" in early.last_line()
    for step in ("grow_produced:2", "grow_moved"):
        code, said = grow(scene, "--processes", "1", crash_at=step)
        assert code == -signal.SIGKILL, (step, said)
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
