"""The spool: first in first out across processes, torn tails and failed disks."""

from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from services.collector.sink import spool_files
from services.collector.sink.records import Record
from services.collector.sink.spool_files import Spool, SpoolTaken
from tests.contracts.sink_contract import beacon_record, number_of


def drained(spool: Spool, bytes_max: int = 1_000_000) -> list[Record]:
    found: list[Record] = []
    while True:
        oldest = spool.oldest(bytes_max)
        if not oldest.size_bytes:
            return found
        found += oldest.records
        spool.take_out(oldest.size_bytes)


def counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("playhead_collector_spooled_total", {"outcome": outcome}) or 0


def files(folder: Path, suffix: str = "spool") -> list[Path]:
    return sorted(folder.glob(f"*.{suffix}"))


@pytest.mark.parametrize("bytes_max", [1, 500, 1_000_000])
def test_what_goes_in_comes_out_in_its_order(tmp_path: Path, bytes_max: int) -> None:
    spool = Spool(tmp_path, segment_bytes=1_000)
    records = [beacon_record(number) for number in range(40)]
    records[3] = Record("rejected", 3, None, b"\xff", [("reason", b"x"), ("text", "y"), ("none", None)])
    for begin in range(0, 40, 4):
        spool.append([records[begin : begin + 2], records[begin + 2 : begin + 4]], now_ms=begin)
    assert len(files(tmp_path)) > 3
    assert spool.oldest_ms == 0
    assert drained(spool, bytes_max) == records
    assert (spool.bytes, spool.oldest_ms, files(tmp_path)) == (0, None, [])
    spool.append([[beacon_record(50)]], now_ms=9)
    assert drained(spool) == [beacon_record(50)]
    spool.close()


def test_a_segment_ends_with_the_append_that_reaches_the_bound(tmp_path: Path) -> None:
    spool = Spool(tmp_path, segment_bytes=1_000)
    appended = 0
    for number in range(40):
        before = spool.bytes
        spool.append([[beacon_record(number)]], now_ms=number)
        appended = max(appended, spool.bytes - before)
    *ended, _ = [file.stat().st_size for file in files(tmp_path)]
    assert len(ended) > 3
    assert all(1_000 <= size < 1_000 + appended for size in ended)
    spool.close()


def test_the_next_process_finds_what_the_last_one_left(tmp_path: Path) -> None:
    first = Spool(tmp_path, segment_bytes=500)
    first.append([[beacon_record(number)] for number in range(4)], now_ms=7)
    first.append([[beacon_record(4)]], now_ms=8)
    with pytest.raises(SpoolTaken):
        Spool(tmp_path)
    first.close()
    second = Spool(tmp_path)
    assert second.oldest_ms == 7
    second.append([[beacon_record(5)]], now_ms=9)
    assert [number_of(record) for record in drained(second)] == [0, 1, 2, 3, 4, 5]
    second.close()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-3], lambda data: data[:-3] + b"xyz", lambda data: data + b"\0" * 20]
)
def test_a_torn_tail_costs_only_what_was_never_answered(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    spool = Spool(tmp_path)
    spool.append([[beacon_record(0)]], now_ms=1)
    spool.append([[beacon_record(1)]], now_ms=1)
    spool.close()
    (path,) = files(tmp_path)
    path.write_bytes(damaged := damage(path.read_bytes()))
    spool = Spool(tmp_path)
    spool.append([[beacon_record(2)]], now_ms=1)
    found = [number_of(record) for record in drained(spool)]
    spool.close()
    assert found == ([0, 1, 2] if damaged.endswith(b"\0" * 20) else [0, 2])
    # What could not be read is kept for an operator.
    assert [file.read_bytes() for file in files(tmp_path, "torn")] == [damaged]


def flipped(path: Path, part: bytes) -> None:
    """A bit of the file changes, where `part` is."""
    data = bytearray(path.read_bytes())
    data[data.index(part)] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("is_running", [True, False])
@pytest.mark.parametrize("bytes_max", [1, 1_000_000])
def test_a_request_that_cannot_be_read_costs_no_other(tmp_path: Path, bytes_max: int, *, is_running: bool) -> None:
    before = counted("unreadable")
    spool = Spool(tmp_path)
    for number in range(10):
        spool.append([[beacon_record(number)]], now_ms=number)
    whole = spool.bytes
    for number in (0, 4, 5):
        flipped(files(tmp_path)[0], beacon_record(number).value)
    damaged = files(tmp_path)[0].read_bytes()
    if not is_running:
        spool.close()
        spool = Spool(tmp_path)
    assert spool.bytes == whole
    assert [number_of(record) for record in drained(spool, bytes_max)] == [1, 2, 3, 6, 7, 8, 9]
    assert (spool.bytes, spool.oldest_ms, files(tmp_path)) == (0, None, [])
    assert [file.read_bytes() for file in files(tmp_path, "torn")] == [damaged]
    # The two that follow each other are one place.
    assert counted("unreadable") - before == 2
    spool.close()


def test_a_request_of_another_version_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path)
    spool.append([[beacon_record(0)]], now_ms=1)
    with monkeypatch.context() as patched:
        patched.setattr(spool_files.msgspec.msgpack, "encode", lambda _: b"\x91\x91\xa1x")
        spool.append([[beacon_record(1)]], now_ms=1)
    spool.append([[beacon_record(2)]], now_ms=1)
    assert [number_of(record) for record in drained(spool)] == [0, 2]
    assert len(files(tmp_path, "torn")) == 1
    spool.close()


def test_a_disk_that_refuses_keeps_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path)
    spool.append([[beacon_record(0)]], now_ms=1)
    size = spool.bytes

    def fails(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_file():
            raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(spool_files.os, "fsync", fails)
        for _ in range(100):
            with pytest.raises(OSError, match="no space"):
                spool.append([[beacon_record(1)]], now_ms=1)
    assert [file.stat().st_size for file in files(tmp_path)] == [size]
    spool.append([[beacon_record(2)]], now_ms=1)
    assert [number_of(record) for record in drained(spool)] == [0, 2]
    assert (files(tmp_path), files(tmp_path, "torn")) == ([], [])
    spool.close()


def test_a_disk_that_fails_is_reported_and_what_comes_later_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path)
    spool.append([[beacon_record(0)]], now_ms=1)

    def fails(_descriptor: int) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(spool_files.os, "fsync", fails)
        with pytest.raises(OSError, match="no space"):
            spool.append([[beacon_record(1)]], now_ms=1)
    spool.append([[beacon_record(2)]], now_ms=1)
    assert [number_of(record) for record in drained(spool)] == [0, 2]
    spool.close()
