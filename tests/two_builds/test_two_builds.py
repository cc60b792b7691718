"""A rolling upgrade and the way back, under load and kills: every view is right to the last, or the way back is refused."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException

from deploy.local.broker import Broker
from deploy.topics import create_topics
from shared import codec, topics
from tests.chaos import logs
from tests.integration.parts.brokers import OF_VIEWS, broker_with_topics
from tests.integration.parts.failing import Scene, scene_on
from tests.integration.parts.feed import beacon, uncommitted
from tests.integration.parts.installed import kafka, variables
from tests.integration.parts.slots import ROOT, Slot, wait_until
from tests.two_builds import builds

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

READY_SECONDS_MAX: Final = 90.0
#: Views without an end stay open from one build to the next.
OPEN: Final = {"VIDEO_VIEWS_FINISH_SILENT_MS": "15000"}
#: Both builds have it.
PROFILE: Final = "laptop"
PARTITIONS: Final = topics.BEACONS.partitions(topics.PROFILES[PROFILE])
#: Of a stage: views whose first half one build folds, and whose last half the next.
ACROSS: Final = 2 * PARTITIONS
STARTED_MS: Final = 1_790_000_000_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_with_topics(tmp_path_factory.mktemp("broker"), ()) as running:
        yield running


@pytest.fixture
def scene(broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    with scene_on(broker, tmp_path, ()) as made:
        yield made


class Fleet:
    """Two slots that are rolled from build to build, on their disks."""

    def __init__(self, scene: Scene, first: Path) -> None:
        self._scene = scene
        self._across: list[str] = []
        topics_of(scene, first)
        self.slots = [scene.slot(PLAYHEAD_TOPICS_PROFILE=PROFILE, **OPEN) for _ in range(2)]
        for slot in self.slots:
            self._start(slot, first)
        self._begin_views()

    def roll(self, build: Path) -> None:
        """One slot after the other: the first is killed, the other stopped; then the first of the new ones is killed too."""
        feed = self._scene.feed(views=80, seconds=8)
        wait_until(lambda: sum(feed.sent.values()) > 100, "there is load")
        self.slots[0].kill()
        self._start(self.slots[0], build)
        self._end_views()
        self._begin_views()
        assert self.slots[1].terminate() == 0
        self._start(self.slots[1], build)
        self.slots[0].kill()
        self._start(self.slots[0], build)
        feed.finish()
        self.await_folded()
        self._end_views()
        self._begin_views()

    def refused(self, build: Path, why: str) -> None:
        """A slot of this build must end before it touches anything, and say why. The other slot goes on."""
        slot = self.slots[0]
        present = slot.build
        slot.kill()
        slot.build = build
        slot.start()
        assert slot.ended(READY_SECONDS_MAX) == 1
        assert why in slot.last_line(), slot.log_tail()
        self._start(slot, present)

    def await_folded(self) -> None:
        """Waits until all that was sent is committed."""

        def is_folded() -> bool:
            try:
                return not uncommitted(self._scene.bootstrap, "video_views", topics.BEACONS)
            except KafkaException:
                # A broker that gets no time moves the group for a moment.
                return False

        wait_until(is_folded, "all is committed", READY_SECONDS_MAX)

    def expect_truth(self) -> None:
        """Every view of all stages is right, once."""
        self._end_views()
        self._scene.expect_truth(120)
        assert [slot.terminate() for slot in self.slots] == [0, 0]

    def _start(self, slot: Slot, build: Path) -> None:
        """Starts the slot with the code of the build, and waits until it is ready and every partition is somebody's."""
        slot.build = build
        slot.start()
        wait_until(slot.is_ready, f"a slot of {build.name} is ready", READY_SECONDS_MAX)

        def is_shared() -> bool:
            sizes = [len(logs.held(one.log_file)) for one in self.slots if one.is_running]
            return sum(sizes) == PARTITIONS and max(sizes) - min(sizes) <= 1

        # No slot is killed in the middle of a rebalance, after which partitions may be nobody's until the next.
        wait_until(is_shared, "every slot works its share", READY_SECONDS_MAX)

    def _begin_views(self) -> None:
        stage = len(self._scene.also)
        self._across = [f"across-{stage + number}" for number in range(ACROSS)]
        self._scene.also |= dict.fromkeys(self._across, (5, 5000, "clean"))
        self._send([(1, "viewstart"), (2, "playing"), (3, "heartbeat")])
        self.await_folded()

    def _end_views(self) -> None:
        self._send([(4, "heartbeat"), (5, "viewend")])

    def _send(self, steps: list[tuple[int, str]]) -> None:
        for view_id in self._across:
            beacons = [
                beacon(view_id, seq, event, STARTED_MS + seq * 1000, view_watch_time=seq * 1000) for seq, event in steps
            ]
            self._scene.send(b"acme:" + view_id.encode(), *map(codec.BEACON.encode, beacons))


def topics_of(scene: Scene, build: Path) -> None:
    """The topics as the build makes them, and what this one adds, as an upgrade does first."""
    environ = {**os.environ, **variables(scene.bootstrap, PROFILE)}
    subprocess.run(
        [sys.executable, "-m", "deploy.topics"], cwd=build, env=environ, check=True, stdout=subprocess.DEVNULL
    )
    create_topics(kafka(scene.bootstrap, PROFILE), OF_VIEWS)


def test_the_last_release_is_rolled_forward_back_and_forward(scene: Scene, tmp_path: Path) -> None:
    former = builds.former(builds.last_of_these_formats(), tmp_path / "former")
    fleet = Fleet(scene, former)
    for build in (ROOT, former, ROOT):
        fleet.roll(build)
    fleet.expect_truth()


def test_what_version_0_1_0_has_stored_is_refused_and_it_goes_on(scene: Scene, tmp_path: Path) -> None:
    first = builds.former(builds.VERSION_0_1_0, tmp_path / "first")
    fleet = Fleet(scene, first)
    fleet.refused(ROOT, "store closed has rows of format 2; this version reads 1")
    fleet.expect_truth()


def test_a_format_comes_in_two_releases_of_which_each_can_be_rolled_back(scene: Scene, tmp_path: Path) -> None:
    reads = builds.with_next_format(tmp_path / "reads", writes=False)
    writes = builds.with_next_format(tmp_path / "writes", writes=True)
    fleet = Fleet(scene, reads)
    for build in (ROOT, writes):
        fleet.roll(build)
    fleet.refused(ROOT, "store views has rows of format 2; this version reads 1: upgrade it")
    fleet.roll(reads)
    fleet.expect_truth()
