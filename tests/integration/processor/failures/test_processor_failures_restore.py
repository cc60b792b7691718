"""A long restore that is interrupted: it goes on from where it noted its position, and what it restores is right."""

import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.stores import CLOSED_VIEWS
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.state.local import LocalStore
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import pack
from services.processor.runtime.kafka.clients import partition_producer
from services.processor.runtime.partition.changelog import POSITION_EVERY_ROWS, GivenUp, RestoreProgress
from services.processor.runtime.partition.takeover import take_over
from services.processor.runtime.partition.transaction import Committer
from services.processor.runtime.plan import Plan
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.rocksdb_options import Memory
from services.processor.runtime.store.stores import Stores
from services.processor.settings import ProcessorSettings
from services.rim.process.crash_points import CrashPoint, CrashPoints
from tests.integration.parts.failing import Scene
from tests.integration.parts.installed import COUNTS, kafka, variables

pytestmark = pytest.mark.integration

PARTITION = 3
FAR_MS = 1 << 43
CHUNK_ROWS = 20_000
CHUNKS = 5
MEMORY = Memory(block_cache_bytes=4 << 20, write_buffer_bytes=8 << 20)
APPLICATION = application(FinishRules())


def key(number: int) -> bytes:
    return bytes([CLOSED_VIEWS.id]) + b"acme:old-%d" % number


def filled(scene: Scene) -> int:
    """A changelog of many commits, each of which deletes every second row of the one before; its rows, deletions too."""
    producer = partition_producer(kafka(scene.broker.bootstrap), APPLICATION, PARTITION)
    producer.init_transactions(30)
    committer = Committer(producer, APPLICATION, PARTITION, COUNTS)
    rows = 0
    for chunk in range(CHUNKS):
        first = chunk * CHUNK_ROWS
        changes: dict[bytes, bytes | None] = {
            key(first + at): pack(FAR_MS, CLOSED_VIEWS.encode(chunk)) for at in range(CHUNK_ROWS)
        }
        if chunk:
            changes |= {key(first - CHUNK_ROWS + at): None for at in range(0, CHUNK_ROWS, 2)}
        rows += len(changes)
        committer.commit(Checkpoint(changes, [], Meta({}, 0, chunk + 1), 0, {}), None, time.monotonic() + 60)
    return rows


def expect_rows(store: LocalStore) -> None:
    """Every row that was not deleted stands, and no other."""
    last = (CHUNKS - 1) * CHUNK_ROWS
    wrong = [
        number
        for number in range(CHUNKS * CHUNK_ROWS)
        if (store.get(key(number)) is not None) != (number >= last or number % 2 == 1)
    ]
    assert not wrong, f"{len(wrong)} of {CHUNKS * CHUNK_ROWS}: {wrong[:5]}"


def replayed_after_a_kill(scene: Scene, point: CrashPoint) -> int:
    """The rows that a takeover replays after the one before was killed at `point`; the store then has what it must."""
    # A slot that the group drops takes the partition over once more.
    slot = scene.slot(PROCESSOR_CRASH_AT=point, PROCESSOR_SESSION_MS="20000")
    slot.start()
    assert slot.ended() == -signal.SIGKILL
    assert slot.reached(point)
    slot.arm(PROCESSOR_CRASH_AT="")
    slot.start()
    scene.feed(seconds=1)
    scene.expect_truth()
    (taken,) = [event for event in slot.events("partition_taken_over") if event["partition"] == PARTITION]
    assert slot.terminate() == 0
    store = RocksStore(slot.stores_dir() / str(PARTITION), MEMORY, open_seconds_max=5)
    expect_rows(store)
    store.close()
    return int(str(taken["replayed_rows"]))


def test_a_restore_that_is_killed_in_its_middle_goes_on_from_its_position(scene: Scene) -> None:
    rows = filled(scene)
    assert 0 < replayed_after_a_kill(scene, "position_noted") <= rows - POSITION_EVERY_ROWS


def test_a_restore_that_is_killed_after_its_first_rows_begins_again(scene: Scene) -> None:
    rows = filled(scene)
    assert replayed_after_a_kill(scene, "replaying") >= rows


class GivingUp(CrashPoints):
    """Takes the partition away at a crash point, as a rebalance would."""

    def __init__(self, given_up: threading.Event) -> None:
        super().__init__()
        self._given_up = given_up

    def reach(self, here: CrashPoint) -> None:
        if here == "position_noted":
            self._given_up.set()


def test_a_restore_in_which_the_partition_is_taken_away_goes_on_when_it_comes_back(
    scene: Scene, tmp_path: Path
) -> None:
    rows = filled(scene)
    given_up, progress = threading.Event(), RestoreProgress()
    settings = ProcessorSettings.load(
        {**variables(scene.bootstrap), "PROCESSOR_SLOT": "test/0", "PROCESSOR_STATE_DIR": str(tmp_path / "state")}
    )
    plan = Plan(settings, APPLICATION)
    leaving = replace(plan, crash_points=GivingUp(given_up))
    with pytest.raises(GivenUp):
        take_over(leaving, PARTITION, Stores(leaving), given_up, progress=RestoreProgress(), wait_seconds=0)
    taken = take_over(plan, PARTITION, Stores(plan), threading.Event(), progress=progress, wait_seconds=0)
    assert 0 < progress.rows <= rows - POSITION_EVERY_ROWS
    expect_rows(taken.store)
    taken.store.close()
