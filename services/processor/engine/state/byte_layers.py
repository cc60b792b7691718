"""ByteLayers: the layers of a core's rows that hold bytes, from the newest to the oldest. Keys are row keys.

sealed      rows changed since the last cut                dropped by an abort, kept by an undo
in flight   rows of the checkpoint being committed         dropped by an abort
committed   rows committed since the last flush began      in Kafka: never dropped, replayed after a crash
flushing    rows on their way into the local store
local       the local store
"""

import heapq
from collections.abc import Iterable, Mapping

from services.processor.engine.state.local import LocalStore
from services.processor.engine.state.rows import end_of

#: None is a tombstone.
RowBytes = dict[bytes, bytes | None]


class ByteLayers:
    """The rows of one core as they are stored."""

    def __init__(self, local: LocalStore) -> None:
        self._local = local
        self._sealed: RowBytes = {}
        self._in_flight: RowBytes = {}
        self._committed: RowBytes = {}
        #: Bytes of committed rows that only the memory and the changelog have.
        self.committed_bytes = 0
        self._flushing: RowBytes = {}

    # Reads.

    @property
    def sealed_rows(self) -> int:
        """Rows changed since the last cut, and sealed."""
        return len(self._sealed)

    def get(self, key: bytes) -> bytes | None:
        """The newest row of `key`."""
        if key in self._sealed:
            return self._sealed[key]
        return self._in_flight[key] if key in self._in_flight else self.committed(key)

    def committed(self, key: bytes) -> bytes | None:
        """The row of `key` as it is committed."""
        for layer in (self._committed, self._flushing):
            if key in layer:
                return layer[key]
        return self._local.get(key)

    def is_committed(self, key: bytes) -> bool:
        """Whether the newest row of `key` is committed."""
        return key not in self._sealed and key not in self._in_flight

    def is_unflushed(self, key: bytes) -> bool:
        """Whether a layer above the flush has the key."""
        return not self.is_committed(key) or key in self._committed

    def has(self, key: bytes) -> bool:
        """Whether any layer here has the key."""
        return self.is_unflushed(key) or key in self._flushing

    def committed_page(self, first: bytes, before: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first `limit` committed rows with `first` <= key < `before`, in order.

        Costs a look at each row that is committed and not yet in the local store.
        """
        layers = (self._flushing, self._committed)
        return self._paged(
            first, before, limit, {key: row for layer in layers for key, row in layer.items() if first <= key < before}
        )

    def committed_entries(
        self, first: bytes, before: bytes, limit: int, unflushed: Iterable[bytes]
    ) -> list[tuple[bytes, bytes]]:
        """As `committed_page`; `unflushed` are all keys there that the local store may not have as they are."""
        return self._paged(first, before, limit, {key: self.committed(key) for key in unflushed})

    def _paged(self, first: bytes, before: bytes, limit: int, newer: RowBytes) -> list[tuple[bytes, bytes]]:
        rows: RowBytes = self.local_page(first, before, limit, (row is not None for row in newer.values()))
        rows.update(newer)
        existing = heapq.nsmallest(limit, (key for key, row in rows.items() if row is not None))
        return [(key, rows[key] or b"") for key in existing]

    def local_page(self, first: bytes, before: bytes, limit: int, newer: Iterable[bool]) -> RowBytes:
        """The rows of the local store with `first` <= key < `before` from which the first `limit` can be taken.

        `newer`: of each row above the local store, whether it exists.
        """
        # Those above may delete so many of the local ones.
        gone = sum(not exists for exists in newer)
        return dict(self._local.page(first, before, limit + gone))

    def keys(self, prefix: bytes, limit: int, newer: Mapping[bytes, bool]) -> list[bytes]:
        """The first `limit` keys that begin with `prefix` of existing rows, in order. `newer`: whether rows above exist, by key.

        Costs a look at each row that is not yet in the local store.
        """
        layers = (self._sealed, self._in_flight, self._committed, self._flushing)
        known = {key: self.get(key) is not None for layer in layers for key in layer if key.startswith(prefix)}
        known |= newer
        found = self.local_page(prefix, end_of(prefix), limit, known.values())
        return heapq.nsmallest(limit, (key for key in found.keys() | known.keys() if known.get(key, True)))

    # The life of a checkpoint.

    def seal(self, rows: RowBytes) -> None:
        """An undo keeps these rows."""
        self._sealed |= rows

    def cut(self, rows: RowBytes) -> RowBytes:
        """Moves the sealed rows and `rows` in flight, and returns them."""
        self._in_flight = self._sealed | rows if self._sealed else rows
        self._sealed = {}
        return self._in_flight

    def commit(self) -> None:
        """The rows in flight are committed."""
        self._committed.update(self._in_flight)
        self.committed_bytes += sum(map(len, self._in_flight)) + sum(map(len, filter(None, self._in_flight.values())))
        self._in_flight = {}

    def abort(self) -> set[bytes]:
        """Drops every row since the last commit; returns their keys."""
        dropped = self._sealed.keys() | self._in_flight.keys()
        self._sealed, self._in_flight = {}, {}
        return dropped

    # The life of a flush.

    def begin_flush(self) -> RowBytes:
        """Freezes the committed rows that the local store lacks."""
        if self._flushing:
            raise RuntimeError("a flush is under way")
        self._flushing, self._committed, self.committed_bytes = self._committed, {}, 0
        return self._flushing

    def end_flush(self) -> RowBytes:
        """The local store has the frozen rows: these."""
        written, self._flushing = self._flushing, {}
        return written
