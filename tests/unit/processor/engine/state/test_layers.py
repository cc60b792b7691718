"""In any order of reads, changes, cuts, commits, aborts and flushes a row is what was last put; with a small cache."""

import random

import msgspec

from services.processor.engine.application.bound import BoundStore
from services.processor.engine.state.cache import Cache
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.local import LocalMeta, MemoryStore
from services.processor.engine.state.rows import unpack
from tests.unit.processor.engine.counting import COUNTS

#: So many decoded rows are kept, of more keys.
CACHE_ROWS_MAX = 2
KEYS = [bytes([number]) for number in range(6)]
DEEDS = ("cut", "commit", "abort", "flush")
STORIES = 300
STEPS = 60


class Clock:
    clock_ms = 0


class Model:
    """What the rows must be: as they are now, in flight, committed."""

    def __init__(self) -> None:
        self.now: dict[bytes, int] = {}
        self.in_flight: dict[bytes, int] | None = None
        self.committed: dict[bytes, int] = {}


def test_a_row_is_what_was_last_put() -> None:
    for seed in range(STORIES):
        _play(random.Random(seed))


def _play(rng: random.Random) -> None:
    local = MemoryStore()
    layers = Layers((COUNTS,), local, Cache(rows_max=CACHE_ROWS_MAX, bytes_max=rng.choice([1, 40, 1_000])))
    store = BoundStore(COUNTS, Clock(), layers)
    model = Model()
    for number in range(1, STEPS):
        if rng.random() < 0.3:
            _carry_out(rng.choice(DEEDS), layers, local, model)
            continue
        key = rng.choice(KEYS)
        assert store.get(key) == model.now.get(key)
        if rng.random() < 0.5:
            store.put(key, number)
            model.now[key] = number
        elif rng.random() < 0.3:
            store.delete(key)
            model.now.pop(key, None)
    assert {key: store.get(key) for key in KEYS if store.get(key) is not None} == model.now
    assert layers.counts[COUNTS.id] == len(model.now)


def _carry_out(deed: str, layers: Layers, local: MemoryStore, model: Model) -> None:
    if deed == "cut" and model.in_flight is None:
        before = model.committed
        rows = layers.cut()
        changed = {key for key in KEYS if before.get(key) != model.now.get(key)}
        assert changed <= {key[1:] for key in rows}
        for key, row in rows.items():
            assert (None if row is None else msgspec.msgpack.decode(unpack(row)[2])) == model.now.get(key[1:])
        model.in_flight = dict(model.now)
    elif deed == "commit" and model.in_flight is not None:
        layers.commit()
        model.committed, model.in_flight = model.in_flight, None
    elif deed == "abort":
        layers.abort()
        # The core sets them back to what its meta says.
        layers.counts[COUNTS.id] = len(model.committed)
        model.now, model.in_flight = dict(model.committed), None
    elif deed == "flush":
        local.write(layers.begin_flush(), LocalMeta(None, 0))
        layers.end_flush()


def test_the_local_store_is_asked_once_for_a_new_row() -> None:
    class Counted(MemoryStore):
        asked = 0

        def get(self, key: bytes) -> bytes | None:
            self.asked += 1
            return super().get(key)

    local = Counted()
    store = BoundStore(COUNTS, Clock(), Layers((COUNTS,), local, Cache(rows_max=10, bytes_max=1_000)))
    for key in KEYS:
        store.put(key, (store.get(key) or 0) + 1)
    assert local.asked == len(KEYS)


def test_a_row_that_an_abort_brings_back_is_found_after_a_miss() -> None:
    cache = Cache(rows_max=10, bytes_max=1_000)
    layers = Layers((COUNTS,), MemoryStore(), cache)
    store = BoundStore(COUNTS, Clock(), layers)
    store.put(b"a", 1)
    layers.cut()
    layers.commit()
    store.delete(b"a")
    layers.cut()
    cache.clear()
    assert store.get(b"a") is None
    layers.abort()
    assert store.get(b"a") == 1
