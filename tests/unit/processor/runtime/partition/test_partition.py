"""A partition at work: what it folds and commits, its clock, and what it takes of memory and of the loop's time."""

import time

import pytest

from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.kafka.topic_ids import TopicReplaced
from services.processor.runtime.partition.transaction import Aborted
from services.processor.runtime.plan import Limits, Plan
from services.processor.settings import ProcessorSettings
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION
from tests.unit.processor.runtime.partition.scene import Scene, record


def test_records_are_folded_and_committed(scene: Scene) -> None:
    scene.accept(record(0), record(1))
    scene.step()
    scene.step()
    (checkpoint,) = scene.broker.committed
    assert checkpoint.records == 2
    assert checkpoint.meta.next_offsets == {BEACONS.name: 2}


def test_a_record_that_a_broker_stamped_ahead_does_not_move_the_clock_there(scene: Scene) -> None:
    now_ms = time.time_ns() // 1_000_000
    scene.accept(record(0, at_ms=now_ms), record(1, at_ms=now_ms + 7_200_000), record(2, at_ms=now_ms + 1))
    scene.step()
    scene.step()
    (checkpoint,) = scene.broker.committed
    assert checkpoint.records == 3
    assert now_ms <= checkpoint.meta.clock_ms < now_ms + 600_000


def test_a_partition_whose_time_is_over_folds_nothing_and_does_the_rest_of_its_work(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1))
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.step(until=0.0)
    assert scene.working.has_more
    assert scene.partition.status({BEACONS.name: End(2, 0.0)}).lag_records == 1
    assert scene.partition.status({}).commit_ms is not None, "the commit's outcome is taken in"
    scene.step()
    assert not scene.working.has_more
    assert scene.partition.status({BEACONS.name: End(2, 0.0)}).lag_records == 0


def test_a_commit_keeps_the_ids_of_the_topics_and_another_id_stops_the_partition(scene: Scene) -> None:
    scene.accept(record(0))
    scene.step()
    scene.step()
    (checkpoint,) = scene.broker.committed
    assert checkpoint.meta.topic_ids == {BEACONS.name: "first"}
    scene.working.check_topics({BEACONS.name: "first", "another": "id"})
    scene.working.check_topics({BEACONS.name: "first"})
    with pytest.raises(TopicReplaced, match=f"begin-topic {BEACONS.name}"):
        scene.working.check_topics({BEACONS.name: "second"})


def test_the_latest_leader_epoch_read_is_kept_and_reading_continues_with_it(scene: Scene) -> None:
    scene.working.accept(BEACONS.name, [record(0)], 1, leader_epoch=3)
    scene.working.accept(BEACONS.name, [record(1)], 2, leader_epoch=2)
    scene.step()
    scene.step()
    (checkpoint,) = scene.broker.committed
    assert checkpoint.meta.leader_epochs == {BEACONS.name: 3}
    scene.broker.answers = [Aborted("ILLEGAL_GENERATION: by the test", "ILLEGAL_GENERATION")]
    scene.accept(record(2))
    scene.step()
    scene.step()
    assert scene.rewinds == [None, (2, 3)]


def test_the_clock_runs_on_only_when_everything_confirmed_is_folded(scene: Scene) -> None:
    scene.accept(record(0))
    scene.step()
    scene.step(End(offset=2, asked_at=time.monotonic() + 10))
    assert scene.working.clock_ms == 1_000
    scene.step(End(offset=1, asked_at=time.monotonic() + 10))
    assert 10_900 < scene.working.clock_ms <= 11_100


def test_an_input_is_overfull_by_records_or_by_bytes(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.partition.limit(Limits(1_000, 1_000, waiting_bytes_max=10, dirty_bytes_max=1_000, unflushed_bytes_max=1_000))
    scene.accept(record(0, bytes(9)))
    assert not scene.working.is_overfull(BEACONS.name)
    scene.accept(record(1, bytes(1)))
    assert scene.working.is_overfull(BEACONS.name)
    scene.step()
    assert not scene.working.is_overfull(BEACONS.name)


def test_a_checkpoint_is_cut_at_its_bytes_and_records_wait_while_it_is_in_flight(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.partition.limit(Limits(1_000, 1_000, waiting_bytes_max=1_000, dirty_bytes_max=25, unflushed_bytes_max=1_000))
    scene.accept(*(record(offset, bytes(10)) for offset in range(9)))
    for _ in range(5):
        scene.step()
    scene.threads.go_on()
    # Three in flight, three folded behind them, the rest still to come.
    assert [checkpoint.records for checkpoint in scene.broker.committed] == [3]
    scene.threads.is_holding = False
    for _ in range(5):
        scene.step()
    assert [checkpoint.records for checkpoint in scene.broker.committed] == [3, 3, 3]


def test_records_wait_while_a_slow_flush_is_under_way_and_as_much_waits_for_the_next(scene: Scene) -> None:
    scene.partition.limit(Limits(1_000, 1_000, waiting_bytes_max=1_000, dirty_bytes_max=1_000, unflushed_bytes_max=1))
    scene.accept(record(0))
    scene.step()
    scene.threads.is_holding = True
    scene.step()
    (flush,) = scene.threads.waiting
    scene.accept(record(1))
    scene.step()
    scene.threads.waiting.remove(flush)
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.accept(record(2))
    for _ in range(3):
        scene.step()
    assert len(scene.broker.committed) == 2, "the store is behind"
    scene.threads.waiting.append(flush)
    scene.threads.go_on()
    for _ in range(3):
        scene.step()
    assert len(scene.broker.committed) == 3


def test_a_slow_flush_does_not_hold_up_giving_the_partition_away(scene: Scene) -> None:
    closed: list[str] = []
    scene.broker.local.close = lambda: closed.append("store")  # type: ignore[method-assign]
    scene.partition.limit(Limits(1_000, 1_000, waiting_bytes_max=1_000, dirty_bytes_max=1_000, unflushed_bytes_max=1))
    scene.accept(record(0))
    scene.step()
    scene.threads.is_holding = True
    scene.step()
    ((flushing, _),) = scene.threads.waiting
    assert flushing.set_running_or_notify_cancel()
    assert scene.close()
    assert scene.partition.working is None
    assert closed == []
    scene.threads.go_on()
    assert closed == ["store"], "once it is written"


@pytest.mark.parametrize("partitions", [0, 1, 8, 64, 100_000])
def test_a_slots_memory_is_shared_out_by_its_partitions(partitions: int) -> None:
    settings = ProcessorSettings()
    plan = Plan(settings, APPLICATION)
    limits = plan.limits(partitions)
    floor = 1 << 16
    for share, whole in (
        (limits.cache_bytes_max, settings.cache_bytes_max),
        (limits.waiting_bytes_max, settings.waiting_bytes_max),
        (limits.dirty_bytes_max, settings.dirty_bytes_max),
        (limits.unflushed_bytes_max, settings.unflushed_bytes_max),
    ):
        assert share == floor or floor < share <= whole / max(1, partitions)
