"""Cache: a core's decoded rows, so that most folds decode nothing. Bounded by rows and by their bytes."""

from typing import Any


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


class Cache:
    """Two generations: what was not asked for during one of them is forgotten, at no cost per read.

    Bytes are of keys and of rows as they were last stored; decoded a row takes about two to four times that.
    """

    def __init__(self, *, rows_max: int, bytes_max: int) -> None:
        #: The newer generation; always this very dict.
        self.young: dict[bytes, Entry] = {}
        self._old: dict[bytes, Entry] = {}
        self._young_bytes = 0
        self.limit(rows_max=rows_max, bytes_max=bytes_max)

    def limit(self, *, rows_max: int, bytes_max: int) -> None:
        """From now on it keeps up to so many rows and bytes; the last one of each generation it keeps in any case."""
        self._rows_max = rows_max
        self._bytes_max = bytes_max

    def get(self, key: bytes) -> Entry | None:
        """The entry of `key`, if there is one."""
        return self.young.get(key) or self._old.get(key)

    def remember(self, key: bytes, entry: Entry) -> None:
        """Keeps an entry, as the newest."""
        row_bytes = len(key) + entry.stored_bytes
        is_full = (len(self.young) + 1) * 2 > self._rows_max or (self._young_bytes + row_bytes) * 2 > self._bytes_max
        if is_full and self.young:
            self._age()
        self.young[key] = entry
        self._young_bytes += row_bytes

    def grow(self, more_bytes: int) -> None:
        """Rows that it keeps have grown by so many bytes."""
        self._young_bytes += more_bytes
        if self._young_bytes > self._bytes_max:
            # Either generation may have them: both go.
            self.clear()
        elif self._young_bytes * 2 > self._bytes_max:
            self._age()

    def _age(self) -> None:
        self._old = dict(self.young)
        self.young.clear()
        self._young_bytes = 0

    def clear(self) -> None:
        """Forgets everything."""
        self.young.clear()
        self._old = {}
        self._young_bytes = 0
