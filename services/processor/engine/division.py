"""Division: what one partition's state becomes when the application's keys are divided among more partitions.

The number of partitions is multiplied. So a key of partition p of n stays, or moves to p + n, p + 2n, ... A new partition gets
rows of one former partition alone, and a former partition gets none.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from services.processor.engine.application.application import Application
from services.processor.engine.core.quarantine import record_key_of
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.store_spec import QUARANTINE_STORE_ID
from shared.partitioning import partition_of


class CannotGrow(ValueError):
    """The state cannot be divided so; the text says why."""


class Divided(NamedTuple):
    """What is to be written, together: by partition, rows (None: a tombstone) and position."""

    rows: dict[int, dict[bytes, bytes | None]]
    metas: dict[int, Meta]


def sources_of(partition: int, partitions: int, first: int) -> list[int]:
    """The partitions that one of `partitions` may have been divided from, where there were `first` in the beginning."""
    counts = [count for count in range(first, partitions, first) if partitions % count == 0 and count <= partition]
    return sorted({partition % count for count in counts})


def targets_of(partition: int, former: int, partitions: int) -> range:
    """The new partitions that get rows of one of the `former`. Raises `CannotGrow` unless their number is multiplied."""
    if partitions <= former or partitions % former:
        raise CannotGrow(f"{former} partitions can grow to a multiple of {former} alone, not to {partitions}")
    return range(partition + former, partitions, former)


class Division:
    """What the rows of a partition of `former` become among `partitions`, change by change as its changelog has them.

    Rows of a key that is not the partition's own (its records were produced to another partition than that of their key) stay.
    """

    def __init__(self, application: Application, *, partition: int, former: int, partitions: int) -> None:
        """Raises `CannotGrow`."""
        if application.growth is None:
            raise CannotGrow(f"{application.name} has state that cannot be divided")
        self._growth = application.growth
        self._application = application
        self._partition = partition
        self._partitions = partitions
        self.targets = targets_of(partition, former, partitions)
        self._specs = {spec.id: spec for spec in application.stores}
        self._moved: dict[int, dict[bytes, bytes]] = {target: {} for target in self.targets}
        self._sums: dict[bytes, bytes] = {}

    def is_sum(self, key: bytes) -> bool:
        """Whether a row is a sum over the others."""
        return key[0] in self._growth.sums

    def take_row(self, key: bytes, row: bytes | None) -> int | None:
        """Takes a committed row, None where it was deleted. The new partition that the row moves to; None for one that stays."""
        if self.is_sum(key):
            _put(self._sums, key, row)
            return None
        if key[0] == QUARANTINE_STORE_ID:
            of_record = record_key_of(key)
        else:
            of_record = self._growth.record_key_of(self._specs[key[0]], key[1:])
        # Not the remembering one: each key comes a few times, and there are a million.
        home = partition_of.__wrapped__(of_record, self._partitions)
        if home not in self.targets:
            return None
        _put(self._moved[home], key, row)
        return home

    def divided(self, meta: Meta) -> Divided:
        """The whole division of what was taken up to this position. Raises `NewerFormat`."""
        self._application.row_formats(meta)
        divided = self._growth.divide_sums(self._sums, self._moved)
        changes: dict[int, dict[bytes, bytes | None]] = {self._partition: {}}
        for target, rows in self._moved.items():
            changes[self._partition].update(dict.fromkeys(rows))
            changes[target] = {**rows, **divided.moved.get(target, {})}
        changes[self._partition].update(divided.stays)
        return Divided(changes, _metas(meta, self._partition, self._partitions, changes, divided.tallies))


def _put(rows: dict[bytes, bytes], key: bytes, row: bytes | None) -> None:
    if row is None:
        rows.pop(key, None)
    else:
        rows[key] = row


def _metas(
    meta: Meta,
    partition: int,
    partitions: int,
    changes: Mapping[int, Mapping[bytes, bytes | None]],
    tallies: Mapping[int, Mapping[str, int]],
) -> dict[int, Meta]:
    metas = {}
    stay = dict(meta.tallies)
    counts = dict(meta.rows)
    for target, rows in changes.items():
        if target == partition:
            continue
        for name, number in tallies.get(target, {}).items():
            stay[name] = stay.get(name, 0) - number
        metas[target] = msgspec.structs.replace(
            meta,
            # Its inputs are read from their beginning; what was appended to them is not older than this clock.
            next_offsets={},
            leader_epochs={},
            commit_number=1,
            rows=_counted(rows),
            tallies=dict(tallies.get(target, {})),
            # Places of failures are sums of offsets, which begin again.
            failing={},
            version_at=None,
            partitions=partitions,
        )
    for key, row in changes[partition].items():
        if row is None:
            counts[key[0]] = counts.get(key[0], 0) - 1
    metas[partition] = msgspec.structs.replace(
        meta, commit_number=meta.commit_number + 1, rows=counts, tallies=stay, partitions=partitions
    )
    return metas


def _counted(rows: Mapping[bytes, object]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for key in rows:
        counts[key[0]] = counts.get(key[0], 0) + 1
    return counts
