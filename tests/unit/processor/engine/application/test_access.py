"""Looking at a core's rows: only what is committed; and how many there are."""

import msgspec
import pytest

from services.processor.engine.application.access import LookFailed
from services.processor.engine.application.application import Lookup, Rows
from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalMeta, MemoryStore
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION, COUNTS


def answer(rows: Rows, key: bytes) -> bytes | None:
    count = rows.get(COUNTS, key)
    return None if count is None else msgspec.json.encode(count)


COUNT = Lookup("/counts/{key}", lambda parts: (), answer)


def record(offset: int, key: bytes, at_ms: int = 1000) -> Record:
    return Record(BEACONS.name, 0, offset, at_ms, key, b"")


def core() -> Core:
    return Core(APPLICATION, 0, MemoryStore())


def test_an_answer_is_of_what_is_committed() -> None:
    asked = core()
    assert asked.look(COUNT, b"a") is None
    asked.fold([record(0, b"a")])
    assert asked.look(COUNT, b"a") is None
    asked.cut()
    assert asked.look(COUNT, b"a") is None
    asked.commit()
    assert asked.look(COUNT, b"a") == b"1"


def test_what_an_abort_drops_was_never_answered() -> None:
    asked = core()
    asked.fold([record(0, b"a")])
    asked.cut()
    asked.commit()
    asked.fold([record(1, b"a"), record(2, b"b")])
    assert asked.look(COUNT, b"a") == b"1"
    asked.abort()
    assert asked.look(COUNT, b"a") == b"1"
    assert asked.look(COUNT, b"b") is None


def test_a_row_whose_deletion_is_not_committed_is_there() -> None:
    asked = core()
    asked.fold([record(0, b"a")])
    asked.cut()
    asked.commit()
    asked.advance_to(5000)
    assert asked.look(COUNT, b"a") == b"1"
    asked.cut()
    asked.commit()
    assert asked.look(COUNT, b"a") is None


def test_a_lookup_that_raises_says_which_and_leaves_the_core_working() -> None:
    asked = core()
    asked.fold([record(0, b"a")])
    broken = Lookup("/broken/{key}", lambda parts: (), lambda rows, key: str(1 // 0).encode())
    with pytest.raises(LookFailed, match=r"/broken/\{key\}: b'a': ZeroDivisionError"):
        asked.look(broken, b"a")
    asked.cut()
    asked.commit()
    assert asked.look(COUNT, b"a") == b"1"


def test_the_rows_that_stand_are_counted_through_aborts_deletions_and_a_takeover() -> None:
    local = MemoryStore()
    counted = Core(APPLICATION, 0, local)
    counted.fold([record(0, b"a"), record(1, b"b"), record(2, b"a")])
    counted.cut()
    assert counted.rows == {"counts": 2}
    counted.commit()
    counted.fold([record(3, b"c")])
    assert counted.rows == {"counts": 3}
    counted.abort()
    assert counted.rows == {"counts": 2}
    counted.fold([record(3, b"c", at_ms=1090)])
    counted.advance_to(1150)
    counted.fold([record(4, b"a", at_ms=1150)])
    assert counted.rows == {"counts": 2}, "a and b closed, c stands, a came again"
    counted.cut()
    counted.commit()
    rows, meta = counted.begin_flush()
    local.write(rows, LocalMeta(meta, 9))
    assert Core(APPLICATION, 0, local).rows == {"counts": 2}
