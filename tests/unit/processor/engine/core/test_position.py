"""What a commit says of the clock: never less than all that has fired, also during a flush."""

from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalMeta, MemoryStore
from tests.unit.processor.engine.joining import APPLICATION, LEFT


def record(offset: int, at_ms: int, key: bytes) -> Record:
    return Record(LEFT.name, 0, offset, 1_000_000, key, b"%d x" % at_ms)


def commit(core: Core, emitted: list[bytes]) -> int:
    checkpoint = core.cut()
    core.commit()
    emitted += [output.value for output in checkpoint.outputs if output.key == b"a"]
    return checkpoint.meta.clock_ms


def test_a_flush_that_ends_after_timers_have_fired_does_not_turn_the_clock_back() -> None:
    """The index then names timers that have fired since: a clock before them would let late records in after a crash."""
    local, emitted = MemoryStore(), []
    core = Core(APPLICATION, 0, local)
    core.fold([record(0, 1_000, b"a")])
    commit(core, emitted)
    rows, meta = core.begin_flush()
    core.fold([record(1, 50_000, b"b")])
    assert commit(core, emitted) == 50_000
    assert len(emitted) == 1
    core.fold([record(2, 50_000, b"c")])
    local.write(rows, LocalMeta(meta, 1))
    core.end_flush()
    assert commit(core, emitted) == 50_000
