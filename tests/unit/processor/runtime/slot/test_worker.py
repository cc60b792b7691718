"""The loop of a slot says how it is, and spends no time on partitions at rest."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.processor.runtime.kafka.reader import Batch, Dealt
from services.processor.runtime.plan import Plan
from services.processor.runtime.slot import worker as worker_module
from services.processor.runtime.slot.worker import REST_SECONDS, Worker
from services.processor.runtime.store.stores import Stores
from services.processor.settings import ProcessorSettings
from shared.schemas.slots import PartitionStatus
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION


def test_a_loop_that_does_not_turn_is_not_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(worker_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    # No broker is asked: the loop is not started.
    settings = ProcessorSettings(kafka_bootstrap="127.0.0.1:1", state_dir=tmp_path, slot="test/0")
    plan = Plan(settings, APPLICATION)
    worker = Worker(plan, Stores(plan))
    assert worker.is_alive().ok
    clock.now += settings.poll_interval_ms_max / 1_000 - 0.1
    assert worker.is_alive().ok
    clock.now += 0.2
    assert not worker.is_alive().ok
    assert "last turn of the loop 20.1 s ago" in worker.is_alive().why
    assert not worker.is_ready().ok


class Turned:
    """Stands in for a partition: counts its turns."""

    def __init__(self, number: int) -> None:
        self.partition = number
        self.is_at_rest = True
        self.turns = 0
        self.working: Any = SimpleNamespace(
            has_more=False, is_overfull=lambda _: False, commit_number=0, accept=lambda *_: None
        )

    def turn(self, *_: object) -> None:
        self.turns += 1

    def status(self, _: object) -> PartitionStatus:
        return PartitionStatus(partition=self.partition, owner="test/0", state="working")


def test_a_partition_at_rest_has_a_turn_with_each_answer_of_the_leaders_and_after_a_while_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(worker_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    plan = Plan(ProcessorSettings(kafka_bootstrap="127.0.0.1:1", state_dir=tmp_path, slot="test/0"), APPLICATION)
    worker = Worker(plan, Stores(plan))
    read: list[Dealt] = []
    monkeypatch.setattr(worker._reader, "read", lambda _: (read.pop() if read else {}, 0))
    resting, busy = Turned(0), Turned(1)
    busy.is_at_rest = False
    worker._partitions._by_number = {0: resting, 1: busy}  # type: ignore[dict-item]

    def turns(number: int) -> tuple[int, int]:
        """How many turns each had in so many of the loop."""
        before = resting.turns, busy.turns
        for _ in range(number):
            worker.turn()
        return resting.turns - before[0], busy.turns - before[1]

    assert turns(5) == (1, 5), "all have one at first"
    worker._ends.answers += 1
    assert turns(5) == (1, 5)
    clock.now += REST_SECONDS - 0.1
    assert turns(5) == (0, 5)
    clock.now += 0.2
    assert turns(5) == (1, 5)
    read.append({(BEACONS.name, 0): Batch()})
    assert turns(5) == (1, 5), "it was given records"
    worker.queries.questions.ask(lambda: None)
    assert turns(5) == (1, 5), "a question may leave it something to do"
    worker._on_change()
    assert turns(5) == (1, 5), "the slot's partitions have changed"
    resting.is_at_rest = False
    read.append({(BEACONS.name, 0): Batch()})
    assert turns(5) == (5, 5), "it has something to do"
