"""The files of a store are written again in turns, between which its rows change and it may be given to another."""

from pathlib import Path

import pytest

from deploy.local.process import wait_until
from services.processor.engine.state.local import LocalMeta
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import pack
from services.processor.runtime.store.rewriting import Rewriting
from services.processor.runtime.store.rocksdb import RocksStore
from tests.unit.processor.runtime.store.test_rocksdb import MEMORY

SECONDS_MAX = 30.0


def at(number: int) -> LocalMeta:
    return LocalMeta(Meta({}, clock_ms=1, commit_number=number), number)


@pytest.fixture
def store(tmp_path: Path) -> RocksStore:
    """With 2,500 rows, every second one deleted."""
    made = RocksStore(tmp_path / "store", MEMORY, open_seconds_max=5, rewrite_seconds=0.0)
    rows = {b"\x01%05d" % number: pack(1_000 + number, b"row") for number in range(2_500)}
    made.write(rows, at(1))
    made.write(dict.fromkeys(list(rows)[::2]), at(2))
    return made


def test_a_row_that_comes_back_between_two_turns_keeps_its_timer(store: RocksStore) -> None:
    rewriting = Rewriting(store)
    assert not rewriting.turn()
    back = {b"\x0100000": pack(1_000, b"again"), b"\x0102498": pack(3_498, b"again")}
    store.write(back, at(3))
    wait_until(rewriting.turn, SECONDS_MAX, "the files are written again")
    left = [key for _, key in store.due((0, b""), 1 << 62, 5_000)]
    assert left == sorted([*back, *(b"\x01%05d" % number for number in range(1, 2_500, 2))])
    assert not store.is_rewrite_due
    store.close()


@pytest.mark.parametrize("turns", [0, 1, 3, 4])
def test_one_that_is_given_up_is_due_again(store: RocksStore, turns: int) -> None:
    """Before it begins, among its timers, and when all of these are done."""
    rewriting = Rewriting(store)
    for _ in range(turns):
        assert not rewriting.turn()
        assert not store.is_rewrite_due
    rewriting.give_up()
    assert store.is_rewrite_due
    store.close()


def test_a_store_is_closed_only_when_its_files_are_whole(store: RocksStore) -> None:
    rewriting = Rewriting(store)
    for _ in range(5):
        rewriting.turn()
    # Whether its thread has begun or not.
    store.close()
    wait_until(rewriting.turn, SECONDS_MAX, "the thread has ended")
