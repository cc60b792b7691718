"""Layers: a core's rows from the newest to the oldest, so that the local store never sees an uncommitted one.

    open        rows changed since the last cut, decoded; dropped by an abort
    below       rows as bytes (`state.byte_layers`)

A cache of decoded rows is above all of them (`state.cache`). Timers are the deadlines of rows. `state.timers` says which rows to
check; an entry that its row does not confirm has no effect.

While the application fails, the core seals after every record and row, so that the next failure is undone alone (`undo`).
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from services.processor.engine.state.byte_layers import ByteLayers, RowBytes
from services.processor.engine.state.cache import Cache, Entry
from services.processor.engine.state.failures import RowUnstorable
from services.processor.engine.state.local import LocalStore
from services.processor.engine.state.map_spec import EntryRange
from services.processor.engine.state.rows import NewerFormat, deadline_of, envelope, unpack, word
from services.processor.engine.state.store_spec import StoreSpec
from services.processor.engine.state.timers import Timers
from services.processor.engine.state.unflushed import UnflushedEntries


class Layers:
    """All rows of one core. Keys here are row keys: store id, then the application's key."""

    def __init__(self, specs: tuple[StoreSpec[Any], ...], local: LocalStore, cache: Cache) -> None:
        self._specs = {spec.id: spec for spec in specs}
        self._decoders: dict[int, dict[int, Callable[[bytes], Any]]] = {
            spec.id: {**spec.also_reads, spec.format: spec.decode} for spec in specs
        }
        self._encoders = {spec.id: (spec.encode, spec.row_bytes_max, envelope(spec.format)) for spec in specs}
        self._stored = ByteLayers(local)
        self._open: dict[bytes, Entry] = {}
        self._open_bytes = 0
        self._sealed_bytes = 0
        self._sealed_counts: dict[int, int] = {}
        #: Of a row in the open layer it has the same entry, or none.
        self._cache = cache
        #: The key that was looked for last without a row: a new row is looked for by a get, and then by a put.
        self._missed: bytes | None = None
        self.young = cache.young
        self._timers = Timers(local)
        #: No timer is due before the time that it returns, ms since 1970. Asked with every record: no call in between.
        self.next_due_ms = self._timers.next_due_ms
        self._unflushed = UnflushedEntries(specs)
        #: Number of existing rows, by store id; the core keeps it with each checkpoint.
        self.counts: dict[int, int] = dict.fromkeys(self._specs, 0)

    # Rows.

    def entry(self, key: bytes) -> Entry | None:
        """The row of `key` as it is now, or None."""
        entry = self.young.get(key) or self._found(key)
        return entry if entry is not None and entry.row is not None else None

    def uncached_row(self, key: bytes) -> Any:
        """The row of `key` as it is now, decoded, or None; for one that `young` does not have."""
        entry = self._found(key)
        return None if entry is None else entry.row

    def _found(self, key: bytes) -> Entry | None:
        """The entry of `key`, deleted or not, where the newer part of the cache does not have it."""
        if key == self._missed:
            return None
        entry = self._kept(key) or self._read(key)
        if entry is None:
            self._missed = key
        else:
            self._cache.remember(key, entry)
        return entry

    def committed_row(self, key: bytes) -> Any:
        """The row of `key` as it is committed, decoded, or None. Leaves the cache as it is."""
        if key not in self._open and self._stored.is_committed(key):
            entry = self._kept(key) or self._read(key)
            return None if entry is None else entry.row
        row = self._stored.committed(key)
        return None if row is None else self._decoded(key, row).row

    def committed_page(self, store_id: int, after: bytes, limit: int) -> list[tuple[bytes, Any]]:
        """The first `limit` committed rows of a store with an application's key greater than `after`, by row key.

        Costs a look at each row that is committed and not yet in the local store.
        """
        # The least key that is greater.
        first, before = bytes([store_id]) + after + b"\x00", bytes([store_id + 1])
        return [(key, self._decoded(key, row).row) for key, row in self._stored.committed_page(first, before, limit)]

    def committed_entries(self, entries: EntryRange, limit: int) -> list[tuple[bytes, Any]]:
        """The first `limit` committed rows of a range, by row key."""
        found = self._stored.committed_entries(entries.first, entries.before, limit, self._unflushed.within(entries))
        return [(key, self._decoded(key, row).row) for key, row in found]

    def entries(self, entries: EntryRange, limit: int) -> list[tuple[bytes, Any]]:
        """The first `limit` rows of a range as they are now, by row key."""
        return [(key, self._scanned(key, row)) for key, row in self._scan(entries, limit)]

    def _scan(self, entries: EntryRange, limit: int) -> list[tuple[bytes, bytes | None]]:
        """The first `limit` keys of a range of rows that exist now; with the row where it is the local store's."""
        newer = {key: self.stands(key) for key in self._unflushed.within(entries)}
        found = self._stored.local_page(entries.first, entries.before, limit, newer.values())
        keys = heapq.nsmallest(limit, (key for key in found.keys() | newer.keys() if newer.get(key, True)))
        return [(key, None if key in newer else found[key]) for key in keys]

    def _scanned(self, key: bytes, row: bytes | None) -> Any:
        entry = self.young.get(key)
        if entry is None:
            entry = self._kept(key) or (self._read(key) if row is None else self._decoded(key, row))
            assert entry is not None
            self._cache.remember(key, entry)
        return entry.row

    def clear(self, entries: EntryRange, limit: int) -> int:
        """Deletes the first `limit` rows of a range; returns how many these were."""
        found = self._scan(entries, limit)
        for key, _ in found:
            self.counts[key[0]] -= 1
            self._bury(key)
        return len(found)

    def keys(self, prefix: bytes, limit: int) -> list[bytes]:
        """The first `limit` keys that begin with `prefix` of rows that exist now, in order.

        Costs a look at each row that is not yet in the local store.
        """
        newer = {key: entry.row is not None for key, entry in self._open.items() if key.startswith(prefix)}
        return self._stored.keys(prefix, limit, newer)

    def put(self, key: bytes, row: Any, deadline_ms: int, *, keeps_earlier: bool = False) -> None:
        """Sets the row of `key` and its deadline (ms since 1970; 0: no timer).

        With `keeps_earlier` an earlier deadline that is set stays.
        """
        entry = self.young.get(key) or self._found(key)
        if entry is None:
            entry = Entry(None, 0)
            self._cache.remember(key, entry)
            self._missed = None
        if not entry.is_open:
            entry.is_open = True
            self._open[key] = entry
            self._open_bytes += len(key) + entry.stored_bytes
            if key[0] in self._unflushed.ids:
                self._unflushed.add(key)
        if entry.row is None:
            self.counts[key[0]] += 1
        entry.row = row
        armed_ms = entry.deadline_ms
        if deadline_ms != armed_ms and not (keeps_earlier and 0 < armed_ms < deadline_ms):
            entry.deadline_ms = deadline_ms
            if deadline_ms:
                self._timers.set(key, deadline_ms)

    def delete(self, key: bytes) -> None:
        """Deletes the row of `key`, and its timer with it."""
        entry = self.entry(key)
        if entry is None:
            return
        self.counts[key[0]] -= 1
        self._bury(key)

    def _bury(self, key: bytes) -> None:
        # A new entry: the cached one may still be in a caller's hand.
        gone = Entry(None, 0)
        gone.is_open = True
        self._open[key] = gone
        self._open_bytes += len(key)
        if key[0] in self._unflushed.ids:
            self._unflushed.add(key)
        self._cache.remember(key, gone)

    def discard(self, key: bytes) -> bytes:
        """Deletes a row that exists, whether it can be decoded or not; returns its bytes with its deadline.

        Raises `RowUnstorable` for a changed one that cannot be stored.
        """
        entry = self._open.get(key)
        row = self._stored.get(key) if entry is None else self._as_bytes([(key, entry)])[key]
        self.counts[key[0]] -= 1
        self._bury(key)
        return row or b""

    def restore(self, key: bytes, row: bytes, after_ms: int) -> None:
        """Puts back a row that `discard` returned; its deadline, if it has one, is after `after_ms`. Raises as its decoder does."""
        entry = self._decoded(key, row)
        self.put(key, entry.row, max(entry.deadline_ms, after_ms + 1) if entry.deadline_ms else 0)

    def stands(self, key: bytes) -> bool:
        """Whether there is a row of `key`; asks without decoding it."""
        entry = self._kept(key)
        return self._stored.get(key) is not None if entry is None else entry.row is not None

    def _kept(self, key: bytes) -> Entry | None:
        return self._open.get(key) or self._cache.get(key)

    def _read(self, key: bytes) -> Entry | None:
        row = self._stored.get(key)
        return None if row is None else self._decoded(key, row)

    def _decoded(self, key: bytes, row: bytes) -> Entry:
        deadline_ms, store_format, payload = unpack(row)
        decode = self._decoders[key[0]].get(store_format)
        if decode is None:
            raise NewerFormat(self._specs[key[0]].newer_format(store_format))
        return Entry(decode(payload), deadline_ms, len(row))

    # Timers.

    def waiting_timers(self, clock_ms: int) -> int:
        """Timers due by `clock_ms` that have not fired, as far as they are known in memory."""
        return self._timers.waiting(clock_ms)

    def due(self, clock_ms: int, limit: int) -> Iterator[tuple[bytes, int]]:
        """Takes up to `limit` due rows as (key, deadline), by deadline; each must be given another deadline, or deleted.

        A row is not decoded here: the caller that fires it handles a row that cannot be decoded.
        """
        found = self._timers.take_due(clock_ms, limit)
        while limit > 0 and (first := next(found, None)) is not None:
            deadline_ms, key = first
            if self._is_due(key, deadline_ms):
                limit -= 1
                yield key, deadline_ms

    def _is_due(self, key: bytes, deadline_ms: int) -> bool:
        entry = self._kept(key)
        if entry is not None:
            return entry.row is not None and entry.deadline_ms == deadline_ms
        row = self._stored.get(key)
        return row is not None and deadline_of(row) == deadline_ms

    # The life of a checkpoint.

    @property
    def dirty_rows(self) -> int:
        """Rows changed since the last cut."""
        return len(self._open) + self._stored.sealed_rows

    @property
    def dirty_bytes(self) -> int:
        """Bytes of these rows when they were last stored; what they grew by since is not in it."""
        return self._open_bytes

    @property
    def committed_bytes(self) -> int:
        """Bytes of committed rows that only the memory and the changelog have."""
        return self._stored.committed_bytes

    def cut(self) -> RowBytes:
        """Moves the open rows in flight and returns them as bytes; None is a tombstone.

        Raises `RowUnstorable`, and moves nothing, when one of them cannot be stored.
        """
        rows = self._as_bytes(self._open.items())
        for entry in self._open.values():
            entry.is_open = False
        self._open, self._open_bytes = {}, 0
        return self._stored.cut(rows)

    def seal(self) -> None:
        """An `undo` keeps what has changed until now. Raises `RowUnstorable`, and seals nothing, when a row cannot be stored."""
        self._stored.seal(self._as_bytes(self._open.items()))
        for entry in self._open.values():
            entry.is_open = False
        self._open = {}
        self._sealed_bytes, self._sealed_counts = self._open_bytes, dict(self.counts)

    def undo(self) -> None:
        """Drops every change of a row since the last `seal`; timers that were taken meanwhile are back."""
        touched = self._open.keys()
        self._open, self._open_bytes = {}, self._sealed_bytes
        self.counts.update(self._sealed_counts)
        # The whole cache: what failed may have changed a row that it never put.
        self._cache.clear()
        self._forget(touched)

    def _forget(self, dropped: Collection[bytes]) -> None:
        """Changes of these rows are dropped."""
        self._missed = None
        for key in dropped:
            self.rearm(key)
        self._unflushed.remove([key for key in dropped if not self._stored.has(key)])

    def _as_bytes(self, entries: Iterable[tuple[bytes, Entry]]) -> RowBytes:
        rows: RowBytes = {}
        encoders = self._encoders
        grown_bytes = 0
        for key, entry in entries:
            row = entry.row
            if row is None:
                rows[key] = None
                continue
            encode, payload_bytes_max, of_store = encoders[key[0]]
            try:
                payload = encode(row)
                rows[key] = packed = word(entry.deadline_ms, of_store) + payload
            except Exception as error:
                # The application's row or deadline is at fault. The error names the row, so that it can be rejected.
                raise self._unstorable(key, f"{type(error).__name__}: {error}") from error
            if len(payload) > payload_bytes_max:
                raise self._unstorable(key, f"{len(payload)} bytes; at most {payload_bytes_max} can be stored")
            grown_bytes += len(packed) - entry.stored_bytes
            entry.stored_bytes = len(packed)
        self._cache.grow(grown_bytes)
        return rows

    def _unstorable(self, key: bytes, why: str) -> RowUnstorable:
        return RowUnstorable(self._specs[key[0]].name, key, why)

    def commit(self) -> None:
        """The rows in flight are committed."""
        self._stored.commit()

    def abort(self) -> None:
        """Drops every row since the last commit; reads go back to what is committed, and so do timers."""
        touched = self._open.keys() | self._stored.abort()
        self._open, self._open_bytes = {}, 0
        # The whole cache: a fold that raised may have changed a row that it never put.
        self._cache.clear()
        self._forget(touched)

    def rearm(self, key: bytes) -> None:
        """Puts the timer of the row of `key`, as it is committed, back among those to come."""
        row = self._stored.get(key)
        deadline_ms = 0 if row is None else deadline_of(row)
        if deadline_ms:
            self._timers.put_back(key, deadline_ms)

    # The life of a flush.

    def begin_flush(self) -> RowBytes:
        """Freezes the committed rows that the local store lacks."""
        return self._stored.begin_flush()

    def end_flush(self) -> None:
        """The local store has the frozen rows."""
        written = self._stored.end_flush()
        written_ms = [deadline_of(row) for row in written.values() if row is not None]
        self._timers.end_flush(written_ms, lambda key, due_ms: self._is_newer(key) and self._is_due(key, due_ms))
        self._unflushed.remove([key for key in written if not self._is_newer(key)])

    def _is_newer(self, key: bytes) -> bool:
        """Whether the local store does not have the row as it is."""
        return key in self._open or self._stored.is_unflushed(key)
