"""Growth: what the engine must know of an application to divide its state among more partitions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from services.processor.engine.state.store_spec import StoreSpec

#: Rows as they are stored, by row key.
RowBytes = Mapping[bytes, bytes]


class SumsDivided(NamedTuple):
    """How sums over the rows of a partition change when some of them move."""

    #: The new rows of the sums that stay, by row key.
    stays: dict[bytes, bytes]
    #: By new partition, the rows of its sums, and its tallies: so much is taken from those of the former partition.
    moved: dict[int, dict[bytes, bytes]]
    tallies: dict[int, dict[str, int]]


@dataclass(frozen=True)
class Growth:
    """Declared by an application whose partitions can grow.

    Across a growth it folds the records of one key in any order: those in the former partition are handed on to the new one. No row
    of it names a place (an offset, a partition) of an input.
    """

    #: The record key that a row belongs to, by the application's key in a store.
    record_key_of: Callable[[StoreSpec[Any], bytes], bytes]
    #: The ids of stores whose rows are sums over the partition's other rows: they belong to no record key.
    sums: frozenset[int]
    #: Divides the sums: of the rows that are sums, and of the rows that move, by new partition.
    divide_sums: Callable[[RowBytes, Mapping[int, RowBytes]], SumsDivided]
