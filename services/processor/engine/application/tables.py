"""Global tables: what every slot has whole of a compacted topic, so that a fold can look up any key of it.

A table is no part of a checkpoint: each slot reads the topic by itself. What a fold may rely on:

- Before a partition works, its slot has read the table up to the end that it had after the former owner was fenced. So no owner
  of a partition finds less of the table than the owner before.
- A table does not change while a record is folded or a row fires. Between two of them it may.
- The entries of a key come in the order of their partition of the topic. Of different keys none is before another.

And what it may not: an entry is not of the record's time. A record that is folded late, again, or in a replay finds the entries of
then. What was committed stays as it was: rows and outputs of one checkpoint are made from the same fold. A fold that must give the
same result again takes the table's topic as an input instead, keyed alike.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from services.processor.engine.record import Record
from shared.codec import Undecodable
from shared.schemas.rejected import Reason
from shared.topics import Topic

Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)

ENTRIES_MAX: Final = 100_000
BYTES_MAX: Final = 64 * 1024 * 1024
#: Of a table, records that are kept for the dead letter; of those with more bytes their place alone.
WRONG_RECORDS_MAX: Final = 1_000
WRONG_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True)
class TableSpec(Generic[Row]):
    """A global table: of each key of a compacted topic the newest record. It is in memory, and each process reads all of it.

    `decode` makes an entry of a value and may raise `Undecodable`. A record that cannot be decoded, or finds no room, goes to topic
    `rejected`, once for all slots, and its key has no entry.
    """

    topic: Topic
    decode: Callable[[bytes], Row]
    #: Entries that a slot holds at the most, and the bytes of their keys and values; decoded they take more. Beyond that, which of
    #: them are held is not defined.
    entries_max: int = ENTRIES_MAX
    bytes_max: int = BYTES_MAX

    def __post_init__(self) -> None:
        if self.topic.cleanup != "compact":
            raise ValueError(f"table {self.topic.name}: its topic must be compacted, so that it keeps every key")


class Table(Protocol[Row_co]):
    """A global table as a fold sees it."""

    def get(self, key: bytes) -> Row_co | None:
        """The entry of `key`, or None. It is not to be changed: all partitions of the slot have it."""
        ...


class WrongRecord(NamedTuple):
    """A record that is no entry, and why: as `shared.schemas.rejected` has it."""

    record: Record
    reason: Reason
    detail: str


class _Entries:
    """One table."""

    def __init__(self, spec: TableSpec[Any]) -> None:
        self.spec = spec
        self.clear()

    def clear(self) -> None:
        self.rows: dict[bytes, Any] = {}
        self.sizes: dict[bytes, int] = {}
        self.bytes = 0
        self.wrong: list[WrongRecord] = []
        self.wrong_bytes = 0

    def get(self, key: bytes) -> Any:
        return self.rows.get(key)

    def take_record(self, record: Record) -> None:
        key, value = record.key, record.value
        if key is None:
            self._refuse(record, "undecodable", "an entry of a table has a key")
            return
        self.rows.pop(key, None)
        self.bytes -= self.sizes.pop(key, 0)
        if value is None:
            return
        try:
            row = self.spec.decode(value)
        except Undecodable as error:
            self._refuse(record, "undecodable", str(error))
            return
        except Exception as error:  # noqa: BLE001  (a record on which the application raises is rejected)
            self._refuse(record, "fold_failed", f"{type(error).__name__}: {error}")
            return
        size = _bytes_of(record)
        if len(self.rows) >= self.spec.entries_max or self.bytes + size > self.spec.bytes_max:
            held = f"{len(self.rows)} entries of {self.bytes} bytes"
            self._refuse(record, "table_full", f"table {self.spec.topic.name} has no room: it holds {held}")
            return
        self.rows[key], self.sizes[key] = row, size
        self.bytes += size

    def _refuse(self, record: Record, reason: Reason, detail: str) -> None:
        if self.wrong_bytes + _bytes_of(record) > WRONG_BYTES_MAX:
            record = msgspec.structs.replace(record, key=b"", value=None)
        self.wrong.append(WrongRecord(record, reason, detail))
        self.wrong_bytes += _bytes_of(record)
        if len(self.wrong) > WRONG_RECORDS_MAX:
            self.wrong_bytes -= _bytes_of(self.wrong.pop(0).record)


def _bytes_of(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")


def place_of(record: Record) -> str:
    """Where a record of a table stands, as `Meta.table_offsets` names it."""
    return f"{record.topic}/{record.partition}"


class Tables:
    """The tables of one process, for all its cores. Belongs to the thread that folds."""

    def __init__(self, specs: Iterable[TableSpec[Any]]) -> None:
        self._tables = {spec.topic.name: _Entries(spec) for spec in specs}

    def of(self, spec: TableSpec[Row]) -> Table[Row]:
        """The table of a spec; raises ValueError for one that was not declared."""
        found = self._tables.get(spec.topic.name)
        if found is None or found.spec is not spec:
            raise ValueError(f"table {spec.topic.name} is not declared")
        return found

    def take_records(self, records: Iterable[Record]) -> None:
        """Takes the next records of the tables' topics in, each partition's in order."""
        for record in records:
            self._tables[record.topic].take_record(record)

    def restart(self, topic: str) -> None:
        """The topic is read from its beginning again: it may be another one."""
        self._tables[topic].clear()

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """Entries and bytes, by topic."""
        return {name: (len(table.rows), table.bytes) for name, table in self._tables.items()}

    def wrong(self, partition: int, partitions: int, rejected: Mapping[str, int]) -> Sequence[WrongRecord]:
        """Records for the dead letter of the core of `partition`, of so many, that has `rejected` those before these offsets.

        The partitions of a table are dealt out to the cores, so each record is rejected by one of them.
        """
        return [
            one
            for table in self._tables.values()
            for one in table.wrong
            if one.record.partition % partitions == partition % partitions
            and one.record.offset >= rejected.get(place_of(one.record), 0)
        ]
