"""LocalStore on RocksDB: one database per partition, written rarely and without a write-ahead log (the changelog is one).

    r <row key>                      row
    t <deadline, 8 bytes> <row key>  timer entry
    p                                position: meta and changelog offset
    w                                when its files were written again last, s since 1970, decimal

Rows go in slices of at most 1 MB (a slice holds the GIL), the position after them; then the memtable is flushed. A crash in
between leaves rows ahead of the position, which the replay overwrites.
"""

import threading
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from rocksdict import ReadOptions, WriteBatch, WriteOptions

from services.processor.engine.state.local import (
    LocalMeta,
    StoreCorrupt,
    TimerEntry,
    decode_position,
    encode_position,
    first_after,
)
from services.processor.engine.state.rows import deadline_of
from services.processor.runtime.store.rocksdb_files import failed, failures, opened
from services.processor.runtime.store.rocksdb_options import Memory
from services.rim.process.crash_points import CrashPoints

SLICE_BYTES_MAX: Final = 1_000_000
_ROW: Final = b"r"
_TIMER: Final = b"t"
_TIMER_END: Final = b"u"
_POSITION: Final = b"p"
_REWRITTEN: Final = b"w"
#: A day, s.
REWRITE_SECONDS: Final = 86_400.0
#: Timer entries that are held beside their rows at a time.
_TIMERS_AT_ONCE: Final = 1_000
_EVER_MS: Final = (1 << 63) - 1


class RocksStore:
    """A core's rows on disk. Used by one thread for reads while another may write.

    Every method raises `StoreCorrupt`, `StoreFull`, or `StoreFailed` for any other error of the files; opening also raises
    `StoreLocked`.
    """

    def __init__(
        self,
        path: Path,
        memory: Memory,
        *,
        open_seconds_max: float,
        rewrite_seconds: float = REWRITE_SECONDS,
        crash_points: CrashPoints | None = None,
    ) -> None:
        """Every `rewrite_seconds` its files are written again without what was deleted."""
        self._path = path
        self._rewrite_seconds = rewrite_seconds
        self._crash_points = crash_points or CrashPoints()
        self._compacting = threading.Lock()
        self._is_closed = False
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failed(path, error) from error
        self._db = opened(path, memory, open_seconds_max)
        self._no_wal = WriteOptions()
        # The stub calls it a method; it is a property.
        self._no_wal.disable_wal = True  # type: ignore[method-assign, assignment]
        with failures(path):
            known: bytes | None = self._db.get(_REWRITTEN)
            #: A process that ran before may have deleted rows since.
            self._has_deleted = self._db.get(_POSITION) is not None
            self._note_rewritten(time.time() if known is None else float(known))

    def get(self, key: bytes) -> bytes | None:
        # Not `failures`: every new row is looked for here first, and a context costs twice what RocksDB does.
        try:
            row: bytes | None = self._db.get(_ROW + key)
        except Exception as error:
            if type(error) is not Exception:
                raise
            raise failed(self._path, error) from error
        return row

    def due(self, after: TimerEntry, until_ms: int, limit: int) -> list[TimerEntry]:
        with failures(self._path):
            return self._due(after, until_ms, limit)

    def _due(self, after: TimerEntry, until_ms: int, limit: int) -> list[TimerEntry]:
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(_TIMER_END)
        start = _timer_key(after)
        # The iterator keeps the files locked until it is collected: it must not outlive this call.
        iterator = self._db.iter(bounds)
        iterator.seek(start)
        found: list[TimerEntry] = []
        try:
            while iterator.valid() and len(found) < limit:
                key: bytes = iterator.key()
                deadline_ms = int.from_bytes(key[1:9], "big")
                if deadline_ms > until_ms:
                    break
                if key != start:
                    found.append((deadline_ms, key[9:]))
                iterator.next()
            # An iterator that meets a broken block looks like one at its end.
            iterator.status()
        finally:
            del iterator
        return found

    def page(self, first: bytes, before: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        with failures(self._path):
            return self._page(_ROW + first, _ROW + before, limit)

    def _page(self, first: bytes, before: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(before)
        # As in `_due`: it must not outlive this call, and a broken block looks like the end.
        iterator = self._db.iter(bounds)
        iterator.seek(first)
        found: list[tuple[bytes, bytes]] = []
        try:
            while iterator.valid() and len(found) < limit:
                found.append((iterator.key()[1:], iterator.value()))
                iterator.next()
            iterator.status()
        finally:
            del iterator
        return found

    def write(self, rows: Mapping[bytes, bytes | None], position: LocalMeta | None) -> None:
        with failures(self._path):
            self._write(rows, position)

    def _write(self, rows: Mapping[bytes, bytes | None], position: LocalMeta | None) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, row in rows.items():
            if row is None:
                batch.delete(_ROW + key)
                self._has_deleted = True
            else:
                batch.put(_ROW + key, row)
                deadline_ms = deadline_of(row)
                if deadline_ms:
                    batch.put(_timer_key((deadline_ms, key)), b"")
            if batch.size_in_bytes() >= SLICE_BYTES_MAX:
                self._db.write(batch, self._no_wal)
                self._crash_points.reach("slice_written")
                batch = WriteBatch(raw_mode=True)
        self._db.write(batch, self._no_wal)
        if position is not None:
            self._crash_points.reach("rows_written")
            batch = WriteBatch(raw_mode=True)
            batch.delete_range(_TIMER, _timer_key(first_after(position)))
            # Last: a position must never be stored without its rows.
            batch.put(_POSITION, encode_position(position))
            self._db.write(batch, self._no_wal)
            self._db.flush()
            self._crash_points.reach("flushed")

    @property
    def is_rewrite_due(self) -> bool:
        return self._has_deleted and time.time() - self._rewritten_at >= self._rewrite_seconds

    def rewrite(self) -> None:
        for may_compact in self.rewriting():
            if may_compact:
                self.compact()

    def rewriting(self) -> Generator[bool]:
        """The parts of `rewrite`: drops timers whose rows are gone, some at a time, and then yields true: `compact` is to come.

        Rows may be written between two parts. What is closed before its end is due again.
        """
        self._has_deleted = False
        is_over = False
        after: TimerEntry | None = (0, b"")
        try:
            while after is not None:
                with failures(self._path):
                    after = self._drop_some_timers(after)
                yield after is None
            is_over = True
        finally:
            self._has_deleted |= not is_over

    def compact(self) -> None:
        """Compacts its files: until then a deleted row stays in one. Any thread may do it, beside those that read and write."""
        with self._compacting:
            if self._is_closed:
                return
            with failures(self._path):
                self._note_rewritten(time.time())
                self._db.flush()
                self._db.compact_range(None, None)

    def _note_rewritten(self, at: float) -> None:
        """Durable with the next flush: slots that are restarted every day would else never do it."""
        self._rewritten_at = at
        self._db.put(_REWRITTEN, b"%d" % at, self._no_wal)

    def _drop_some_timers(self, after: TimerEntry) -> TimerEntry | None:
        """Drops entries without a row of this deadline: they only keep the row's key until they are due. None after the last."""
        entries = self._due(after, _EVER_MS, _TIMERS_AT_ONCE)
        batch = WriteBatch(raw_mode=True)
        for deadline_ms, key in entries:
            row: bytes | None = self._db.get(_ROW + key)
            if row is None or deadline_of(row) != deadline_ms:
                batch.delete(_timer_key((deadline_ms, key)))
        self._db.write(batch, self._no_wal)
        return entries[-1] if entries else None

    def position(self) -> LocalMeta | None:
        with failures(self._path):
            data: bytes | None = self._db.get(_POSITION)
        try:
            return None if data is None else decode_position(data)
        except msgspec.MsgspecError as error:
            raise StoreCorrupt(f"{self._path}: its position cannot be read: {error}") from error

    def close(self) -> None:
        with self._compacting:
            self._is_closed = True
            self._db.close()


def _timer_key(entry: TimerEntry) -> bytes:
    return _TIMER + entry[0].to_bytes(8, "big") + entry[1]
