"""The loop of a slot says how it is: a loop that does not turn is not alive, and a slot without the group is not ready."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from services.processor.runtime.plan import Plan
from services.processor.runtime.slot import worker as worker_module
from services.processor.runtime.slot.worker import Worker
from services.processor.runtime.store.stores import Stores
from services.processor.settings import ProcessorSettings
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
