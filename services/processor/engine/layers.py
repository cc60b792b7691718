"""Layers: a core's rows from the newest to the oldest, so that the local store never sees an uncommitted one.

    open        rows changed since the last cut, decoded          dropped by an abort
    in flight   bytes of the checkpoint being committed           dropped by an abort
    committed   bytes committed since the last flush began        in Kafka: never dropped, replayed after a crash
    flushing    bytes on their way into the local store
    local       the local store

A cache of decoded rows lies over all of them. Timers live in the rows (their deadline): the heap here and the index of
the local store only say where to look, and an entry that its row does not confirm is nothing.
"""

import heapq
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final

from services.processor.engine.application import StoreSpec
from services.processor.engine.failures import FireFailed, RowRefused
from services.processor.engine.local import LocalStore, TimerEntry, first_after
from services.processor.engine.rows import NewerFormat, deadline_of, envelope, unpack, word

NEVER_MS: Final = 1 << 62


class Entry:
    """One decoded row; `row` is None once deleted, `deadline_ms` 0 without a timer.

    `stored_bytes` is its size when it was last bytes: 0 for a row that never was. `is_open`: it is in the open layer.
    """

    __slots__ = ("deadline_ms", "is_open", "row", "stored_bytes")

    def __init__(self, row: Any, deadline_ms: int, stored_bytes: int = 0) -> None:
        self.row = row
        self.deadline_ms = deadline_ms
        self.stored_bytes = stored_bytes
        self.is_open = False


_Rows = dict[bytes, bytes | None]


class Layers:
    """All rows of one core. Keys here are row keys: store id, then the application's key."""

    def __init__(self, specs: tuple[StoreSpec[Any], ...], local: LocalStore, *, cache_rows_max: int) -> None:
        self._specs = {spec.id: spec for spec in specs}
        self._decoders: dict[int, dict[int, Callable[[bytes], Any]]] = {
            spec.id: {**spec.also_reads, spec.format: spec.decode} for spec in specs
        }
        self._encoders = {spec.id: (spec.encode, spec.row_bytes_max, envelope(spec.format)) for spec in specs}
        self._local = local
        self._cache_rows_max = cache_rows_max
        self._open: dict[bytes, Entry] = {}
        self._open_bytes = 0
        #: The cache; its newer part is always this very dict. Of a row in the open layer it has the same entry, or none.
        self.young: dict[bytes, Entry] = {}
        self._old: dict[bytes, Entry] = {}
        self._in_flight: _Rows = {}
        self._committed: _Rows = {}
        self._committed_bytes = 0
        self._flushing: _Rows = {}
        #: (deadline, key, whether it came from the local store's index).
        self._heap: list[tuple[int, bytes, bool]] = []
        #: Up to where the local store's index was read into the heap. Before its position's clock all has fired.
        self._scanned: TimerEntry = first_after(local.position())
        #: Rows that stand, by store id; the core keeps it with each checkpoint.
        self.counts: dict[int, int] = dict.fromkeys(self._specs, 0)
        self._local_next_ms = self._peek_local()

    def limit_cache(self, rows_max: int) -> None:
        """From now on the cache keeps up to this many decoded rows."""
        self._cache_rows_max = rows_max

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
        entry = self._kept(key) or self._read(key)
        if entry is not None:
            self._remember(key, entry)
        return entry

    def look(self, key: bytes) -> tuple[Entry | None, bool]:
        """The row of `key` as it is now, or None, and whether that is committed. Leaves the cache as it is."""
        is_committed = key not in self._open and key not in self._in_flight
        entry = self._kept(key) or self._read(key)
        return (entry if entry is not None and entry.row is not None else None), is_committed

    def committed_row(self, key: bytes) -> Any:
        """The row of `key` as it is committed, decoded, or None. Leaves the cache as it is."""
        if key not in self._open and key not in self._in_flight:
            entry, _ = self.look(key)
            return None if entry is None else entry.row
        row = self._committed_as_bytes(key)
        return None if row is None else self._decoded(key, row).row

    def committed_page(self, store_id: int, after: bytes, limit: int) -> list[tuple[bytes, Any]]:
        """The first `limit` committed rows of a store with an application's key greater than `after`, by row key.

        Costs a look at each row that is committed and not yet in the local store.
        """
        start, end = bytes([store_id]) + after, bytes([store_id + 1])
        newer = {
            key: row for layer in (self._flushing, self._committed) for key, row in layer.items() if start < key < end
        }
        gone = sum(row is None for row in newer.values())
        # So many more that `limit` of them stand: beyond the last of these nothing is wanted.
        rows: _Rows = dict(self._local.page(start, end, limit + gone))
        rows.update(newer)
        standing = heapq.nsmallest(limit, (key for key, row in rows.items() if row is not None))
        return [(key, self._decoded(key, rows[key] or b"").row) for key in standing]

    def put(self, key: bytes, row: Any, deadline_ms: int) -> None:
        """Sets the row of `key` and its deadline (ms since 1970; 0: no timer)."""
        entry = self.young.get(key) or self._found(key)
        if entry is None:
            entry = Entry(None, 0)
            self._remember(key, entry)
        if not entry.is_open:
            entry.is_open = True
            self._open[key] = entry
            self._open_bytes += len(key) + entry.stored_bytes
        if entry.row is None:
            self.counts[key[0]] += 1
        entry.row = row
        if deadline_ms != entry.deadline_ms:
            entry.deadline_ms = deadline_ms
            if deadline_ms:
                heapq.heappush(self._heap, (deadline_ms, key, False))

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
        self._remember(key, gone)

    def discard(self, key: bytes) -> bytes:
        """Deletes a row that stands, whether it can be decoded or not; returns what the application stored.

        Raises `RowRefused` for a changed one that cannot be stored.
        """
        entry = self._open.get(key)
        row = self._bytes(key) if entry is None else self._as_bytes([(key, entry)])[key]
        self.counts[key[0]] -= 1
        self._bury(key)
        return b"" if row is None else unpack(row)[2]

    def stands(self, key: bytes) -> bool:
        """Whether there is a row of `key`; asks without decoding it."""
        entry = self._kept(key)
        return self._bytes(key) is not None if entry is None else entry.row is not None

    def _kept(self, key: bytes) -> Entry | None:
        return self._open.get(key) or self.young.get(key) or self._old.get(key)

    def _bytes(self, key: bytes) -> bytes | None:
        return self._in_flight[key] if key in self._in_flight else self._committed_as_bytes(key)

    def _committed_as_bytes(self, key: bytes) -> bytes | None:
        for layer in (self._committed, self._flushing):
            if key in layer:
                return layer[key]
        return self._local.get(key)

    def _read(self, key: bytes) -> Entry | None:
        row = self._bytes(key)
        return None if row is None else self._decoded(key, row)

    def _decoded(self, key: bytes, row: bytes) -> Entry:
        deadline_ms, store_format, payload = unpack(row)
        decode = self._decoders[key[0]].get(store_format)
        if decode is None:
            raise NewerFormat(self._specs[key[0]].refusal(store_format))
        return Entry(decode(payload), deadline_ms, len(row))

    def _remember(self, key: bytes, entry: Entry) -> None:
        self.young[key] = entry
        if len(self.young) * 2 > self._cache_rows_max:
            # Two generations: what was not asked for during one of them is forgotten, at no cost per read.
            self._old = dict(self.young)
            self.young.clear()

    # Timers.

    def next_due_ms(self) -> int:
        """No timer is due before this time, ms since 1970."""
        first = self._heap[0][0] if self._heap else NEVER_MS
        return min(first, self._local_next_ms)

    def waiting_timers(self, clock_ms: int) -> int:
        """Timers due by `clock_ms` that have not fired, as far as they are known in memory."""
        if self.next_due_ms() > clock_ms:
            return 0
        return sum(deadline_ms <= clock_ms for deadline_ms, _, _ in self._heap)

    def due(self, clock_ms: int, limit: int, undecoded: Container[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
        """Takes up to `limit` due rows as (key, deadline), by deadline; each must be given another deadline, or deleted.

        Those among `undecoded` are not looked into. Raises `FireFailed` for a row that cannot be decoded.
        """
        while limit > 0 and self.next_due_ms() <= clock_ms:
            if self._local_next_ms <= clock_ms:
                self._scan_local(clock_ms, limit)
            if not self._heap or self._heap[0][0] > clock_ms:
                continue
            deadline_ms, key, _ = heapq.heappop(self._heap)
            if self._is_due(key, deadline_ms, (key, deadline_ms) not in undecoded):
                limit -= 1
                yield key, deadline_ms

    def _is_due(self, key: bytes, deadline_ms: int, is_to_be_decoded: bool) -> bool:
        entry = self._kept(key)
        if entry is not None:
            return entry.row is not None and entry.deadline_ms == deadline_ms
        row = self._bytes(key)
        if row is None or deadline_of(row) != deadline_ms:
            return False
        if is_to_be_decoded:
            try:
                self._remember(key, self._decoded(key, row))
            except NewerFormat:
                raise
            except Exception as error:
                raise FireFailed(self._specs[key[0]].name, key, deadline_ms, error) from error
        return True

    def _scan_local(self, clock_ms: int, limit: int) -> None:
        found = self._local.due(self._scanned, clock_ms, limit)
        for deadline_ms, key in found:
            heapq.heappush(self._heap, (deadline_ms, key, True))
        if found:
            self._scanned = found[-1]
        self._local_next_ms = self._peek_local()

    def _peek_local(self) -> int:
        first = self._local.due(self._scanned, NEVER_MS, 1)
        return first[0][0] if first else NEVER_MS

    # The life of a checkpoint.

    @property
    def dirty_rows(self) -> int:
        """Rows changed since the last cut."""
        return len(self._open)

    @property
    def dirty_bytes(self) -> int:
        """Bytes of these rows when they were last stored; what they grew by since is not in it."""
        return self._open_bytes

    @property
    def committed_bytes(self) -> int:
        """Bytes of committed rows that only the memory and the changelog have."""
        return self._committed_bytes

    def cut(self) -> _Rows:
        """Moves the open rows in flight and returns them as bytes; None is a tombstone.

        Raises `RowRefused`, and moves nothing, when one of them cannot be stored.
        """
        rows = self._as_bytes(self._open.items())
        for entry in self._open.values():
            entry.is_open = False
        self._in_flight = rows
        self._open, self._open_bytes = {}, 0
        return rows

    def check(self, keys: Iterable[bytes]) -> None:
        """Raises `RowRefused` when one of these rows has changed and cannot be stored."""
        self._as_bytes((key, self._open[key]) for key in keys if key in self._open)

    def _as_bytes(self, entries: Iterable[tuple[bytes, Entry]]) -> _Rows:
        rows: _Rows = {}
        encoders = self._encoders
        for key, entry in entries:
            row = entry.row
            if row is None:
                rows[key] = None
                continue
            encode, payload_bytes_max, of_store = encoders[key[0]]
            try:
                payload = encode(row)
            except Exception as error:
                # Whatever it is, it is the application's: its row must be named, or the partition would stop here for ever.
                raise self._refused(key, f"{type(error).__name__}: {error}") from error
            if len(payload) > payload_bytes_max:
                raise self._refused(key, f"{len(payload)} bytes; at most {payload_bytes_max} can be stored")
            rows[key] = packed = word(entry.deadline_ms, of_store) + payload
            entry.stored_bytes = len(packed)
        return rows

    def _refused(self, key: bytes, why: str) -> RowRefused:
        return RowRefused(self._specs[key[0]].name, key, why)

    def commit(self) -> None:
        """The rows in flight are committed."""
        self._committed.update(self._in_flight)
        self._committed_bytes += sum(map(len, self._in_flight)) + sum(map(len, filter(None, self._in_flight.values())))
        self._in_flight = {}

    def abort(self) -> None:
        """Drops every row since the last commit; reads go back to what is committed, and so do timers."""
        touched = self._open.keys() | self._in_flight.keys()
        self._open, self._in_flight, self._open_bytes = {}, {}, 0
        # The whole cache: a fold that raised may have changed a row that it never put.
        self.young.clear()
        self._old = {}
        for key in touched:
            self.rearm(key)

    def rearm(self, key: bytes) -> None:
        """Puts the timer of the row of `key`, as it is committed, back among those to come."""
        row = self._bytes(key)
        deadline_ms = 0 if row is None else deadline_of(row)
        if deadline_ms:
            # Kept by a flush as the local store's own: its index entry may have been read past already.
            heapq.heappush(self._heap, (deadline_ms, key, True))

    # The life of a flush.

    def begin_flush(self) -> _Rows:
        """Freezes the committed rows that the local store lacks."""
        if self._flushing:
            raise RuntimeError("a flush is under way")
        self._flushing, self._committed, self._committed_bytes = self._committed, {}, 0
        return self._flushing

    def end_flush(self) -> None:
        """The local store has the frozen rows: the heap keeps only what its index does not know."""
        deadlines = [deadline_of(row) for row in self._flushing.values() if row is not None]
        earliest = min((deadline_ms for deadline_ms in deadlines if deadline_ms), default=NEVER_MS)
        self._scanned = min(self._scanned, (earliest, b""))
        self._heap = [
            timer
            for timer in self._heap
            if timer[2] or timer[1] in self._open or timer[1] in self._in_flight or timer[1] in self._committed
        ]
        heapq.heapify(self._heap)
        self._flushing = {}
        self._local_next_ms = self._peek_local()
