"""StoreSpec and Store: one keyed store of an application, as declared and as a core implements it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from shared.topics import RECORD_BYTES_MAX

Row = TypeVar("Row")

#: No row is larger, bytes: with its key and header it must fit into a record of the changelog.
ROW_BYTES_MAX: Final = RECORD_BYTES_MAX - 50_000

#: The engine's own store, of quarantined keys and their rows. No application has it.
QUARANTINE_STORE_ID: Final = 254


@dataclass(frozen=True)
class StoreSpec(Generic[Row]):
    """One keyed store of an application. `id` (1..253) is part of every stored key: it never changes.

    `encode` writes rows in `format` (1..255) and `decode` reads them. `also_reads` holds the decoders of other formats by
    number. They upgrade a row when it is read; a put writes it in `format`. A new format comes in two
    releases, so that either can be rolled back. The first reads it and still writes the former one; the second writes it. A
    store, once declared, stays declared.
    """

    name: str
    id: int
    encode: Callable[[Row], bytes]
    decode: Callable[[bytes], Row]
    format: int = 1
    also_reads: Mapping[int, Callable[[bytes], Row]] = field(default_factory=dict)

    #: What makes a row larger is rejected: a record of the changelog that is too large would stop the partition for ever.
    row_bytes_max: int = ROW_BYTES_MAX

    #: The name of the store whose rows these belong to, by their keys: a row that is rejected takes them with it.
    goes_with: str | None = None
    #: The record key of which a row's key is made: it begins with that key. Rows are quarantined with their record key.
    record_key: Callable[[bytes], bytes] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.id <= QUARANTINE_STORE_ID:
            raise ValueError(f"store {self.name}: its id must be in 1..{QUARANTINE_STORE_ID - 1}")
        if not all(1 <= number <= 255 for number in (self.format, *self.also_reads)):
            raise ValueError(f"store {self.name}: its formats must be in 1..255")

    def reads(self, row_format: int) -> bool:
        """Whether rows of this format can be read."""
        return row_format == self.format or row_format in self.also_reads

    def record_key_of(self, key: bytes) -> bytes:
        """The record key with which the row of `key` is quarantined."""
        return key if self.record_key is None else self.record_key(key)

    def prefix_of(self, record_key: bytes) -> bytes:
        """What the keys of rows of a record key begin with; keys of other rows may too."""
        return record_key

    def newer_format(self, row_format: int) -> str:
        """Why rows of this format cannot be worked with."""
        known = ", ".join(str(number) for number in sorted({self.format, *self.also_reads}))
        return f"store {self.name} has rows of format {row_format}; this version reads {known}: upgrade it"


class Store(Protocol[Row]):
    """A core's rows of one `StoreSpec`. A row that was changed in place must be put, or the change is lost."""

    def get(self, key: bytes) -> Row | None:
        """The row of `key`, or None."""
        ...

    def put(self, key: bytes, row: Row, deadline_ms: int = 0) -> None:
        """Sets the row, and the clock time at which the processor's `fire` is to see it (0: never)."""
        ...

    def put_by(self, key: bytes, row: Row, deadline_ms: int) -> None:
        """Sets the row; `fire` is to see it by this clock time: an earlier deadline that is set stays.

        To move a deadline with every change costs far more than to move it when it is reached too early.
        """
        ...

    def deadline_ms(self, key: bytes) -> int:
        """The deadline set for `key`, or 0."""
        ...

    def delete(self, key: bytes) -> None:
        """Deletes the row and its deadline."""
        ...
