"""MapSpec and RowMap: a store of the entries of owners. Each entry is a row of its own, so it costs its own bytes when it changes.

A row's key is: the owner, in which each byte 0 is followed by 255; two bytes 0; the entry. So no two pairs of owner and entry
have the same key, and the entries of an owner are neighbours, in the order of their bytes.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from services.processor.engine.state.rows import end_of
from services.processor.engine.state.store_spec import Row, StoreSpec

_OWNER_END: Final = b"\x00\x00"


class EntryRange(NamedTuple):
    """Entries of one owner: those with `first` <= row key < `before`. `owner` is what all row keys of the owner begin with."""

    owner: bytes
    first: bytes
    before: bytes


@dataclass(frozen=True)
class MapSpec(StoreSpec[Row]):
    """The declaration of a map. Its rows have no deadlines: those are of the owner's row, in another store.

    `record_key` is of an owner; without it, owners are record keys. With `goes_with`, an owner's entries go with the row whose
    key is the owner.
    """

    def row_key(self, owner: bytes, entry: bytes) -> bytes:
        """The key of an entry's row."""
        return bytes([self.id]) + owner.replace(b"\x00", b"\x00\xff") + _OWNER_END + entry

    def range_of(
        self, owner: bytes, prefix: bytes = b"", after: bytes | None = None, before: bytes | None = None
    ) -> EntryRange:
        """The owner's entries that begin with `prefix`, are greater than `after` and less than `before`."""
        of_owner = self.row_key(owner, b"")
        first = of_owner + prefix
        if after is not None:
            # The least key that is greater.
            first = max(first, of_owner + after + b"\x00")
        end = end_of(of_owner + prefix)
        return EntryRange(of_owner, first, end if before is None else max(first, min(end, of_owner + before)))

    def record_key_of(self, key: bytes) -> bytes:
        owner, _ = owner_and_entry(key)
        return owner if self.record_key is None else self.record_key(owner)

    def prefix_of(self, record_key: bytes) -> bytes:
        escaped = record_key.replace(b"\x00", b"\x00\xff")
        return escaped + _OWNER_END if self.record_key is None else escaped


def owner_and_entry(key: bytes) -> tuple[bytes, bytes]:
    """The owner and the entry of a row's key, without the store's id."""
    owner, _, entry = key.partition(_OWNER_END)
    return owner.replace(b"\x00\xff", b"\x00"), entry


def owner_of(row_key: bytes) -> bytes:
    """What all row keys of the entry's owner begin with."""
    return row_key[: row_key.index(_OWNER_END, 1) + len(_OWNER_END)]


class RowMap(Protocol[Row]):
    """A core's rows of one `MapSpec`, by owner and entry. A row that was changed in place must be put, or the change is lost."""

    def get(self, owner: bytes, entry: bytes) -> Row | None:
        """The row of an entry, or None."""
        ...

    def put(self, owner: bytes, entry: bytes, row: Row) -> None:
        """Sets the row of an entry."""
        ...

    def delete(self, owner: bytes, entry: bytes) -> None:
        """Deletes the row of an entry."""
        ...

    def items(
        self,
        owner: bytes,
        limit: int,
        *,
        prefix: bytes = b"",
        after: bytes | None = None,
        before: bytes | None = None,
    ) -> list[tuple[bytes, Row]]:
        """The owner's first `limit` entries with their rows, in the order of their bytes, as they are now.

        Only entries that begin with `prefix`, are greater than `after` and less than `before`. What is put or deleted later does
        not change the list.
        For any limit, costs a look at each entry of the owner that is not yet in the local store.
        """
        ...

    def clear(self, owner: bytes, limit: int, *, prefix: bytes = b"") -> int:
        """Deletes the owner's first `limit` entries that begin with `prefix`; returns how many these were."""
        ...
