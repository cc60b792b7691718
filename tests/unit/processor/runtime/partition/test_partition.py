"""A partition under every outcome of a commit: what is kept, what is dropped, where reading goes on."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from services.processor.engine.application.application import Lookup
from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalStore, MemoryStore
from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.kafka.refusals import KafkaRefused, WorkerFailed
from services.processor.runtime.kafka.topic_ids import TopicReplaced
from services.processor.runtime.partition import commits as commits_module
from services.processor.runtime.partition import restoring as restoring_module
from services.processor.runtime.partition import working as working_module
from services.processor.runtime.partition.partition import Partition
from services.processor.runtime.partition.pools import Pools
from services.processor.runtime.partition.takeover import TakenPartition
from services.processor.runtime.partition.transaction import Aborted, Durable, Fenced, Unclear
from services.processor.runtime.partition.working import Working
from services.processor.runtime.plan import Limits, Plan
from services.processor.runtime.questions import Unanswered
from services.processor.settings import ProcessorSettings
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION

SOON = 1e12
LOOKUP = Lookup("/counts/{key}", lambda _: (), lambda _rows, _key: None)


class Broker:
    """Stands in for Kafka: keeps what was committed, and answers commits as it is told."""

    def __init__(self) -> None:
        self.local: LocalStore = MemoryStore()
        self.committed: list[Checkpoint] = []
        self.answers: list[Exception | None] = []
        self.held: list[Future[Durable]] = []
        self.takeovers = 0

    def commit(self, checkpoint: Checkpoint, _metadata: Any, _deadline: float) -> Durable:
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        self.committed.append(checkpoint)
        return Durable(len(self.committed), 0)


class Threads(ThreadPoolExecutor):
    """Runs everything at once, in the caller's thread, unless told to hold it back."""

    def __init__(self) -> None:
        super().__init__(1)
        self.is_holding = False
        self.waiting: list[tuple[Future[Any], Any]] = []

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # type: ignore[override]
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: work(*args, **kwargs)))
        if not self.is_holding:
            self.go_on()
        return future

    def go_on(self) -> None:
        for future, work in self.waiting:
            try:
                future.set_result(work())
            except Exception as error:  # noqa: BLE001  (as an executor does)
                future.set_exception(error)
        self.waiting = []


class Scene:
    """One partition with its stand-ins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, threads: Threads | None = None) -> None:
        self.broker = Broker()
        self.threads = threads or Threads()
        self.rewinds: list[int | tuple[int | None, int] | None] = []
        self.topic_ids = {BEACONS.name: "first"}
        monkeypatch.setattr(restoring_module, "take_over", self._take_over)
        monkeypatch.setattr(working_module, "Committer", lambda *_: self.broker)
        settings = ProcessorSettings(slot="test/0", state_dir=Path("unused"))
        # Shorter than an operator may set them.
        plan = Plan(settings.model_copy(update={"commit_interval_ms": 0, "commit_ms_max": 0}), APPLICATION)
        self.partition = Partition(
            plan,
            0,
            None,  # type: ignore[arg-type]
            Pools(self.threads, self.threads),
            lambda _topic, _partition, offset, epoch: self.rewinds.append((offset, epoch) if epoch else offset),
        )
        self.step()

    @property
    def working(self) -> Working:
        assert self.partition.working is not None
        return self.partition.working

    def _take_over(self, *_: Any, **__: Any) -> Any:
        self.broker.takeovers += 1
        return TakenPartition(None, self.broker.local, self.topic_ids)  # type: ignore[arg-type]

    def step(self, end: End | None = None, until: float = SOON) -> None:
        self.partition.turn({} if end is None else {BEACONS.name: end}, lambda: None, until)

    def accept(self, *records: Record) -> None:
        self.working.accept(BEACONS.name, list(records), records[-1].offset + 1)


def record(offset: int, value: bytes = b"", at_ms: int = 1_000) -> Record:
    return Record(BEACONS.name, 0, offset, at_ms, b"a", value)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


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


def test_it_folds_on_while_a_commit_is_in_flight(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1))
    scene.step()
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.step()
    scene.step()
    assert [checkpoint.records for checkpoint in scene.broker.committed] == [1, 1]


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


def test_an_aborted_commit_rewinds_to_what_is_committed_and_keeps_the_producer(scene: Scene) -> None:
    scene.accept(record(0))
    scene.step()
    scene.step()
    scene.broker.answers = [Aborted("ILLEGAL_GENERATION: told", "ILLEGAL_GENERATION")]
    scene.accept(record(1))
    scene.step()
    scene.step()
    assert scene.partition.status({}).dropped_commits == {"ILLEGAL_GENERATION": 1}
    assert scene.rewinds == [None, 1]
    assert scene.broker.takeovers == 1
    scene.accept(record(1), record(2))
    scene.step()
    scene.step()
    assert scene.broker.committed[-1].meta.next_offsets == {BEACONS.name: 3}


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
    scene.broker.answers = [Aborted("ILLEGAL_GENERATION: told", "ILLEGAL_GENERATION")]
    scene.accept(record(2))
    scene.step()
    scene.step()
    assert scene.rewinds == [None, (2, 3)]


@pytest.mark.parametrize("outcome", [Unclear("timed out"), Fenced("epoch")])
def test_any_other_failure_takes_the_partition_over_again(scene: Scene, outcome: Exception) -> None:
    scene.broker.answers = [outcome]
    scene.accept(record(0))
    scene.step()
    scene.step()
    scene.step()
    assert scene.broker.takeovers == 2
    assert scene.partition.working is not None
    assert scene.rewinds == [None, None]
    assert scene.partition.status({}).dropped_commits == {"unclear" if type(outcome) is Unclear else "fenced": 1}


class Hanging(Threads):
    """Begins what it is given, and never comes back from it."""

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # type: ignore[override]
        future = super().submit(work, *args, **kwargs)
        return future if isinstance(future.result(), TakenPartition) else Future()


def test_a_commit_that_the_client_never_ends_is_given_up_and_the_partition_taken_over_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits_module, "OVERDUE_SECONDS", 0.0)
    scene = Scene(monkeypatch, Hanging())
    scene.accept(record(0))
    scene.step()
    scene.step()
    scene.step()
    assert scene.broker.takeovers == 2
    assert scene.rewinds == [None, None]


def test_a_commit_that_waits_for_a_thread_is_not_overdue_until_it_will_never_get_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits_module, "OVERDUE_SECONDS", 0.0)
    scene = Scene(monkeypatch)
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.step()
    assert scene.broker.takeovers == 1
    monkeypatch.setattr(commits_module, "STUCK_SECONDS", 0.0)
    with pytest.raises(WorkerFailed, match="hangs in all of them"):
        scene.step()


@pytest.mark.parametrize("is_closing", [False, True])
def test_a_commit_that_kafka_will_never_take_ends_the_slot_or_is_left_to_the_successor(
    scene: Scene, is_closing: bool
) -> None:
    scene.broker.answers = [KafkaRefused("the topic is not ours")]
    scene.accept(record(0))
    scene.step()
    if is_closing:
        scene.partition.begin_close(None, SOON)
        assert not scene.partition.end_close(SOON)
    else:
        with pytest.raises(WorkerFailed, match="not ours"):
            scene.step()
    assert scene.broker.committed == []


def test_a_poison_record_is_rejected_after_one_rewind(scene: Scene) -> None:
    scene.accept(record(0), record(1, b"poison"), record(2))
    scene.step()
    scene.accept(record(0), record(1, b"poison"), record(2))
    scene.step()
    scene.step()
    assert sum(checkpoint.rejected.get("fold_failed", 0) for checkpoint in scene.broker.committed) == 1
    assert sum(checkpoint.records for checkpoint in scene.broker.committed) == 3


def test_a_poison_record_waits_for_the_commit_in_flight_without_holding_the_loop(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1, b"poison"), record(2))
    for _ in range(3):
        scene.step()
    # All that time the other partitions had their turns.
    assert scene.rewinds == [None]
    with pytest.raises(Unanswered, match="rejected"):
        scene.working.answers.look(LOOKUP, b"a", {})
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.step()
    assert scene.rewinds == [None, 1]
    scene.accept(record(1, b"poison"), record(2))
    scene.step()
    scene.step()
    assert [checkpoint.rejected for checkpoint in scene.broker.committed] == [{}, {"fold_failed": 1}]
    assert scene.broker.committed[-1].meta.next_offsets == {BEACONS.name: 3}


def test_poison_that_waits_for_a_commit_that_is_aborted_is_met_again(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.broker.answers = [Aborted("ILLEGAL_GENERATION: told", "ILLEGAL_GENERATION")]
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1, b"poison"))
    scene.step()
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.step()
    for _ in range(2):
        scene.accept(record(0), record(1, b"poison"))
        scene.step()
        scene.step()
    assert sum(checkpoint.rejected.get("fold_failed", 0) for checkpoint in scene.broker.committed) == 1
    assert sum(checkpoint.records for checkpoint in scene.broker.committed) == 2


def test_a_partition_given_up_amid_poison_leaves_it_to_the_successor(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1), record(2, b"poison"))
    scene.step()
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.partition.begin_close(None, SOON)
    assert not scene.partition.end_close(SOON)
    (checkpoint,) = scene.broker.committed
    assert checkpoint.meta.next_offsets == {BEACONS.name: 1}


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
    scene.partition.begin_close(None, SOON)
    assert scene.partition.end_close(SOON)
    assert scene.partition.working is None
    assert closed == []
    scene.threads.go_on()
    assert closed == ["store"], "once it is written"


@pytest.mark.parametrize("partitions", [0, 1, 8, 64, 100_000])
def test_a_slots_memory_is_shared_out_by_its_partitions(partitions: int) -> None:
    settings = ProcessorSettings()
    plan = Plan(settings, APPLICATION)
    limits = plan.limits(partitions)
    floor = 1 << 20
    for share, whole in (
        (limits.cache_bytes_max, settings.cache_bytes_max),
        (limits.waiting_bytes_max, settings.waiting_bytes_max),
        (limits.dirty_bytes_max, settings.dirty_bytes_max),
        (limits.unflushed_bytes_max, settings.unflushed_bytes_max),
    ):
        assert share == floor or floor < share <= whole / max(1, partitions)


def test_closing_commits_what_is_folded(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1))
    scene.step()
    scene.threads.is_holding = False
    scene.threads.go_on()
    scene.partition.begin_close(None, SOON)
    assert scene.partition.end_close(SOON)
    assert scene.broker.committed[-1].meta.next_offsets == {BEACONS.name: 2}


@pytest.mark.parametrize("outcome", [Aborted("generation"), Unclear("timed out"), Fenced("epoch")])
def test_closing_says_when_the_commit_in_flight_failed(scene: Scene, outcome: Exception) -> None:
    scene.broker.answers = [outcome]
    scene.accept(record(0))
    scene.step()
    scene.partition.begin_close(None, SOON)
    assert not scene.partition.end_close(SOON)
    assert scene.broker.takeovers == 1
    assert scene.broker.committed == []


def test_a_commit_that_cannot_end_in_time_is_abandoned(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.partition.begin_close(None, time.monotonic())
    assert not scene.partition.end_close(time.monotonic())


def test_a_lost_partition_commits_nothing(scene: Scene) -> None:
    scene.accept(record(0))
    scene.threads.is_holding = True
    scene.partition.release()
    assert scene.broker.committed == []
    assert scene.partition.working is None
