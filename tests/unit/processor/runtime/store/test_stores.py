"""Stores of partitions that have moved away, deleted after a time; and how old a store may be that is opened again."""

import os
import time
from pathlib import Path

import pytest

from services.processor.engine.state.local import LocalMeta, StoreFailed
from services.processor.runtime.plan import Plan
from services.processor.runtime.store import stores as stores_module
from services.processor.runtime.store.deletions import Deletions
from services.processor.runtime.store.stores import Stores, StoreTooOld
from services.processor.settings import ProcessorSettings
from tests.unit.processor.engine.counting import APPLICATION

KEPT_SECONDS = 3_600


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(ProcessorSettings(slot="test/0", state_dir=tmp_path, store_kept_ms=KEPT_SECONDS * 1000), APPLICATION)


def left(plan: Plan, partition: int, *, seconds_ago: float) -> Path:
    """A store that was closed so long ago, by a process before this one."""
    store = Stores(plan).open(partition)
    store.write({}, LocalMeta(None, 0, 0))
    store.close()
    path = plan.store_path(partition)
    at = time.time() - seconds_ago
    for file in path.iterdir():
        os.utime(file, (at, at))
    return path


def test_a_store_that_was_not_used_for_long_is_deleted_and_a_younger_one_is_not(plan: Plan) -> None:
    old, young = left(plan, 3, seconds_ago=KEPT_SECONDS + 60), left(plan, 4, seconds_ago=KEPT_SECONDS - 60)
    other = plan.store_path(5).parent / "not a partition"
    other.mkdir()
    assert Stores(plan).delete_unused(frozenset()) == [3]
    assert (old.exists(), young.exists(), other.exists()) == (False, True, True)


def test_a_store_of_a_partition_that_the_process_has_is_kept_however_long_it_was_silent(plan: Plan) -> None:
    path = left(plan, 3, seconds_ago=KEPT_SECONDS + 60)
    assert Stores(plan).delete_unused(frozenset({3})) == []
    assert path.exists()


def test_a_store_that_was_opened_a_moment_ago_is_kept(plan: Plan) -> None:
    """Its partition is being taken over: the slot's loop may not have it yet."""
    path = left(plan, 3, seconds_ago=KEPT_SECONDS + 60)
    stores = Stores(plan)
    stores.open(3).close()
    for file in path.iterdir():
        os.utime(file, (0, 0))
    assert stores.delete_unused(frozenset()) == []


def test_a_store_that_another_process_has_open_is_kept(plan: Plan) -> None:
    path = left(plan, 3, seconds_ago=KEPT_SECONDS + 60)
    store = Stores(plan).open(3)
    for file in path.iterdir():
        os.utime(file, (0, 0))
    assert Stores(plan).delete_unused(frozenset()) == []
    assert store.position() is not None
    store.close()


def test_a_process_that_has_no_stores_yet_deletes_none(plan: Plan) -> None:
    assert Stores(plan).delete_unused(frozenset()) == []


def test_a_sweep_is_due_once_in_its_interval_and_its_failure_ends_nothing(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = Stores(plan)
    assert not stores.is_sweep_due
    monkeypatch.setattr(stores_module, "SWEEP_SECONDS", 0.0)
    assert stores.is_sweep_due
    monkeypatch.setattr(stores_module, "SWEEP_SECONDS", 1e9)
    assert not stores.is_sweep_due

    def fail(*_: object) -> list[int]:
        raise StoreFailed("no such disk")

    monkeypatch.setattr(Stores, "delete_unused", fail)
    stores.sweep(frozenset())


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_store_that_lacks_no_commit_is_trusted_at_any_age(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, lacking: int
) -> None:
    """A partition without input makes no commits; behind the last one there is its marker at the most."""
    monkeypatch.setattr(Deletions, "kept_ms", lambda _: 86_400_000)
    stores, old = Stores(plan), LocalMeta(None, 100, 0)
    stores.check(3, old, 0, 100 + lacking, now_ms=10 * 86_400_000)
    with pytest.raises(StoreTooOld, match="ms old"):
        stores.check(3, old, 0, 102, now_ms=10 * 86_400_000)
