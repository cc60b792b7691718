"""Timers: which rows may be due, in order. The deadlines are in the rows; entries here only say which rows to check.

An entry that its row does not confirm has no effect, so a moved deadline needs no removal of its old entry.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from services.processor.engine.state.local import LocalStore, TimerEntry, first_after

NEVER_MS: Final = 1 << 62
#: More timers than these are not counted.
WAITING_MAX: Final = 10_000


class Timers:
    """The deadlines of a core's rows: a heap of the newer ones over the local store's index of the rest."""

    def __init__(self, local: LocalStore) -> None:
        self._local = local
        #: (deadline, key, whether it came from the local store's index).
        self._heap: list[tuple[int, bytes, bool]] = []
        #: Up to where the local store's index was read into the heap. Before its position's clock all has fired.
        self._scanned: TimerEntry = first_after(local.position())
        self._local_next_ms = self._peek_local()

    def set(self, key: bytes, deadline_ms: int) -> None:
        """A row has a new deadline."""
        heapq.heappush(self._heap, (deadline_ms, key, False))

    def put_back(self, key: bytes, deadline_ms: int) -> None:
        """A deadline that may have been taken is to come again."""
        # Kept by a flush as the local store's own: its index entry may have been read past already.
        heapq.heappush(self._heap, (deadline_ms, key, True))

    def next_due_ms(self) -> int:
        """No timer is due before this time, ms since 1970."""
        first = self._heap[0][0] if self._heap else NEVER_MS
        return first if first < self._local_next_ms else self._local_next_ms

    def waiting(self, clock_ms: int) -> int:
        """Timers due by `clock_ms` that have not fired, as far as they are known in memory; at most `WAITING_MAX`.

        It is asked for again and again, most of all while a million wait: then counting them all would take the time to fire them.
        """
        count, places = 0, [0]
        while places and count < WAITING_MAX:
            place = places.pop()
            # In a heap no entry is due before the one above it.
            if place < len(self._heap) and self._heap[place][0] <= clock_ms:
                count += 1
                places += (2 * place + 1, 2 * place + 2)
        return count

    def take_due(self, clock_ms: int, limit: int) -> Iterator[tuple[int, bytes]]:
        """Takes deadlines up to `clock_ms` with their keys, in order; the index is read up to `limit` entries ahead."""
        while self.next_due_ms() <= clock_ms:
            if self._local_next_ms <= clock_ms:
                self._scan_local(clock_ms, limit)
            if self._heap and self._heap[0][0] <= clock_ms:
                deadline_ms, key, _ = heapq.heappop(self._heap)
                yield deadline_ms, key

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

    def end_flush(self, written_ms: Iterable[int], is_due_newer: Callable[[bytes, int], bool]) -> None:
        """The local store has rows with these deadlines (0: none): what its index knows need not be kept here.

        `is_due_newer` returns whether a key has a row with this deadline that the local store does not have. Former deadlines of a
        row that changes all the time are dropped too: else each change would be kept until it was due.
        """
        earliest = min((deadline_ms for deadline_ms in written_ms if deadline_ms), default=NEVER_MS)
        self._scanned = min(self._scanned, (earliest, b""))
        self._heap = [timer for timer in self._heap if timer[2] or is_due_newer(timer[1], timer[0])]
        heapq.heapify(self._heap)
        self._local_next_ms = self._peek_local()
