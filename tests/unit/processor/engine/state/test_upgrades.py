"""Upgrades and rollbacks: rows in one format, read by versions of the application that know another."""

import dataclasses
import struct
from collections.abc import Callable

import msgspec
import pytest

from services.processor.engine.application.application import Application, StoreSpec
from services.processor.engine.core.core import Core
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalMeta, MemoryStore
from services.processor.engine.state.meta import Meta, decode_meta, encode_meta
from services.processor.engine.state.rows import NewerFormat, deadline_of, pack, unpack
from shared.topics import BEACONS, VIEWS
from tests.unit.processor.engine.counting import APPLICATION, COUNTS, Counting

Drive = Callable[[Application], Driver]

#: Format 2 keeps the count in words, so that reading one format as the other fails loudly.
_encode_2 = "count {}".format


def _decode_2(data: bytes) -> int:
    word, number = data.decode().split()
    assert word == "count"
    return int(number)


def version(counts: StoreSpec[int]) -> Application:
    class Version(Counting):
        SPEC = counts

    return dataclasses.replace(APPLICATION, stores=(counts,), start=Version)


OLD = version(COUNTS)
#: One version ahead in what it reads, not yet in what it writes.
READS_NEW = version(dataclasses.replace(COUNTS, also_reads={2: _decode_2}))
WRITES_NEW = version(
    dataclasses.replace(
        COUNTS,
        format=2,
        encode=lambda count: _encode_2(count).encode(),
        decode=_decode_2,
        also_reads={1: msgspec.msgpack.Decoder(int).decode},
    )
)


def counted(driver: Driver) -> list[bytes]:
    return [output.value for output in driver.outputs(VIEWS)]


def test_rows_live_through_upgrades_and_rollbacks(drive: Drive) -> None:
    driver = drive(OLD)
    for number, application in enumerate((OLD, READS_NEW, OLD, READS_NEW, WRITES_NEW, READS_NEW, WRITES_NEW)):
        driver.restart_with(application)
        driver.pipe(BEACONS, b"every", b"", at_ms=1_000)
        # Rows that only some of the versions touch, read later by another.
        driver.pipe(BEACONS, b"only %d" % number, b"", at_ms=1_000)
    driver.advance_to(5_000)
    assert sorted(counted(driver)) == [b"1"] * 7 + [b"7"]


def test_a_rollback_too_far_is_refused_before_anything_is_touched() -> None:
    driver = Driver(WRITES_NEW)
    driver.pipe(BEACONS, b"a", b"", at_ms=1_000)
    with pytest.raises(NewerFormat, match="store counts has rows of format 2; this version reads 1: upgrade it"):
        driver.restart_with(OLD)


def test_having_once_written_the_new_format_is_not_forgotten() -> None:
    driver = Driver(WRITES_NEW)
    driver.pipe(BEACONS, b"a", b"", at_ms=1_000)
    driver.restart_with(READS_NEW)
    driver.pipe(BEACONS, b"b", b"", at_ms=1_000)
    with pytest.raises(NewerFormat, match="format 2"):
        driver.restart_with(OLD)


def test_state_with_a_store_that_this_version_lacks_is_refused() -> None:
    more = dataclasses.replace(OLD, stores=(*OLD.stores, dataclasses.replace(COUNTS, id=7, name="more")))
    driver = Driver(more)
    driver.pipe(BEACONS, b"a", b"", at_ms=1_000)
    with pytest.raises(NewerFormat, match="a store 7"):
        driver.restart_with(OLD)


def test_a_newer_row_stops_the_core_instead_of_setting_the_record_aside() -> None:
    local = MemoryStore()
    local.write({b"\x01a": pack(0, b"count 3", 2)}, LocalMeta(Meta({}, 0, 1), 1))
    core = Core(OLD, 0, local)
    with pytest.raises(NewerFormat, match="format 2"):
        core.fold([Record(BEACONS.name, 0, 0, 1_000, b"a", b"")])


def test_a_row_is_eight_bytes_and_its_payload() -> None:
    row = pack(1_795_000_000_000, b"payload", 200)
    assert len(row) == 8 + len(b"payload")
    assert unpack(row) == (1_795_000_000_000, 200, b"payload")
    assert deadline_of(row) == 1_795_000_000_000


def test_rows_in_the_former_envelope_are_read() -> None:
    former = struct.pack(">BQ", 1, 1_795_000_000_000) + b"payload"
    assert unpack(former) == (1_795_000_000_000, 1, b"payload")
    assert deadline_of(former) == 1_795_000_000_000


def test_a_newer_envelope_is_refused() -> None:
    for read in (unpack, deadline_of):
        with pytest.raises(NewerFormat, match="up to 2"):
            read(b"\x03" + bytes(20))


def test_a_deadline_that_has_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="beyond"):
        pack(1 << 48, b"")


def test_meta_written_before_stores_had_formats_is_read() -> None:
    former = msgspec.msgpack.encode([{"beacons": 3}, 5, 2, 1])
    assert decode_meta(former) == Meta({"beacons": 3}, 5, 2, 1, {})
    assert decode_meta(encode_meta(Meta({}, 0, 1, store_formats={1: 2}))).store_formats == {1: 2}


def test_formats_and_ids_are_one_byte() -> None:
    with pytest.raises(ValueError, match=r"1\.\.255"):
        dataclasses.replace(COUNTS, format=0)
