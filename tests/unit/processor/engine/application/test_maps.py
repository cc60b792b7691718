"""An application with a map: scans in a fold and in a lookup, through crashes, with quarantined and rejected owners."""

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from services.processor.engine.application.application import Application, Context, Lookup, MapSpec, Rows, StoreSpec
from services.processor.engine.application.failure_rules import FailureRules
from services.processor.engine.core import quarantine
from services.processor.engine.core.core import Core
from services.processor.engine.core.folding import FIRED_ROWS_MAX
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from services.processor.engine.state.local import MemoryStore
from shared.codec import Undecodable
from shared.topics import BEACONS, REJECTED, VIEWS
from tests.unit.processor.engine.counting import APPLICATION, COUNTS, SILENT_MS

Drive = Callable[[Application], Driver]

WORDS = MapSpec[int](
    name="words",
    id=2,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(int).decode,
    goes_with="counts",
)
WORDS_MAX = 100_000


class Words:
    """Counts the words of a key; when the key is silent, emits them in order."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._keys = context.store(COUNTS)
        self._words = context.map(WORDS)

    def fold(self, record: Record) -> None:
        if record.value is None:
            raise Undecodable("no word")
        key, word = record.key or b"", record.value
        if word.startswith(b"-"):
            self._words.clear(key, WORDS_MAX, prefix=word[1:])
        else:
            self._words.put(key, word, (self._words.get(key, word) or 0) + 1)
        self._keys.put(key, 1, self._context.clock_ms + SILENT_MS)
        if word == b"poison":
            raise ZeroDivisionError("a bug in the application")

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        if key.startswith(b"unfinishable"):
            raise ZeroDivisionError("a bug in the application")
        words = self._words.items(key, 9)
        self._context.emit(VIEWS, key, b" ".join(b"%s:%d" % pair for pair in words))
        self._words.clear(key, WORDS_MAX)
        self._keys.delete(key)


def _answer(rows: Rows, key: bytes) -> bytes | None:
    return b" ".join(word for word, _ in rows.items(WORDS, key, 2, after=b"a")) or None


LOOKUP = Lookup("/words/{key}", lambda parts: (), _answer)
MAPPED = dataclasses.replace(
    APPLICATION,
    stores=(COUNTS, WORDS),
    start=Words,
    failure_rules=FailureRules(quarantine_failures=3),
    lookups=(LOOKUP,),
)


def pipe(driver: Driver, key: bytes, *words: bytes, at_ms: int = 1000) -> None:
    for word in words:
        driver.pipe(BEACONS, key, word, at_ms=at_ms)


def emitted(driver: Driver) -> list[tuple[bytes, bytes | None]]:
    return [(output.key, output.value) for output in driver.outputs(VIEWS)]


def test_entries_come_in_order_and_those_of_other_keys_stay(drive: Drive) -> None:
    driver = drive(MAPPED)
    pipe(driver, b"k", b"b", b"a", b"b", b"c1", b"c2", b"-c")
    pipe(driver, b"k\x00", b"x", at_ms=1050)
    assert driver.rows == {"counts": 2, "words": 3}
    driver.advance_to(1_149)
    assert emitted(driver) == [(b"k", b"a:1 b:2")]
    driver.advance_to(2_000)
    assert emitted(driver)[1:] == [(b"k\x00", b"x:1")]
    assert driver.rows == {"counts": 0, "words": 0}


def test_an_entry_costs_its_own_bytes(drive: Drive) -> None:
    driver = drive(MAPPED)
    pipe(driver, b"k", *(b"%d" % number for number in range(50)))
    assert max(len(row or b"") for key, row in driver.changelog if key[0] in {COUNTS.id, WORDS.id}) < 20


def test_a_lookup_scans_what_is_committed(drive: Drive) -> None:
    driver = drive(MAPPED)
    pipe(driver, b"k", b"d", b"c", b"b", b"a")
    assert driver.look(LOOKUP, b"k") == b"b c"
    assert driver.look(LOOKUP, b"other") is None
    core = Core(MAPPED, 0, MemoryStore())
    core.fold([Record(BEACONS.name, 0, 0, 1000, b"k", b"b")])
    core.cut()
    assert core.look(LOOKUP, b"k") is None


@pytest.mark.thorough
def test_a_quarantined_key_takes_its_entries_along_and_has_them_again_when_released(drive: Drive) -> None:
    driver = drive(MAPPED)
    pipe(driver, b"k", *(b"%04d" % number for number in range(1_500)))
    pipe(driver, b"kk", b"stays")
    pipe(driver, b"k", b"poison", b"poison", b"poison")
    assert driver.rows == {"counts": 1, "words": 1}
    assert driver.quarantined[b"k"].rows == 1_501
    pipe(driver, b"k", b"rejected")
    driver.release(b"k")
    assert driver.rows == {"counts": 2, "words": 1_501}
    pipe(driver, b"k", b"-0", b"-1", b"a")
    driver.advance_to(5_000)
    assert (b"k", b"a:1") in emitted(driver)


def test_a_row_that_is_rejected_takes_its_entries_along(drive: Drive) -> None:
    driver = drive(MAPPED)
    pipe(driver, b"unfinishable", b"a", b"b")
    pipe(driver, b"unfinishable+", b"c", at_ms=1_050)
    driver.advance_to(1_120)
    origins = [dict(output.headers)["origin"] for output in driver.outputs(REJECTED)]
    assert origins == [b"counting/0/store counts", b"counting/0/store words", b"counting/0/store words"]
    assert driver.rows == {"counts": 1, "words": 1}


@pytest.mark.thorough
def test_a_checkpoint_in_which_timers_fire_is_bounded_by_rows() -> None:
    core = Core(MAPPED, 0, MemoryStore())
    words = (b"%06d" % number for number in range(3 * FIRED_ROWS_MAX))
    core.fold(
        [Record(BEACONS.name, 0, offset, 1000, b"k%d" % (offset % 60), word) for offset, word in enumerate(words)]
    )
    core.cut()
    core.commit()
    largest = 0
    while not core.advance_to(5_000) or core.is_dirty:
        largest = max(largest, len(core.cut().changes))
        core.commit()
    assert core.rows == {"counts": 0, "words": 0}
    assert FIRED_ROWS_MAX <= largest < FIRED_ROWS_MAX + 1_002


def test_a_map_is_reached_as_what_it_is() -> None:
    def start(context: Context) -> Words:
        context.store(WORDS)
        return Words(context)

    with pytest.raises(ValueError, match="store words is a map"):
        Core(dataclasses.replace(MAPPED, start=start), 0, MemoryStore())
    with pytest.raises(ValueError, match="has not declared store words"):
        Core(dataclasses.replace(MAPPED, stores=(COUNTS,), start=Words), 0, MemoryStore())


def test_a_key_with_more_entries_than_are_looked_at_at_once_is_forgotten_whole(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "ROWS_PER_KEY_FOUND_MAX", 10)
    driver = drive(dataclasses.replace(MAPPED, is_forgetting=True))
    for key in (b"hers", b"another"):
        pipe(driver, key, *(b"%03d" % number for number in range(25)))
    driver.pipe(BEACONS, b"hers", None, at_ms=1001)
    assert driver.rows == {"counts": 1, "words": 25}
    driver.advance_to(5_000)
    assert [output.key for output in driver.outputs(VIEWS)] == [b"another"]
