"""What waits is folded in slices, so that the loop can look at its clock between them."""

from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.local import MemoryStore
from services.processor.runtime.partition.inputs import SLICE_RECORDS, Inputs
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION


def test_a_large_batch_is_folded_slice_by_slice() -> None:
    inputs, core = Inputs(APPLICATION), Core(APPLICATION, 0, MemoryStore())
    records = [Record(BEACONS.name, 0, offset, 1_000, b"a", b"") for offset in range(2 * SLICE_RECORDS + 1)]
    inputs.accept(BEACONS.name, records, len(records))
    folded = []
    while inputs.fold_slice(core):
        folded.append(core.next_offset(BEACONS.name))
    assert folded == [SLICE_RECORDS, 2 * SLICE_RECORDS, 2 * SLICE_RECORDS + 1]
    assert not inputs.has_ready
