"""Bodies: their limits on size, time and bytes in memory, and what comes in pieces."""

import asyncio
import gzip
from collections.abc import AsyncIterator

from prometheus_client import REGISTRY

from tests.unit.collector.http.serving import RULES, Served, until
from tests.unit.collector.intake.bodies import mux_body, mux_event


async def test_more_bytes_than_fit_are_refused_and_room_is_given_back() -> None:
    served = Served(body_seconds_max=60.0)
    await served.start()
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n"

    def in_flight() -> float | None:
        return REGISTRY.get_sample_value("playhead_collector_in_flight_bytes")

    held = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(11)]
    for _, writer in held:
        writer.write(head + b"x" * 8_990)
    await until(lambda: in_flight() == 98_890)
    answer = await served.raw(head + b"x" * 9_000)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"Retry-After: " in answer
    for _, writer in held:
        writer.close()
        await writer.wait_closed()
    await until(lambda: in_flight() == 0)
    assert (await served.raw(head + b"x" * 9_000)).startswith(b"HTTP/1.1 200 ")
    assert in_flight() == 0
    await served.stop()


async def test_what_waits_for_kafka_counts_by_what_it_has_become(served: Served) -> None:
    """A packed body is small, its records are not: they count while they wait, and are given back."""
    served.rules = RULES.model_copy(update={"body_bytes_max": 100_000})
    events = [mux_event(xsqno=number) for number in range(300)]
    packed = gzip.compress(mux_body(*events))
    assert len(packed) < 5_000
    async with served.client.post("/", data=packed, headers={"Content-Encoding": "gzip"}) as answer:
        assert (answer.status, "Retry-After" in answer.headers) == (503, True)
    async with served.client.post("/", data=mux_body(*events[:50])) as answer:
        assert answer.status == 200
    assert len(served.stored()) == 50
    assert REGISTRY.get_sample_value("playhead_collector_in_flight_bytes") == 0


async def test_a_body_too_large_is_kept_in_part_and_not_sent_again(served: Served) -> None:
    body = mux_body(mux_event(vtt="x" * 20_000))
    async with served.client.post("/", data=body) as answer:
        assert answer.status == 200
    ((topic, why),) = served.stored()
    assert (topic, why["reason"]) == ("rejected", b"too_large")
    assert served.sink.records[0].value == body[:10_000]


async def test_a_body_of_the_largest_size_is_taken_whole(served: Served) -> None:
    filler = RULES.body_bytes_max - len(mux_body(mux_event(vtt="")))
    async with served.client.post("/", data=mux_body(mux_event(vtt="x" * filler))) as answer:
        assert answer.status == 200
    assert [topic for topic, _ in served.stored()] == ["beacons"]


async def test_a_body_in_pieces_is_put_together(served: Served) -> None:
    body = mux_body(mux_event(), mux_event(xsqno=8))

    async def pieces() -> AsyncIterator[bytes]:
        for begin in range(0, len(body), 50):
            yield body[begin : begin + 50]
            await asyncio.sleep(0)

    async with served.client.post("/", data=pieces()) as answer:
        assert answer.status == 200
    assert [beacon.seq for _, beacon in served.stored()] == [7, 8]


async def test_a_body_that_does_not_come_is_not_waited_for(served: Served) -> None:
    answer = await served.raw(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nConnection: close\r\n" in answer
    assert served.stored() == []


async def test_a_client_that_breaks_off_leaves_nothing(served: Served) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
    writer.close()
    await writer.wait_closed()
    # A later request on another connection is answered, and nothing of the broken one was stored by then.
    async with served.client.post("/", data=mux_body(mux_event())) as answer:
        assert answer.status == 200
    assert len(served.stored()) == 1
