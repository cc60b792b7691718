"""A standby's copies that are corrupt, too old or gone are made again and reported; what takes over from them is right."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Producer

from services.processor.engine.state.local import LocalMeta
from tests.integration.parts.failing import Scene
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import Slot, wait_until
from tests.integration.processor.stores import DAY_MS, change_position, garbage, ghost, written

pytestmark = pytest.mark.integration

CHANGELOG = "video_views.changelog"
#: A busy machine makes nobody suspect, and the standby keeps what it takes.
STANDBYS = {"PROCESSOR_STANDBYS": "1", "PROCESSOR_SUSPECT_MS": "8000", "PROCESSOR_HAND_BACK_MS": "600000"}


@contextmanager
def open_transaction(bootstrap: str, topic: str, partition: int) -> Iterator[int]:
    """A record in a transaction that is open until the end, when it is aborted; the partition's end behind it."""
    ends: list[int] = []
    # A standby starts meanwhile, which takes its time on a busy machine.
    config = {"bootstrap.servers": bootstrap, "transactional.id": "stranger", "transaction.timeout.ms": 300_000}
    stranger = Producer(config)
    stranger.init_transactions(60)
    stranger.begin_transaction()
    stranger.produce(
        topic, b"", b"stranger", partition=partition, on_delivery=lambda _, message: ends.append(message.offset() + 1)
    )
    stranger.flush(60)
    try:
        yield ends[0]
    finally:
        stranger.abort_transaction(60)


def stand_by(standby: Slot) -> None:
    """Starts the standby, and waits until it has copies of all partitions."""
    before = len(standby.events("standing_by")) if standby.log_file.exists() else 0
    standby.start()

    def has_copies() -> bool:
        logged = standby.events("standing_by")[before:]
        return bool(logged) and len(logged[-1]["partitions"]) == PARTITIONS  # type: ignore[arg-type]

    wait_until(has_copies, "the standby has copies")


def stopped_standby(scene: Scene) -> tuple[Slot, Slot, Path]:
    """A slot at work, its standby, which is stopped and had written its copies, and where they lie."""
    home = scene.slot(**STANDBYS)
    standby = scene.slot(**STANDBYS, PROCESSOR_SLOT="test/0", PROCESSOR_REPLICA="1")
    home.start()
    wait_until(home.is_ready, "the slot is ready")
    stand_by(standby)
    scene.feed(views=100, seconds=3, text_bytes=1_000).finish()
    stores = standby.state_dir / "video_views" / "test-0.1"
    wait_until(lambda: len(written(stores)) == PARTITIONS, "the copies are written")
    assert standby.terminate() == 0
    return home, standby, stores


def spoil(stores: Path) -> None:
    garbage(stores / "0" / "CURRENT")
    for path in (stores / "1").glob("*.sst"):
        # Its footer is whole: it opens, and breaks when it is read.
        garbage(path, 16)


def age_and_delete(stores: Path) -> None:
    def aged(position: LocalMeta) -> LocalMeta:
        return msgspec.structs.replace(position, current_ms=time.time_ns() // 1_000_000 - 2 * DAY_MS)

    change_position(stores / "0", aged, ghost())
    shutil.rmtree(stores / "1")


@pytest.mark.parametrize(
    ("break_some", "why", "discarded"), [(spoil, "corrupt", {0, 1}), (age_and_delete, "ms old", {0})]
)
def test_copies_that_are_corrupt_too_old_or_gone_are_made_again(
    scene: Scene, break_some: Callable[[Path], None], why: str, discarded: set[int]
) -> None:
    home, standby, stores = stopped_standby(scene)
    break_some(stores)
    # An old copy that lacks nothing is trusted.
    scene.feed(views=100, seconds=1).finish()
    stand_by(standby)
    assert why in {event["partition"]: str(event["why"]) for event in standby.events("store_discarded")}[0]
    scene.feed(views=60, seconds=2).finish()
    home.kill()
    wait_until(lambda: len(standby.events("partition_taken_over")) >= PARTITIONS, "the standby works the slot")
    scene.expect_truth()
    # Read only now, when it is worked: what the takeover did not meet, the core did. All others are kept.
    assert {event["partition"] for event in standby.events("store_discarded")} <= discarded
    assert standby.terminate() == 0


def test_a_copy_that_is_ahead_of_the_changelog_ends_the_standby_and_not_the_slot(scene: Scene) -> None:
    home, standby, stores = stopped_standby(scene)
    change_position(stores / "3", lambda position: msgspec.structs.replace(position, changelog_offset=1 << 40))
    standby.start()
    assert standby.ended() == 1
    assert "has lost committed records" in standby.last_line()
    shutil.rmtree(stores / "3")
    stand_by(standby)
    scene.expect_truth()
    assert standby.terminate() == 0
    assert home.terminate() == 0


def test_a_copy_whose_last_commit_has_no_marker_yet_is_kept(scene: Scene) -> None:
    home, standby, stores = stopped_standby(scene)
    with open_transaction(scene.bootstrap, CHANGELOG, 3) as end:
        # As a slot's own store stands after its commit: beyond what others may read until the marker is written.
        change_position(stores / "3", lambda position: msgspec.structs.replace(position, changelog_offset=end))
        stand_by(standby)
    scene.expect_truth()
    assert standby.terminate() == 0
    assert home.terminate() == 0
