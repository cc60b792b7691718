"""The cache of decoded rows keeps within its rows and its bytes, for rows of any size."""

import weakref

import pytest

from services.processor.engine.application.application import StoreSpec
from services.processor.engine.application.bound import BoundStore
from services.processor.engine.state.cache import Cache
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.local import LocalMeta, MemoryStore


class Row:
    """A decoded row that can be seen to be forgotten."""

    def __init__(self, data: bytes) -> None:
        self.data = data


ROWS = StoreSpec[Row](name="rows", id=1, encode=lambda row: row.data, decode=Row)
BYTES_MAX = 100_000


class Scene:
    """A cache over layers, and the decoded rows that anybody still holds."""

    def __init__(self, rows_max: int) -> None:
        self._local = MemoryStore()
        self._layers = Layers((ROWS,), self._local, Cache(rows_max=rows_max, bytes_max=BYTES_MAX))
        self.clock_ms = 0
        self._store = BoundStore(ROWS, self, self._layers)
        self._rows: list[weakref.ref[Row]] = []

    def put(self, key: bytes, size: int) -> None:
        row = Row(bytes(size))
        self._rows.append(weakref.ref(row))
        self._store.put(key, row)

    def get(self, key: bytes) -> None:
        self._rows.append(weakref.ref(self._store.get(key)))

    def commit(self) -> None:
        """Makes all of it durable, so that only the cache keeps rows decoded."""
        self._layers.cut()
        self._layers.commit()
        self._local.write(self._layers.begin_flush(), LocalMeta(None, 0))
        self._layers.end_flush()

    @property
    def kept(self) -> list[Row]:
        return [row for ref in self._rows if (row := ref()) is not None]


@pytest.mark.parametrize("size", [10, 1_000, 20_000, 300_000])
def test_it_keeps_within_its_bytes_and_its_rows(size: int) -> None:
    scene = Scene(rows_max=200)
    for number in range(500):
        scene.put(b"%d" % number, size)
        if number % 7 == 0:
            scene.commit()
    scene.commit()
    for number in range(500):
        scene.get(b"%d" % number)
        assert len(scene.kept) <= 200
        # Those that were kept when they grew are forgotten by and by.
        if number >= 200:
            assert len(scene.kept) <= 2 or sum(len(row.data) for row in scene.kept) <= BYTES_MAX


def test_rows_that_grow_while_they_are_kept_count_as_large_as_they_have_become() -> None:
    scene = Scene(rows_max=1_000)
    for _ in range(3):
        for number in range(20):
            scene.put(b"%d" % number, 10)
        scene.commit()
    for number in range(20):
        scene.put(b"%d" % number, 50_000)
    scene.commit()
    assert sum(len(row.data) for row in scene.kept) <= BYTES_MAX


def test_small_rows_are_kept() -> None:
    scene = Scene(rows_max=200)
    for number in range(90):
        scene.put(b"%d" % number, 10)
    scene.commit()
    assert len(scene.kept) == 90
