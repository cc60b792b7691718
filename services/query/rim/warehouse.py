"""Table `views` of the warehouse as delta-rs reads its log: which files a question needs, and which of their rows are deleted.

DuckDB reads the files themselves. A file lies in the folder for days after a newer version has replaced it, so a snapshot can be
read while the finalizer writes.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from services.query.core.calendar import Range
from services.query.core.question import Question

#: Bounds of texts may be cut after so many characters.
_BOUND_CHARACTERS: Final = 31


class WarehouseAway(RuntimeError):
    """The warehouse has no table `views` that can be read."""


class WarehouseNew(WarehouseAway):
    """There is no table `views` yet: the finalizer makes it when it starts for the first time."""


@dataclass(frozen=True)
class File:
    """One file, and the bounds of what is in it; None where the log has none."""

    path: str
    rows: int
    first_hour: int | None
    last_hour: int | None
    first_customer: str | None
    last_customer: str | None
    first_view: str | None = None
    last_view: str | None = None
    #: The day under which its views are stored, since 1970.
    day: int | None = None

    def may_have_view(self, customer_id: str, view_id: str, day: int | None) -> bool:
        """Whether a view of this name can be in it."""
        if day is not None and self.day is not None and self.day != day:
            return False
        bounds = ((self.first_customer, customer_id, self.last_customer), (self.first_view, view_id, self.last_view))
        return all(
            first is None or last is None or first[:_BOUND_CHARACTERS] <= one[:_BOUND_CHARACTERS] <= last
            for first, one, last in bounds
        )

    def may_have(self, question: Question) -> bool:
        """Whether a view of the question can be in it."""
        if self.first_hour is not None and self.first_hour >= question.range.end_hour:
            return False
        if self.last_hour is not None and self.last_hour < question.range.first_hour:
            return False
        if question.unread is not None and self._lies_in(question.unread):
            return False
        customers = question.customers.only
        if customers is None:
            return True
        if self.first_customer is None or self.last_customer is None:
            return bool(customers)
        first, last = self.first_customer[:_BOUND_CHARACTERS], self.last_customer[:_BOUND_CHARACTERS]
        return any(first <= customer[:_BOUND_CHARACTERS] <= last for customer in customers)

    def _lies_in(self, hours: Range) -> bool:
        """Whether it is known to have views of these hours alone."""
        if self.first_hour is None or self.last_hour is None:
            return False
        return hours.first_hour <= self.first_hour and self.last_hour < hours.end_hour


@dataclass(frozen=True)
class Snapshot:
    """One version of the table."""

    version: int
    files: tuple[File, ...]
    #: When it was committed, ms since 1970.
    committed_ms: int
    #: Rows that are deleted, as path and number of the row; None where there are none.
    removed: pa.Table | None

    def files_for(self, question: Question) -> list[File]:
        """The files that can have views of a question."""
        return [file for file in self.files if file.may_have(question)]

    def removed_of(self, paths: Iterable[str]) -> pa.Table | None:
        """The deleted rows of these files; None where there are none."""
        if self.removed is None:
            return None
        found = self.removed.filter(pc.is_in(self.removed["path"], pa.array(list(paths), pa.string())))
        return found if found.num_rows else None


class ViewsTable:
    """The table. Its methods block, and may be called from any thread."""

    def __init__(self, warehouse: Path) -> None:
        self._folder = (warehouse / "views").resolve()
        self._table: DeltaTable | None = None
        self._snapshot: Snapshot | None = None
        self._was_there = False
        self._lock = threading.Lock()

    def snapshot(self) -> Snapshot:
        """The newest version. Raises `WarehouseAway`, and `WarehouseNew` before there is any."""
        with self._lock:
            try:
                if self._table is None:
                    self._table = DeltaTable(self._folder)
                else:
                    self._table.update_incremental()
                if self._snapshot is None or self._snapshot.version != self._table.version():
                    self._snapshot = self._read(self._table)
            except (TableNotFoundError, DeltaError, OSError) as error:
                self._table = self._snapshot = None
                is_new = isinstance(error, TableNotFoundError) and not self._was_there and self._is_empty()
                raise (WarehouseNew if is_new else WarehouseAway)(type(error).__name__) from error
            self._was_there = True
            return self._snapshot

    def _read(self, table: DeltaTable) -> Snapshot:
        actions = pa.table(table.get_add_actions(flatten=True))
        names = (
            *("path", "num_records", "min.hour", "max.hour", "min.customer_id", "max.customer_id"),
            *("min.view_id", "max.view_id", "partition.day"),
        )
        empty = [None] * actions.num_rows
        columns = [actions[name].to_pylist() if name in actions.column_names else empty for name in names]
        files = tuple(File(self._path(path), rows or 0, *bounds) for path, rows, *bounds in zip(*columns, strict=True))
        (newest,) = table.history(1)
        return Snapshot(
            version=table.version(),
            files=files,
            committed_ms=int(newest.get("timestamp", 0)),
            removed=removed_rows(table, self._path),
        )

    def _is_empty(self) -> bool:
        """Whether nothing was ever stored here; files without their log, or a folder that cannot be read, are another matter."""
        try:
            return all(one.name == "_delta_log" for one in self._folder.iterdir())
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def _path(self, path: str) -> str:
        return path_of(self._folder, path)


def path_of(folder: Path, path: str) -> str:
    """A file's path, from the log's, which may be relative, an address, and percent-encoded."""
    given: Any = unquote(urlsplit(path).path if "://" in path else path)
    return str(folder / given)


def removed_rows(table: DeltaTable, path: Callable[[str], str]) -> pa.Table | None:
    """The rows of all files that are marked as deleted, as path and number of the row; None where there are none."""
    found = []
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for name, kept in zip(batch["filepath"].to_pylist(), batch["selection_vector"], strict=True):
            numbers = pc.indices_nonzero(pc.invert(kept.values)).cast(pa.int64())
            found.append(pa.table({"path": pa.array([path(name)] * len(numbers), pa.string()), "number": numbers}))
    return pa.concat_tables(found) if found else None
