"""One partition with stand-ins of Kafka and of the thread pools, driven step by step."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from services.processor.engine.application.tables import Tables
from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalStore, MemoryStore
from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition import restoring as restoring_module
from services.processor.runtime.partition import working as working_module
from services.processor.runtime.partition.partition import Partition
from services.processor.runtime.partition.pools import Pools
from services.processor.runtime.partition.takeover import TakenPartition
from services.processor.runtime.partition.transaction import Durable
from services.processor.runtime.partition.working import Working
from services.processor.runtime.plan import Plan
from services.processor.settings import ProcessorSettings
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION

SOON = 1e12


def GENERATION() -> str:  # noqa: N802 - stands for a value
    """The group's generation, while a partition is closed."""
    return "present"


class Broker:
    """Stands in for Kafka: keeps what was committed, and answers commits as the test says."""

    def __init__(self) -> None:
        self.local: LocalStore = MemoryStore()
        self.committed: list[Checkpoint] = []
        #: The generation of each commit that was tried.
        self.generations: list[Any] = []
        self.answers: list[Exception | None] = []
        self.held: list[Future[Durable]] = []
        self.takeovers = 0

    def commit(self, checkpoint: Checkpoint, metadata: Any, _deadline: float) -> Durable:
        self.generations.append(metadata)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        self.committed.append(checkpoint)
        return Durable(len(self.committed), 0)


class Threads(ThreadPoolExecutor):
    """Runs everything at once, in the caller's thread, unless the test holds it back."""

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
        return TakenPartition(None, self.broker.local, self.topic_ids, Tables(()))  # type: ignore[arg-type]

    def step(self, end: End | None = None, until: float = SOON) -> None:
        self.partition.turn({} if end is None else {BEACONS.name: end}, lambda: None, until)

    def close(self, deadline: float = SOON) -> bool:
        """Closes the partition as a slot does; whether all was committed."""
        self.partition.renew(GENERATION, deadline)
        self.partition.begin_close(GENERATION, deadline)
        self.partition.renew(GENERATION, deadline)
        return self.partition.end_close(deadline)

    def accept(self, *records: Record) -> None:
        self.working.accept(BEACONS.name, list(records), records[-1].offset + 1)


def record(offset: int, value: bytes = b"", at_ms: int = 1_000) -> Record:
    return Record(BEACONS.name, 0, offset, at_ms, b"a", value)
