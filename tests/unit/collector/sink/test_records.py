"""What a request becomes in Kafka."""

from typing import Any

from services.collector.intake.post import ParsedBody, Rejected
from services.collector.sink.records import Record, records_of
from shared.codec import BEACON
from shared.partitioning import partition_of
from shared.schemas.beacon import Beacon
from shared.topics import PROFILES, RECORD_BYTES_MAX
from tests.unit.collector.intake.bodies import post

LAPTOP = PROFILES["laptop"]


def beacon(view_id: str, **attrs: Any) -> Beacon:
    return Beacon(
        schema_version=1,
        source="mux",
        customer_id="acme",
        view_id=view_id,
        event="heartbeat",
        source_event="hb",
        recv_time_ms=2,
        client_time_ms=1,
        attrs=attrs,
    )


def rejected(value: bytes, **fields: Any) -> Rejected:
    return Rejected(**{"reason": "invalid", "detail": "no", "value": value} | fields)


def headers(record: Record) -> dict[str, Any]:
    return dict(record.headers)


def test_a_beacon_is_keyed_by_its_view_and_placed_by_its_key() -> None:
    beacons = [beacon(f"v{number}") for number in range(50)]
    records = records_of(ParsedBody(beacons, []), post(b""), LAPTOP)

    assert [BEACON.decode(record.value) for record in records] == beacons
    assert [record.key for record in records] == [f"acme:v{number}".encode() for number in range(50)]
    assert {record.topic for record in records} == {"beacons"}
    assert all(record.partition == partition_of(record.key or b"", 8) for record in records)
    assert len({record.partition for record in records}) == 8


def test_a_rejected_input_says_why_and_whence() -> None:
    came = post(b"", origin="/cmcd/acme", content_type="application/cmcd", content_encoding="gzip")
    line = rejected(b"e=t", customer_id="acme", view_id="s-1")
    body = rejected(b"\x1f\x8b...", reason="undecodable", detail="bröken", encoded=True)
    first, second = records_of(ParsedBody([], [line, body]), came, LAPTOP)

    assert (first.topic, first.key, first.value) == ("rejected", b"acme:s-1", b"e=t")
    assert headers(first) == {
        "reason": b"invalid",
        "detail": b"no",
        "service": b"collector",
        "origin": b"/cmcd/acme",
        "customer": b"acme",
        "content-type": b"application/cmcd",
    }
    assert first.partition == partition_of(b"acme:s-1", 8)
    assert (second.key, second.value) == (None, b"\x1f\x8b...")
    assert headers(second)["content-encoding"] == b"gzip"
    assert headers(second)["detail"] == "bröken".encode()
    assert 0 <= second.partition < 8


def test_a_beacon_larger_than_a_record_is_rejected() -> None:
    large = beacon("v", text="x" * RECORD_BYTES_MAX)
    small, record = records_of(ParsedBody([large, beacon("w")], []), post(b""), LAPTOP)

    assert small.topic == "beacons"
    assert (record.topic, record.key, headers(record)["reason"]) == ("rejected", b"acme:v", b"too_large")
    assert record.value == BEACON.encode(large)[:RECORD_BYTES_MAX]
    assert b"first 1000000 of" in headers(record)["detail"]


def test_of_a_large_body_the_beginning_is_kept() -> None:
    (record,) = records_of(ParsedBody([], [rejected(b"x" * 1_500_000, reason="too_large")]), post(b""), LAPTOP)
    assert record.value == b"x" * RECORD_BYTES_MAX
    assert b"(kept: the first 1000000 of 1500000 bytes)" in headers(record)["detail"]


def test_strange_text_cannot_break_a_header() -> None:
    (record,) = records_of(ParsedBody([], [rejected(b"")]), post(b"", origin="/\ud800" + "a" * 5_000), LAPTOP)
    assert headers(record)["origin"] == b"/?" + b"a" * 998
