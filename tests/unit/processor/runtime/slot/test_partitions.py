"""The partitions of a slot: what the sweep of stores leaves alone."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from services.processor.runtime.slot.partitions import Partitions


@pytest.mark.parametrize(("is_due", "swept"), [(True, [frozenset({3, 5})]), (False, [])])
def test_stores_of_its_partitions_and_warm_copies_are_in_use(is_due: bool, swept: list[frozenset[int]]) -> None:
    found: list[frozenset[int]] = []

    def submit(work: Any, *arguments: Any) -> Future[None]:
        work(*arguments)
        return Future()

    partitions = Partitions.__new__(Partitions)
    partitions._by_number = {3: SimpleNamespace()}  # type: ignore[dict-item]
    partitions._warm = {5: SimpleNamespace()}  # type: ignore[dict-item]
    partitions._stores = SimpleNamespace(is_sweep_due=is_due, sweep=found.append)  # type: ignore[assignment]
    partitions._pools = SimpleNamespace(takeovers=SimpleNamespace(submit=submit))  # type: ignore[assignment]
    partitions.sweep_stores()
    assert found == swept
