"""Local stores that are gone, corrupt, locked, too old, ahead or on a full disk: every view comes out right, or the slot stops."""

import os
import resource
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from services.processor.engine.state.local import LocalMeta
from services.processor.engine.state.rows import ROW_FORMAT
from services.processor.runtime.store.rocksdb import RocksStore
from shared.topics import VIDEO_VIEWS_CHANGELOG
from tests.integration.parts.failing import Scene
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import Slot, wait_until
from tests.integration.processor.stores import DAY_MS, MEMORY, change_position, garbage, ghost, stands_at, written

pytestmark = pytest.mark.integration

HOUR_MS = 3_600_000
#: What breaks a store, given its folder.
Ways = Sequence[Callable[[Path], object]]


def killed_amid_views(scene: Scene, **environ: str) -> Slot:
    """A slot that was killed while views were open, with all its stores written some time before: it has committed since."""
    slot = scene.started(PROCESSOR_COMMIT_INTERVAL_MS="100", **environ)
    scene.feed(views=100, seconds=2, text_bytes=1_000)
    wait_until(lambda: len(written(slot.stores_dir())) == PARTITIONS, "every store was written")
    # However long that took, views are open now.
    feed = scene.feed(views=100, seconds=8, text_bytes=1_000)
    feed.join(2.5)
    assert feed.is_alive()
    slot.kill()
    return slot


def spoil(slot: Slot, ways: Ways) -> set[int]:
    """The store of a partition is broken in each way; which partitions."""
    for number, way in enumerate(ways):
        way(slot.stores_dir() / str(number))
    return set(range(len(ways)))


def behind(scene: Scene, slot: Slot) -> Path:
    """A store that lacks commits which the changelog has: the first that was not written after its last one."""
    consumer = Consumer({"bootstrap.servers": scene.bootstrap, "group.id": "unused"})
    try:
        for number in range(PARTITIONS):
            at = TopicPartition(VIDEO_VIEWS_CHANGELOG.name, number)
            _, end = consumer.get_watermark_offsets(at, timeout=60)
            store = slot.stores_dir() / str(number)
            # The store stands before the marker of its last commit.
            if end - stands_at(store) > 1:
                return store
    finally:
        consumer.close()
    raise AssertionError("every store has all that is committed")


@pytest.mark.parametrize(
    "ways",
    [
        (
            lambda store: garbage(store / "CURRENT"),
            lambda store: [garbage(path) for path in store.glob("MANIFEST-*")],
            lambda store: [garbage(path) for path in store.glob("*.sst")],
            # Its footer is whole: it opens, and breaks when it is read.
            lambda store: [garbage(path, 16) for path in store.glob("*.sst")],
        ),
        (
            lambda store: [path.unlink() for path in store.glob("*.sst")],
            lambda store: [os.truncate(path, path.stat().st_size // 2) for path in store.glob("*.sst")],
        ),
    ],
    ids=["garbage", "cut"],
)
def test_stores_that_are_corrupt_are_restored_from_the_changelog(scene: Scene, ways: Ways) -> None:
    slot = killed_amid_views(scene)
    spoiled = spoil(slot, ways)
    slot.start()
    scene.expect_truth()
    discarded = {event["partition"] for event in slot.events("store_discarded")}
    assert discarded >= spoiled
    assert slot.terminate() == 0


def test_stores_that_are_deleted_are_restored_from_the_changelog(scene: Scene) -> None:
    slot = killed_amid_views(scene)
    spoil(slot, (lambda store: (store / "CURRENT").unlink(), shutil.rmtree))
    slot.start()
    scene.expect_truth()
    assert slot.terminate() == 0


def test_a_store_that_is_older_than_the_changelogs_deletions_is_not_trusted(scene: Scene) -> None:
    slot = killed_amid_views(scene)
    old_ms = time.time_ns() // 1_000_000 - 2 * DAY_MS
    store = behind(scene, slot)
    change_position(store, lambda position: msgspec.structs.replace(position, current_ms=old_ms), ghost())
    slot.start()
    scene.expect_truth()
    (discarded,) = slot.events("store_discarded")
    assert "ms old" in str(discarded["why"])


def test_a_store_is_held_against_the_time_for_which_its_changelog_keeps_deletions_now(scene: Scene) -> None:
    """An operator has shortened it; by what is declared the store is young."""
    slot = killed_amid_views(scene)
    admin = AdminClient({"bootstrap.servers": scene.broker.bootstrap})
    kept = ConfigEntry("delete.retention.ms", str(HOUR_MS), incremental_operation=AlterConfigOpType.SET)
    changelog = ConfigResource(ResourceType.TOPIC, VIDEO_VIEWS_CHANGELOG.name, incremental_configs=[kept])
    for answer in admin.incremental_alter_configs([changelog]).values():
        answer.result()
    old_ms = time.time_ns() // 1_000_000 - HOUR_MS * 3 // 4
    store = behind(scene, slot)
    change_position(store, lambda position: msgspec.structs.replace(position, current_ms=old_ms), ghost())
    slot.start()
    scene.expect_truth()
    (discarded,) = slot.events("store_discarded")
    assert f"keeps deletions for {HOUR_MS} ms" in str(discarded["why"])


def test_a_store_that_a_newer_version_wrote_stops_the_slot(scene: Scene) -> None:
    """Even where its changelog has nothing to replay."""
    slot = scene.started()
    scene.feed(seconds=1)
    scene.expect_truth()
    assert slot.terminate() == 0
    # Closed and taken again, so that every store stands at its changelog's end.
    before = len(slot.events("partition_taken_over"))
    slot.start()

    def taken() -> set[object]:
        return {event["partition"] for event in slot.events("partition_taken_over")[before:]}

    wait_until(lambda: taken() == set(range(PARTITIONS)), "all is taken again")
    slot.kill()

    def newer(position: LocalMeta) -> LocalMeta:
        assert position.meta is not None
        return msgspec.structs.replace(position, meta=msgspec.structs.replace(position.meta, format=ROW_FORMAT + 1))

    change_position(slot.stores_dir() / "2", newer)
    slot.start()
    assert slot.ended() == 1
    assert f"the state has format {ROW_FORMAT + 1}" in slot.last_line()
    assert "upgrade it" in slot.last_line()


def test_a_store_that_is_ahead_of_the_changelog_stops_the_slot(scene: Scene) -> None:
    slot = killed_amid_views(scene)
    change_position(
        slot.stores_dir() / "2", lambda position: msgspec.structs.replace(position, changelog_offset=1 << 40)
    )
    slot.start()
    assert slot.ended() == 1
    assert "has lost committed records" in slot.last_line()
    # The operator who has found out why deletes the store.
    shutil.rmtree(slot.stores_dir() / "2")
    slot.start()
    scene.expect_truth()


def test_a_store_that_another_process_holds_is_waited_for_and_then_ends_the_slot(scene: Scene) -> None:
    slot = killed_amid_views(scene, PROCESSOR_STORE_OPEN_MS_MAX="1500")
    held = RocksStore(slot.stores_dir() / "1", MEMORY, open_seconds_max=5)
    slot.start()
    assert slot.ended() == 1
    assert "in use by another process" in slot.last_line()
    slot.arm(PROCESSOR_STORE_OPEN_MS_MAX="")
    slot.start()
    wait_until(lambda: len(slot.events("partition_taken_over")) >= 2 * PARTITIONS - 1, "the others are taken")
    held.close()
    scene.expect_truth()
    assert slot.terminate() == 0


def test_a_full_disk_stops_the_slot_and_nothing_is_lost(scene: Scene) -> None:
    slot = scene.started()
    # No file may grow beyond this; its own log is still far from it.
    resource.prlimit(slot.pid, resource.RLIMIT_FSIZE, (300_000, 300_000))
    scene.feed(views=600, seconds=4, text_bytes=10_000)
    assert slot.ended() == 1
    assert "is the disk full?" in slot.last_line()
    slot.start()
    scene.expect_truth()
    assert slot.terminate() == 0
