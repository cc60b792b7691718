"""LocalStore: a core's rows on this machine, which may be behind the changelog; and its implementation in memory.

It never holds uncommitted rows. Its rows may be ahead of its meta (a crash in the middle of a write): the replay of
the changelog from `changelog_offset` overwrites them. Its meta is never ahead of its rows.
"""

import bisect
import heapq
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from services.processor.engine.state.map_spec import MapSpec
from services.processor.engine.state.meta import Meta, decode_meta
from services.processor.engine.state.rows import NewerFormat, deadline_of, unpack
from services.processor.engine.state.store_spec import Row, StoreSpec

#: One entry of the index of timers: (deadline in ms, row key). It is a hint: the row's own deadline decides.
TimerEntry = tuple[int, bytes]


class StoreFailed(RuntimeError):
    """The local store could not be read or written: no fault of what is being folded, which must not be rejected for it."""


class StoreCorrupt(StoreFailed):
    """The store's files do not hold what was written. Delete them: the changelog has all rows."""


class StoreLocked(StoreFailed):
    """Another process, or a handle that is not closed yet, has the store's files."""


class StoreFull(StoreFailed):
    """The store's files cannot grow. It is behind, not wrong; but the slot cannot go on."""


class LocalMeta(msgspec.Struct, frozen=True, array_like=True):
    """The position of a local store: a core's meta, and the changelog offset after the commit it belongs to."""

    meta: Meta | None
    changelog_offset: int
    #: Broker time, ms since 1970, at which the store lacked nothing that the changelog had; 0: never known.
    current_ms: int = 0


class _StoredPosition(msgspec.Struct, frozen=True, array_like=True):
    """`LocalMeta` as bytes: its meta is looked into only once its format is known to be."""

    meta: msgspec.Raw
    changelog_offset: int
    current_ms: int = 0


_POSITION_DECODER: Final = msgspec.msgpack.Decoder(_StoredPosition)
_NOTHING: Final = msgspec.msgpack.encode(None)


def encode_position(position: LocalMeta) -> bytes:
    """The bytes of a position."""
    return msgspec.msgpack.encode(position)


def decode_position(data: bytes) -> LocalMeta:
    """The position in `data`. Raises `NewerFormat` when a newer version wrote it, `msgspec.MsgspecError` when it is not a
    position."""
    stored = _POSITION_DECODER.decode(data)
    meta = None if bytes(stored.meta) == _NOTHING else decode_meta(bytes(stored.meta))
    return LocalMeta(meta, stored.changelog_offset, stored.current_ms)


def first_after(position: LocalMeta | None) -> TimerEntry:
    """Where the index of timers begins to matter: everything before it has fired."""
    return (position.meta.clock_ms + 1 if position is not None and position.meta is not None else 0, b"")


class LocalStore(Protocol):
    """Rows by key, an index of their deadlines, and their position."""

    def get(self, key: bytes) -> bytes | None:
        """The row of `key`, or None."""
        ...

    def due(self, after: TimerEntry, until_ms: int, limit: int) -> list[TimerEntry]:
        """The first `limit` timer entries greater than `after` with a deadline up to `until_ms`, in order."""
        ...

    def page(self, first: bytes, before: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first `limit` rows with `first` <= row key < `before`, in the order of their keys."""
        ...

    def write(self, rows: Mapping[bytes, bytes | None], position: LocalMeta | None) -> None:
        """Writes rows (None deletes) with their timer entries, then, last, `position`, and makes all of it durable.

        Every existing row has its deadline after the position's clock, so timer entries up to that clock are dropped.
        """
        ...

    @property
    def is_rewrite_due(self) -> bool:
        """Whether it has kept what was deleted for as long as it may."""
        ...

    def rewrite(self) -> None:
        """Writes its files again without what was deleted. It may take minutes: nobody who waits for the store calls it."""
        ...

    def position(self) -> LocalMeta | None:
        """The store's position; None when it is new. Raises `NewerFormat` when a newer version wrote it."""
        ...

    def close(self) -> None:
        """Gives the store's files up. Nothing may be called after it."""
        ...


class StoredRows:
    """The `Rows` of a lookup in a local store alone. Raises `StoreFailed`; `NewerFormat` on what a newer version wrote."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def get(self, spec: StoreSpec[Row], key: bytes) -> Row | None:
        row = self._store.get(bytes([spec.id]) + key)
        return None if row is None else self._decoded(spec, row)

    def items(
        self,
        spec: MapSpec[Row],
        owner: bytes,
        limit: int,
        *,
        prefix: bytes = b"",
        after: bytes | None = None,
        before: bytes | None = None,
    ) -> list[tuple[bytes, Row]]:
        of_owner, first, end = spec.range_of(owner, prefix, after, before)
        return [(key[len(of_owner) :], self._decoded(spec, row)) for key, row in self._store.page(first, end, limit)]

    def _decoded(self, spec: StoreSpec[Row], row: bytes) -> Row:
        _, store_format, payload = unpack(row)
        if not spec.reads(store_format):
            raise NewerFormat(spec.newer_format(store_format))
        return (spec.decode if store_format == spec.format else spec.also_reads[store_format])(payload)


class MemoryStore:
    """The `LocalStore` of tests: sorted lists and dicts."""

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._timers: list[TimerEntry] = []
        self._position: bytes | None = None

    def get(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def due(self, after: TimerEntry, until_ms: int, limit: int) -> list[TimerEntry]:
        start = bisect.bisect_right(self._timers, after)
        found = self._timers[start : start + limit]
        return [entry for entry in found if entry[0] <= until_ms]

    def page(self, first: bytes, before: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        keys = heapq.nsmallest(limit, (key for key in self._rows if first <= key < before))
        return [(key, self._rows[key]) for key in keys]

    def write(self, rows: Mapping[bytes, bytes | None], position: LocalMeta | None) -> None:
        for key, row in rows.items():
            if row is None:
                self._rows.pop(key, None)
                continue
            self._rows[key] = row
            entry = (deadline_of(row), key)
            at = bisect.bisect_left(self._timers, entry)
            if entry[0] and self._timers[at : at + 1] != [entry]:
                self._timers.insert(at, entry)
        if position is not None:
            self._position = encode_position(position)
            del self._timers[: bisect.bisect_left(self._timers, first_after(position))]

    @property
    def is_rewrite_due(self) -> bool:
        """Never: what it deleted is gone."""
        return False

    def rewrite(self) -> None:
        """Nothing to write."""

    def position(self) -> LocalMeta | None:
        return None if self._position is None else decode_position(self._position)

    def close(self) -> None:
        """Nothing to release."""
