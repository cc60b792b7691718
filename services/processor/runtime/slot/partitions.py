"""Partitions: the partitions that a slot has, from their assignment to their release."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from services.processor.runtime.kafka.positions import Positions
from services.processor.runtime.partition.partition import Partition
from services.processor.runtime.partition.pools import Pools
from services.processor.runtime.partition.working import Working
from services.processor.runtime.plan import Plan
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores
from services.processor.runtime.telemetry import gauges


class Partitions:
    """By number. Changed by the slot's loop alone; `warm` are copies that a standby kept."""

    def __init__(self, plan: Plan, stores: Stores, positions: Positions, warm: dict[int, RocksStore]) -> None:
        self._plan = plan
        self._stores = stores
        self._positions = positions
        self._warm = dict(warm)
        self._pools = Pools.start(plan)
        self._by_number: dict[int, Partition] = {}

    def __contains__(self, number: int) -> bool:
        """Whether the slot has the partition. Any thread may ask."""
        return number in self._by_number

    def __len__(self) -> int:
        return len(self._by_number)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the slot's partitions, in order."""
        return sorted(self._by_number)

    def __iter__(self) -> Iterator[Partition]:
        """The slot's partitions, in the order of their numbers."""
        return iter([self._by_number[number] for number in self.numbers])

    def __getitem__(self, number: int) -> Partition:
        return self._by_number[number]

    def working(self) -> dict[int, Working]:
        """The partitions that are at work, by number."""
        return {
            number: working
            for number, partition in self._by_number.items()
            if (working := partition.working) is not None
        }

    def working_one(self, number: int) -> Working | None:
        """The partition, where the slot has it and it is at work."""
        partition = self._by_number.get(number)
        return None if partition is None else partition.working

    def take_over(self, numbers: Iterable[int]) -> None:
        """The group has assigned these partitions: begins their takeovers."""
        for number in numbers:
            self._by_number[number] = Partition(
                self._plan, number, self._stores, self._pools, self._positions.rewind, warm=self._warm.pop(number, None)
            )
        self._divide_memory()

    def close(self, numbers: Iterable[int], group_metadata: Callable[[], Any], deadline: float) -> bool:
        """Commits what is folded of these partitions, all at once, by `deadline` (monotonic seconds), and releases them.

        False when something folded could not be committed.
        """
        closing = self._remove(numbers)
        # Each step for all of them, so that their commits are under way together.
        for partition in closing:
            partition.renew(group_metadata, deadline)
        for partition in closing:
            partition.begin_close(group_metadata, deadline)
        for partition in closing:
            partition.renew(group_metadata, deadline)
        clean = [partition.end_close(deadline) for partition in closing]
        for partition in closing:
            # An abort on the way out has asked for a rewind: there is nothing to read any more.
            self._positions.forget(partition.partition)
        self._divide_memory()
        return all(clean)

    def release(self, numbers: Iterable[int]) -> None:
        """Releases these partitions. What is not committed is dropped: no commit is allowed any more."""
        for partition in self._remove(numbers):
            partition.release()
        self._divide_memory()

    def sweep_stores(self) -> None:
        """When it is time, deletes stores of partitions that have moved away, on a thread of the pool."""
        if self._stores.is_sweep_due:
            self._pools.takeovers.submit(self._stores.sweep, frozenset(self._by_number) | frozenset(self._warm))

    def close_pools(self) -> None:
        """Ends the threads, and closes the copies that were not used. Every partition has been released."""
        self._pools.close()
        for store in self._warm.values():
            store.close()

    def _remove(self, numbers: Iterable[int]) -> list[Partition]:
        removed = []
        for number in numbers:
            if number in self._by_number:
                self._positions.forget(number)
                gauges.forget(self._plan.application, number)
                removed.append(self._by_number.pop(number))
        return removed

    def _divide_memory(self) -> None:
        limits = self._plan.limits(len(self._by_number))
        for partition in self._by_number.values():
            partition.limit(limits)
