"""What every `Sink` must do. A test class of an implementation inherits this and gives the two fixtures."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from services.collector.sink.records import Record
from services.collector.sink.sink import Sink, Unstored
from shared import codec
from shared.schemas.beacon import Beacon
from shared.topics import BEACONS, REJECTED

Stored = Callable[[int], Awaitable[list[Record]]]

DRAIN_SECONDS_MAX = 20.0


def beacon_record(number: int, partition: int = 0) -> Record:
    """A record of topic `beacons` that is identified by its number."""
    beacon = Beacon(
        schema_version=1,
        source="mux",
        customer_id="sink-contract",
        view_id="view",
        event="heartbeat",
        source_event="hb",
        recv_time_ms=0,
        client_time_ms=0,
        seq=number,
    )
    return Record(BEACONS.name, partition, b"sink-contract:view", codec.BEACON.encode(beacon), [])


def number_of(record: Record) -> int:
    """The number that `beacon_record` gave a record."""
    number = codec.BEACON.decode(record.value).seq
    assert number is not None
    return number


class SinkContract:
    """Inherit, and define fixtures `sink` (fresh) and `stored` (the first n records that are durable, in order)."""

    async def test_what_was_stored_is_there_when_store_returns(self, sink: Sink, stored: Stored) -> None:
        records = [beacon_record(0), beacon_record(1), beacon_record(2)]
        await sink.store(records)
        assert sink.records_waiting() == 0
        assert await stored(3) == records

    async def test_a_record_keeps_its_topic_partition_key_value_and_headers(self, sink: Sink, stored: Stored) -> None:
        records = [
            Record(REJECTED.name, 3, None, b"\x00 any bytes \xff", [("reason", b"invalid"), ("detail", "ä".encode())]),
            Record(REJECTED.name, 3, b"acme:v", b"", []),
        ]
        await sink.store(records)
        assert await stored(2) == records

    async def test_requests_at_the_same_time_do_not_mix(self, sink: Sink, stored: Stored) -> None:
        requests = [[beacon_record(10 * request + n) for n in range(10)] for request in range(20)]
        await asyncio.gather(*(sink.store(records) for records in requests))
        found = await stored(200)
        assert sorted(found, key=number_of) == [r for records in requests for r in records]
        for begin in range(0, 200, 10):
            assert found[begin : begin + 10] == requests[number_of(found[begin]) // 10]

    async def test_nothing_to_store_is_stored_at_once(self, sink: Sink) -> None:
        await sink.store([])
        assert sink.records_waiting() == 0

    async def test_it_is_healthy_until_it_is_closed_and_leaves_nothing_behind(self, sink: Sink) -> None:
        await sink.store([beacon_record(0)])
        assert sink.health().ok
        assert await sink.close(DRAIN_SECONDS_MAX) == 0
        with pytest.raises(Unstored) as unstored:
            await sink.store([beacon_record(1)])
        assert unstored.value.reason == "dead"
