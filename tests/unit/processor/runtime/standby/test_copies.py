"""Copies: what a standby does in one turn, and with what it gives its stores up."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from deploy.local.process import wait_until
from services.processor.engine.state.local import LocalMeta
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import pack
from services.processor.runtime.plan import Plan
from services.processor.runtime.standby import copies
from services.processor.runtime.standby.copies import Standby
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores
from services.processor.settings import ProcessorSettings
from tests.unit.processor.engine.counting import APPLICATION

SECONDS_MAX = 30.0
PARTITIONS = (0, 1)
#: So many that one turn does not look at all of their timers.
ROWS = {b"\x01%05d" % number: pack(1_000 + number, b"somebody") for number in range(2_500)}


class Silent:
    """Stands in for the client of a changelog that has nothing new."""

    def get_watermark_offsets(self, _at: TopicPartition, **_: Any) -> tuple[int, int]:
        return 0, 2

    def consume(self, *_: Any) -> list[Any]:
        return []

    def incremental_assign(self, _: Any) -> None: ...

    def incremental_unassign(self, _: Any) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(ProcessorSettings(slot="test/0", state_dir=tmp_path, rewrite_interval_ms=1_000), APPLICATION)


@pytest.fixture
def standby(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Standby:
    """With a copy of each partition, all of whose rows were deleted long ago."""
    monkeypatch.setattr(copies, "standby_consumer", lambda *_: Silent())
    # How long the changelog keeps deletions, of which a broker would be asked.
    monkeypatch.setattr(Stores, "check", lambda *_, **__: None)
    now_ms = copies._now_ms()
    for partition in PARTITIONS:
        store = Stores(plan).open(partition)
        store.write(ROWS, LocalMeta(Meta({}, 1, 1), 1, now_ms))
        store.write(dict.fromkeys(ROWS), LocalMeta(Meta({}, 1, 2), 2, now_ms))
        store._note_rewritten(0)
        store._db.flush()
        store.close()
    made = Standby(plan, Stores(plan))
    made.follow(PARTITIONS)
    return made


@pytest.fixture
def compacted(monkeypatch: pytest.MonkeyPatch) -> list[RocksStore]:
    """Stores whose files were compacted by the processor. RocksDB does so too, when it likes."""
    found: list[RocksStore] = []
    compact = RocksStore.compact

    def noted(store: RocksStore) -> None:
        compact(store)
        found.append(store)

    monkeypatch.setattr(RocksStore, "compact", noted)
    return found


def test_files_of_copies_are_written_again_beside_its_turns_one_copy_after_the_other(
    standby: Standby, compacted: list[RocksStore]
) -> None:
    stores = [standby._copies[partition].store for partition in PARTITIONS]
    standby.copy()
    standby.copy()
    assert not compacted, "no turn does all of it"
    assert stores[1].is_rewrite_due

    def is_done() -> bool:
        standby.copy()
        return len(compacted) == len(PARTITIONS)

    wait_until(is_done, SECONDS_MAX, "the files of all copies are written again")
    assert compacted == stores
    assert not any(store.is_rewrite_due for store in stores)
    standby.close()


def test_who_takes_over_does_not_wait_for_files_to_be_written_again(
    standby: Standby, compacted: list[RocksStore]
) -> None:
    standby.copy()
    stores = standby.promote()
    assert set(stores) == set(PARTITIONS)
    for store in stores.values():
        assert store.is_rewrite_due
        store.close()
    assert not compacted
