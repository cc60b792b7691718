"""What waits is folded in slices, so that the loop can look at its clock between them; the clock runs on when nothing waits."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from services.processor.engine.core.core import Core
from services.processor.engine.record import Output, Record
from services.processor.engine.state.local import MemoryStore
from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition.inputs import SLICE_RECORDS, SLICE_SECONDS, Inputs
from shared.schemas.apis.call import ApiCall
from shared.topics import API_ANOMALIES, API_CALLS, BEACONS
from tests.unit.processor.applications.api_baselines import calls as api_calls
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


class Baselines:
    """A partition of `api_baselines` beside which nothing runs: what it reads, and the seconds that pass."""

    def __init__(self) -> None:
        self.now = 0.0
        self.core = Core(api_calls.APPLICATION, 0, MemoryStore())
        self.outputs: list[Output] = []
        self._inputs = Inputs(api_calls.APPLICATION, lambda: self.now)
        self._inputs.start(self.core)
        self._read = 0

    def read(self, calls: Iterable[ApiCall], *, came_ms: int | None = None) -> None:
        """The calls came as they ended, or all at once."""
        records = [
            Record(topic.name, 0, offset, at_ms, key, value)
            for offset, (topic, key, value, at_ms) in enumerate(api_calls.records(calls, came_ms=came_ms), self._read)
        ]
        self._read += len(records)
        self._inputs.accept(API_CALLS.name, records, self._read)
        while self._inputs.fold_slice(self.core) or self._inputs.has_ready:
            self._commit()

    def pass_without_calls(self, ms: int) -> None:
        self.now += ms / 1000
        self._inputs.confirm({API_CALLS.name: End(self._read, self.now)})
        self._inputs.run_clock(self.core)
        self._commit()

    def _commit(self) -> None:
        self.outputs += self.core.cut().outputs
        self.core.commit()


SILENCE_MS = api_calls.RULES.silence_ms


def test_a_producer_that_was_away_finds_the_windows_of_its_calls_open() -> None:
    partition = Baselines()
    usual = api_calls.jittered(14, seed=1)
    partition.read(api_calls.windows(*usual[:10]))
    partition.pass_without_calls(SILENCE_MS)
    back_ms = 10 * api_calls.WINDOW_MS + SILENCE_MS
    partition.read(api_calls.windows(*usual[10:], first=10), came_ms=back_ms)
    assert partition.core.tallies["late_calls"] == 0
    assert [one for one in partition.outputs if one.topic == API_ANOMALIES.name] == []


def test_a_clock_of_event_time_runs_on_after_a_silence() -> None:
    partition = Baselines()
    partition.read(api_calls.windows(*api_calls.jittered(10, seed=1)))
    began_ms = partition.core.clock_ms
    for passed_ms in (SILENCE_MS - 1, 1, 1_000, 4_000):
        partition.pass_without_calls(passed_ms)
    assert partition.core.clock_ms == began_ms + 5_000
