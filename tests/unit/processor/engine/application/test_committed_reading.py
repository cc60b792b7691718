"""Asking a core for committed rows alone: what is open or in flight is not seen, pages are in the order of keys."""

import random

import msgspec
import pytest

from services.processor.engine.application.access import LookFailed
from services.processor.engine.application.requests import CommittedRows, Query
from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalMeta, MemoryStore
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION, COUNTS, SILENT_MS


def count(rows: CommittedRows, key: bytes) -> bytes | None:
    found = rows.get(COUNTS, key)
    return None if found is None else msgspec.json.encode(found)


def page(rows: CommittedRows, subject: bytes) -> bytes | None:
    after, limit = msgspec.json.decode(subject, type=tuple[str, int])
    found = rows.page(COUNTS, after.encode(), limit)
    return msgspec.json.encode([(key.decode(), row) for key, row in found])


COUNT, PAGE = Query("count", count), Query("page", page)


def record(offset: int, key: str, at_ms: int = 1000) -> Record:
    return Record(BEACONS.name, 0, offset, at_ms, key.encode(), b"")


def committed(core: Core) -> None:
    core.cut()
    core.commit()


def paged(core: Core, after: str, limit: int) -> list[tuple[str, int]]:
    subject = msgspec.json.encode((after, limit))
    return msgspec.json.decode(core.ask(PAGE, subject) or b"", type=list[tuple[str, int]])


def test_what_is_not_committed_is_not_reported() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.fold([record(0, "a")])
    assert (core.ask(COUNT, b"a"), paged(core, "", 9)) == (None, [])
    core.cut()
    assert (core.ask(COUNT, b"a"), paged(core, "", 9)) == (None, [])
    core.commit()
    assert (core.ask(COUNT, b"a"), paged(core, "", 9)) == (b"1", [("a", 1)])
    core.fold([record(1, "a")])
    core.cut()
    core.fold([record(2, "a")])
    assert (core.ask(COUNT, b"a"), paged(core, "", 9)) == (b"1", [("a", 1)]), "as committed, not as it is now"


def test_a_deletion_is_not_reported_before_it_is_committed() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.fold([record(0, "a"), record(1, "b")])
    committed(core)
    core.advance_to(1000 + SILENT_MS)
    core.cut()
    assert (core.ask(COUNT, b"a"), paged(core, "", 9)) == (b"1", [("a", 1), ("b", 1)])
    core.commit()
    assert (core.ask(COUNT, b"a"), paged(core, "", 9)) == (None, [])


@pytest.mark.parametrize("seed", range(5))
def test_pages_over_all_layers_are_those_of_one_sorted_table(seed: int) -> None:
    random_ = random.Random(seed)
    local = MemoryStore()
    core = Core(APPLICATION, 0, local)
    truth: dict[str, int] = {}
    offset, now = 0, 1_000
    for turn in range(30):
        # Some go silent on the way: rows and tombstones lie in every layer.
        now += random_.choice([0, 20, 90])
        core.advance_to(now)
        keys = [f"{random_.randrange(60):02}" for _ in range(random_.randrange(12))]
        core.fold([record(offset + at, key, now) for at, key in enumerate(keys)])
        offset += len(keys)
        committed(core)
        if turn % 4 == 1:
            rows, meta = core.begin_flush()
            if turn % 8 == 1:
                local.write(rows, LocalMeta(meta, turn))
                core.end_flush()
                continue
            local.write(rows, LocalMeta(meta, turn))
            core.fold([record(offset, "99", now)])
            offset += 1
            committed(core)
            core.end_flush()
    truth = dict(paged(core, "", 999))
    assert list(truth) == sorted(truth)
    assert len(truth) == core.rows["counts"]
    assert all(core.ask(COUNT, key.encode()) == str(value).encode() for key, value in truth.items())
    for limit in (1, 3, 7):
        after, walked = "", []
        while found := paged(core, after, limit):
            assert len(found) <= limit
            walked += found
            after = found[-1][0]
        assert dict(walked) == truth
        assert len(walked) == len(truth)


def test_rows_deleted_since_the_flush_do_not_take_the_place_of_those_that_stand() -> None:
    local = MemoryStore()
    core = Core(APPLICATION, 0, local)
    core.fold([record(at, key) for at, key in enumerate("abc")] + [record(3, "d", 1_050)])
    committed(core)
    rows, meta = core.begin_flush()
    local.write(rows, LocalMeta(meta, 1))
    core.end_flush()
    core.fold([record(4, "z", 1_000 + SILENT_MS)])
    committed(core)
    assert paged(core, "", 1) == [("d", 1)]
    assert paged(core, "", 9) == [("d", 1), ("z", 1)]


def test_a_question_on_which_the_application_raises_says_which() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    with pytest.raises(LookFailed, match="broken: b'a': ZeroDivisionError"):
        core.ask(Query("broken", lambda rows, subject: str(1 // 0).encode()), b"a")
