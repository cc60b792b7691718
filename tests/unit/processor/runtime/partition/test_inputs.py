"""What waits is folded in slices, so that the loop can look at its clock between them."""

from collections.abc import Sequence
from itertools import pairwise

from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.local import MemoryStore
from services.processor.runtime.partition.inputs import SLICE_RECORDS, SLICE_SECONDS, Inputs
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION


def slices_of(count: int, *, seconds_a_record: float) -> list[int]:
    """How many of so many records each slice folds, where each takes so long."""
    clock = [0.0]
    inputs = Inputs(APPLICATION, lambda: clock[0])
    core = Core(APPLICATION, 0, MemoryStore())
    fold = core.fold

    def slow(records: Sequence[Record]) -> int:
        clock[0] += len(records) * seconds_a_record
        return fold(records)

    core.fold = slow  # type: ignore[method-assign]
    records = [Record(BEACONS.name, 0, offset, 1_000, b"a", b"") for offset in range(count)]
    inputs.accept(BEACONS.name, records, len(records))
    ends = [0]
    while inputs.fold_slice(core):
        ends.append(core.next_offset(BEACONS.name) or 0)
    assert not inputs.has_ready
    return [end - start for start, end in pairwise(ends)]


def test_a_large_batch_is_folded_slice_by_slice() -> None:
    assert slices_of(2 * SLICE_RECORDS + 1, seconds_a_record=0.0) == [SLICE_RECORDS, SLICE_RECORDS, 1]


def test_where_records_take_long_the_clock_is_looked_at_after_few() -> None:
    # A session of many plays and clocks made each record cost a hundred times as much: 500 at once took 12 s.
    first, *others = slices_of(100, seconds_a_record=0.025)
    assert first == 50
    assert others == [1] * 50
    assert max(slices_of(300, seconds_a_record=SLICE_SECONDS / 100)[1:]) == 100
