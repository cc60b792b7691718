"""Maps: keys never collide; scans see the newest rows of all layers, through cuts, commits, aborts, flushes and restarts."""

import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.engine.application.access import CommittedReading
from services.processor.engine.application.bound import BoundMap
from services.processor.engine.state.cache import Cache
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.local import LocalMeta, LocalStore, MemoryStore, StoredRows
from services.processor.engine.state.map_spec import MapSpec, owner_of
from services.processor.engine.state.meta import Meta
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.rocksdb_options import Memory

NUMBERS = MapSpec[int](name="numbers", id=3, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(int).decode)
#: Bytes near those that separate owner and entry.
near = st.lists(st.sampled_from([b"\x00", b"\x01", b"\xff", b"a"]), max_size=5).map(b"".join)
#: One begins with another, or with the bytes that end an owner.
PARTS = [b"", b"a", b"a\x00", b"a\x00\x00", b"a\x00\xff", b"\x00", b"\xff", b"\xff\xff"]
OWNERS = [b"a", b"a\x00", b"a\x00\x00"]
DEEDS = ("cut", "commit", "abort", "flush", "restart", "seal", "undo")
STEPS = 80

Pair = tuple[bytes, bytes]
Rows = dict[Pair, int]


@given(near, near, near, near)
def test_no_two_entries_have_one_key(owner: bytes, entry: bytes, other_owner: bytes, other_entry: bytes) -> None:
    key, other = NUMBERS.row_key(owner, entry), NUMBERS.row_key(other_owner, other_entry)
    assert (key == other) == ((owner, entry) == (other_owner, other_entry))
    assert NUMBERS.record_key_of(key[1:]) == owner
    assert key[len(owner_of(key)) :] == entry
    if owner == other_owner:
        assert (key < other) == (entry < other_entry)


@given(near, near, near, near)
def test_a_range_has_what_begins_with_the_prefix(owner: bytes, entry: bytes, prefix: bytes, after: bytes) -> None:
    key = NUMBERS.row_key(owner, entry)
    _, first, before = NUMBERS.range_of(owner, prefix)
    assert (first <= key < before) == entry.startswith(prefix)
    _, first, before = NUMBERS.range_of(owner, prefix, after)
    assert (first <= key < before) == (entry.startswith(prefix) and entry > after)


@given(near, near, near, near, near)
def test_a_range_ends_before_an_entry(owner: bytes, entry: bytes, prefix: bytes, after: bytes, end: bytes) -> None:
    key = NUMBERS.row_key(owner, entry)
    _, first, before = NUMBERS.range_of(owner, prefix, after, end)
    assert (first <= key < before) == (entry.startswith(prefix) and after < entry < end)
    assert first <= before


class Story:
    """A map over a local store, beside a model of it."""

    def __init__(self, rng: random.Random, opened: Callable[[], LocalStore]) -> None:
        self._rng = rng
        self._opened = opened
        self._local = opened()
        self.now: Rows = {}
        self._sealed: Rows = {}
        self._in_flight: Rows | None = None
        self._committed: Rows = {}
        #: Changes of commits that the local store lacks.
        self._changelog: list[dict[bytes, bytes | None]] = []
        self._cut: dict[bytes, bytes | None] = {}
        self._begin()

    def _begin(self) -> None:
        cache = Cache(rows_max=self._rng.choice([2, 100]), bytes_max=self._rng.choice([1, 40, 10_000]))
        self._layers = Layers((NUMBERS,), self._local, cache)
        self._layers.counts[NUMBERS.id] = len(self._committed)
        self._layers.seal()
        self.map = BoundMap(NUMBERS, self._layers)
        self.now, self._sealed, self._in_flight = dict(self._committed), dict(self._committed), None

    def change(self, number: int) -> None:
        owner, entry = self._rng.choice(OWNERS), self._rng.choice(PARTS)
        match self._rng.choice(["put", "put", "put", "delete", "clear"]):
            case "put":
                self.map.put(owner, entry, number)
                self.now[owner, entry] = number
            case "delete":
                self.map.delete(owner, entry)
                self.now.pop((owner, entry), None)
            case "clear":
                limit, prefix = self._rng.choice([0, 1, 99]), self._rng.choice([b"", entry])
                gone = [(owner, one) for one, _ in wanted(self.now, owner, limit, prefix, None)]
                assert self.map.clear(owner, limit, prefix=prefix) == len(gone)
                for pair in gone:
                    del self.now[pair]

    def look(self) -> None:
        owner, limit = self._rng.choice(OWNERS), self._rng.choice([0, 1, 2, 99])
        prefix, after = self._rng.choice([b"", b"", b"a"]), self._rng.choice([None, *PARTS])
        found = self.map.items(owner, limit, prefix=prefix, after=after)
        assert found == wanted(self.now, owner, limit, prefix, after)
        committed = CommittedReading(self._layers).items(NUMBERS, owner, limit, prefix=prefix, after=after)
        assert committed == wanted(self._committed, owner, limit, prefix, after)
        assert self.map.get(owner, b"a") == self.now.get((owner, b"a"))
        assert self._layers.counts[NUMBERS.id] == len(self.now)

    def carry_out(self, deed: str) -> None:
        layers = self._layers
        match deed:
            case "cut" if self._in_flight is None:
                self._cut = layers.cut()
                layers.seal()
                self._in_flight, self._sealed = dict(self.now), dict(self.now)
            case "commit" if self._in_flight is not None:
                layers.commit()
                self._changelog.append(self._cut)
                self._committed, self._in_flight = self._in_flight, None
            case "abort":
                layers.abort()
                layers.counts[NUMBERS.id] = len(self._committed)
                layers.seal()
                self.now, self._sealed, self._in_flight = dict(self._committed), dict(self._committed), None
            case "flush":
                rows = layers.begin_flush()
                if self._rng.random() < 0.5:
                    self.change(-1)
                    self.look()
                self._local.write(rows, LocalMeta(Meta({}, 0, 1), 1))
                self.look()
                layers.end_flush()
                self._changelog = []
                stored = StoredRows(self._local)
                assert stored.items(NUMBERS, b"a", 9) == wanted(self._committed, b"a", 9, b"", None)
            case "restart":
                self._local.close()
                if not isinstance(self._local, MemoryStore):
                    self._local = self._opened()
                for changes in self._changelog:
                    self._local.write(changes, None)
                self._begin()
            case "seal":
                layers.seal()
                self._sealed = dict(self.now)
            case "undo":
                layers.undo()
                self.now = dict(self._sealed)

    def end(self) -> None:
        """Once all is flushed, nothing is remembered of any entry."""
        for deed in ("abort", "flush"):
            self.carry_out(deed)
        assert self._layers._unflushed._keys.keys() <= {owner_of(key) for key in self._layers._open}
        self._local.close()


def wanted(rows: Rows, owner: bytes, limit: int, prefix: bytes, after: bytes | None) -> list[tuple[bytes, int]]:
    found = sorted(
        (entry, row)
        for (of, entry), row in rows.items()
        if of == owner and entry.startswith(prefix) and (after is None or entry > after)
    )
    return found[:limit]


@pytest.mark.thorough
def test_a_scan_sees_what_was_last_put() -> None:
    for seed in range(200):
        _play(random.Random(seed), MemoryStore)


@pytest.mark.thorough
def test_a_scan_over_rocksdb_sees_what_was_last_put(tmp_path: Path) -> None:
    memory = Memory(block_cache_bytes=4 << 20, write_buffer_bytes=8 << 20)
    for seed in range(12):
        path = tmp_path / str(seed)

        def opened(path: Path = path) -> LocalStore:
            return RocksStore(path, memory, open_seconds_max=5)

        _play(random.Random(seed), opened)


def _play(rng: random.Random, opened: Callable[[], LocalStore]) -> None:
    story = Story(rng, opened)
    for number in range(STEPS):
        if rng.random() < 0.3:
            story.carry_out(rng.choice(DEEDS))
        else:
            story.change(number)
        story.look()
    story.end()


def test_what_changes_after_a_scan_does_not_change_its_list() -> None:
    layers = Layers((NUMBERS,), MemoryStore(), Cache(rows_max=10, bytes_max=1_000))
    numbers = BoundMap(NUMBERS, layers)
    for number in range(5):
        numbers.put(b"a", bytes([number]), number)
    for entry, number in numbers.items(b"a", 9):
        numbers.delete(b"a", entry)
        numbers.put(b"a", entry + b"x", number)
    assert numbers.items(b"a", 9) == [(bytes([number]) + b"x", number) for number in range(5)]
    assert (numbers.clear(b"a", 3), numbers.clear(b"a", 3), numbers.clear(b"a", 3)) == (3, 2, 0)
