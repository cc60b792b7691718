"""However many partitions catch up, a turn of the loop is short, and none of them is passed over."""

import pytest

from services.processor.runtime.slot.fold_scheduler import FoldScheduler


class Slot:
    """Partitions that fold slice by slice, on a clock that only they move. Times in seconds."""

    def __init__(self, partitions: int, *, slice_seconds: float) -> None:
        self.now = 100.0
        self.waiting = dict.fromkeys(range(partitions), 0.0)
        self.folded = dict.fromkeys(range(partitions), 0.0)
        self._slice = slice_seconds
        self._scheduler = FoldScheduler(1.0, lambda: self.now)

    def turn(self) -> float:
        """How long it takes."""
        began_at = self.now
        for partition, until in self._scheduler.shares(self.waiting):
            while self.waiting[partition] > 0 and self.now < until:
                self.now += self._slice
                self.waiting[partition] -= self._slice
                self.folded[partition] += self._slice
        return self.now - began_at


@pytest.mark.parametrize("partitions", [1, 8, 64])
@pytest.mark.parametrize("slice_seconds", [0.001, 0.1, 0.7])
def test_a_turn_takes_no_longer_with_more_partitions_that_catch_up(partitions: int, slice_seconds: float) -> None:
    slot = Slot(partitions, slice_seconds=slice_seconds)
    slot.waiting = dict.fromkeys(slot.waiting, 1_000.0)
    for _ in range(50):
        assert slot.turn() <= 1.0 + slice_seconds + 1e-6


@pytest.mark.parametrize("slice_seconds", [0.001, 0.1, 0.7])
def test_partitions_that_catch_up_share_the_time_evenly(slice_seconds: float) -> None:
    slot = Slot(16, slice_seconds=slice_seconds)
    slot.waiting = dict.fromkeys(slot.waiting, 1_000.0)
    for _ in range(100):
        slot.turn()
    shares = slot.folded.values()
    assert max(shares) - min(shares) <= 2 * slice_seconds + 0.1 * max(shares)


def test_what_comes_to_a_quiet_partition_does_not_wait_for_those_that_catch_up() -> None:
    slot = Slot(64, slice_seconds=0.01)
    slot.waiting = dict.fromkeys(range(63), 1_000.0) | {63: 0.0}
    for _ in range(20):
        slot.waiting[63] = 0.01
        slot.turn()
        assert slot.waiting[63] <= 0


def test_who_is_alone_in_having_work_has_nearly_all_of_the_time() -> None:
    slot = Slot(8, slice_seconds=0.001)
    slot.waiting[7] = 1_000.0
    slot.turn()
    assert slot.folded[7] >= 0.9


def test_partitions_may_come_and_go_between_turns() -> None:
    scheduler = FoldScheduler(1.0, lambda: 0.0)
    assert [number for number, _ in scheduler.shares([])] == []
    assert sorted(number for number, _ in scheduler.shares({5, 1, 3})) == [1, 3, 5]
    assert sorted(number for number, _ in scheduler.shares({9})) == [9]
