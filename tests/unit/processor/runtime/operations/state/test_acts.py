"""Offsets that are moved and keys that are deleted: what is written, in one transaction, and what is refused."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.processor.engine.core.core import Core
from services.processor.engine.record import Output, Record
from services.processor.engine.state.local import LocalMeta, MemoryStore
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import ROW_FORMAT
from services.processor.runtime.operations.state import keys, savepoint, whole
from services.processor.runtime.operations.state.changing import Unsafe
from services.processor.runtime.operations.state.copies import Copy
from services.processor.runtime.operations.state.savepoint import SavedPartition, Savepoint
from services.rim.process.crash_points import CrashPoints
from shared.partitioning import partition_of
from shared.settings import Settings
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION

PARTITIONS = APPLICATION.partitions(Settings().profile)
POINTS = CrashPoints()


class Cluster:
    """Stands in for Kafka: the state of each partition, the ends of the input, and the one change that was committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.copies = {number: Copy(MemoryStore(), None) for number in range(PARTITIONS)}
        self.ends = (10, 50)
        self.slots: list[str] = []
        self.committed: dict[int, tuple[dict[bytes, bytes | None], Meta]] = {}
        for module in (whole, keys):
            monkeypatch.setattr(module, "copied", self._copied)
            monkeypatch.setattr(module, "refuse_while_slots_work", self._refuse)
            monkeypatch.setattr(module, "Change", lambda *_: Changing(self))
        monkeypatch.setattr(whole, "_ends", lambda *_: self.ends)
        monkeypatch.setattr(whole, "TopicIds", lambda *_: SimpleNamespace(now=dict))
        monkeypatch.setattr(savepoint, "verify", lambda *_: None)
        monkeypatch.setattr(savepoint, "rows_of", lambda *_: ())

    @contextmanager
    def _copied(self, _settings: Any, _application: Any, partition: int, _folder: Path) -> Iterator[Copy]:
        yield self.copies[partition]

    def _refuse(self, *_: Any) -> None:
        if self.slots:
            raise Unsafe("slots are at work")

    def fold(self, key: bytes, values: Iterable[bytes]) -> int:
        """Folds records of a key; returns its partition."""
        number, store = partition_of(key, PARTITIONS), MemoryStore()
        core = Core(APPLICATION, number, store)
        core.fold([Record(BEACONS.name, number, 10 + offset, 1_000, key, one) for offset, one in enumerate(values)])
        core.cut()
        core.commit()
        rows, meta = core.begin_flush()
        store.write(rows, LocalMeta(meta, 9))
        self.copies[number] = Copy(store, meta)
        return number


class Changing:
    """Stands in for `Change`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[int, dict[bytes, bytes | None]] = {}
        self._metas: dict[int, Meta] = {}

    def rows(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> int:
        self._rows[partition] = dict(rows)
        return len(self._rows[partition])

    def outputs(self, partition: int, outputs: list[Output]) -> None:
        assert outputs == []

    def meta(self, partition: int, meta: Meta) -> None:
        self._metas[partition] = meta

    def commit(self) -> None:
        assert not self._cluster.committed
        self._cluster.committed = {number: (self._rows.get(number, {}), one) for number, one in self._metas.items()}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def move(to: int, *, is_forward: bool, is_dry: bool = False, partitions: list[int] | None = None) -> list[whole.Moved]:
    return whole.move(
        Settings(),
        APPLICATION,
        BEACONS.name,
        partitions,
        lambda _number, _low, _end: to,
        is_forward=is_forward,
        is_dry=is_dry,
        points=POINTS,
    )


def test_an_input_is_read_from_another_offset_next_and_rows_stay(cluster: Cluster) -> None:
    number = cluster.fold(b"k", [b"", b""])
    assert move(20, is_forward=True, partitions=[number], is_dry=True) == [whole.Moved(number, 12, 20, 8)]
    assert cluster.committed == {}
    assert move(20, is_forward=True, partitions=[number]) == [whole.Moved(number, 12, 20, 8)]
    ((rows, meta),) = cluster.committed.values()
    assert (rows, meta.next_offsets, meta.commit_number) == ({}, {BEACONS.name: 20}, 2)


def test_a_skip_never_goes_back_and_a_replay_never_forward(cluster: Cluster) -> None:
    number = cluster.fold(b"k", [b""] * 10)
    assert move(15, is_forward=True, partitions=[number]) == []
    assert move(30, is_forward=False, partitions=[number]) == []
    assert [one.records for one in move(15, is_forward=False, partitions=[number])] == [-5]


def test_offsets_that_are_not_there_and_slots_at_work_are_refused(cluster: Cluster) -> None:
    for offset in (9, 51):
        with pytest.raises(Unsafe, match=f"has offsets 10 to 50, not {offset}"):
            move(offset, is_forward=True, partitions=[0])
    with pytest.raises(Unsafe, match="no such input or partition"):
        move(20, is_forward=True, partitions=[PARTITIONS])
    cluster.slots = ["a/0"]
    with pytest.raises(Unsafe, match="at work"):
        move(20, is_forward=True)
    assert cluster.committed == {}


def test_the_rows_of_a_key_are_deleted_and_the_position_stays(cluster: Cluster) -> None:
    number = cluster.fold(b"k", [b""])

    def delete(*, is_dry: bool) -> keys.Deleted:
        return keys.delete(Settings(), APPLICATION, b"k", is_dry=is_dry, points=POINTS)

    assert delete(is_dry=True) == delete(is_dry=False) == keys.Deleted(number, 1, 0)
    ((rows, meta),) = cluster.committed.values()
    assert rows == {b"\x01k": None}
    assert (meta.next_offsets, meta.rows[1], meta.commit_number) == ({BEACONS.name: 11}, 0, 2)
    with pytest.raises(Unsafe, match="no rows of this key"):
        keys.delete(Settings(), APPLICATION, b"other", is_dry=False, points=POINTS)


def test_the_rows_of_a_key_are_read_beside_slots_at_work(cluster: Cluster) -> None:
    cluster.fold(b"k", [b"", b""])
    cluster.slots = ["a/0"]
    (row,) = keys.read(Settings(), APPLICATION, b"k")
    assert (row.store, row.key, row.row, row.deadline_ms) == ("counts", "k", 2, 1_100)
    assert keys.read(Settings(), APPLICATION, b"other") == []


def test_a_partition_that_never_committed_begins_at_the_end_too(cluster: Cluster, tmp_path: Path) -> None:
    folded = cluster.fold(b"k", [b""])

    def reset(inputs: whole.Inputs) -> list[whole.Done]:
        return whole.reset(Settings(), APPLICATION, inputs, is_dry=False, points=POINTS)

    ends = {number: {BEACONS.name: 50} for number in range(PARTITIONS)}
    assert {one.partition: one.next_offsets for one in reset("end")} == ends
    assert {number: meta.next_offsets for number, (_, meta) in cluster.committed.items()} == ends
    cluster.committed = {}
    assert [one.partition for one in reset("beginning")] == [folded], "the others begin there anyhow"

    saved = [SavedPartition(number, "", 0, "", None) for number in range(PARTITIONS)]
    savepoint.write(tmp_path, Savepoint(savepoint.FORMAT, APPLICATION.name, ROW_FORMAT, {}, saved))
    cluster.copies = {number: Copy(MemoryStore(), None) for number in range(PARTITIONS)}
    cluster.committed = {}
    whole.import_(Settings(), APPLICATION, tmp_path, "end", is_dry=False, points=POINTS)
    assert {number: meta.next_offsets for number, (_, meta) in cluster.committed.items()} == ends
