"""Requests that go directly to their route are answered as the application answers them."""

import asyncio
import re

import orjson
import pytest
from prometheus_client import REGISTRY

from services.collector.http import direct
from services.collector.intake.post import Outcome
from tests.unit.collector.http.serving import Served
from tests.unit.collector.intake.bodies import mux_body, mux_event, native_beacon

MUX = mux_body(mux_event())
NATIVE = orjson.dumps(native_beacon())
ORIGIN = b"Origin: https://site.example\r\n"
_DATE = re.compile(rb"Date: [^\r]+")
_RETRY = re.compile(rb"Retry-After: \d+")


def post(path: str, body: bytes, headers: bytes = b"", version: bytes = b"1.1") -> bytes:
    """A request on a connection that says no more."""
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST %s HTTP/%s\r\nHost: a\r\n%s%s\r\n%s" % (path.encode(), version, headers, length, body)


REQUESTS = [
    post("/", MUX),
    post("/", MUX, ORIGIN),
    post("/", MUX, "Origin: https://sité.example\r\n".encode()),
    post("/", b"?", ORIGIN),
    post("/", b""),
    post("/?token=x", MUX),
    post("/", MUX, b"Connection: close\r\n"),
    post("/", MUX, ORIGIN, version=b"1.0"),
    post("/", MUX, b"Connection: keep-alive\r\n", version=b"1.0"),
    post("/v1/beacons?key=acme", NATIVE),
    post("/v1/beacons", NATIVE, b"Authorization: Bearer acme\r\n" + ORIGIN),
    post("/v1/beacons?key=acme", b"?", ORIGIN),
    post("/v1/beacons?key=acme", orjson.dumps({"beacons": [native_beacon(), {}]})),
    post("/v1/beacons", NATIVE),
]


async def answered(served: Served, request: bytes) -> list[bytes]:
    """The lines of the answer's head in their alphabetical order, then its body; without what differs from second to second."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    try:
        writer.write(request)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        length = re.search(rb"Content-Length: (\d+)", head)
        assert length is not None
        body = await reader.readexactly(int(length[1]))
    finally:
        writer.close()
        await writer.wait_closed()
    return [
        *sorted(_RETRY.sub(b"", _DATE.sub(b"", head)).split(b"\r\n"), key=lambda line: (line[:4] != b"HTTP", line)),
        body,
    ]


def counted(route: str, status: int) -> float:
    labels = {"route": route, "status": str(status)}
    return REGISTRY.get_sample_value("playhead_collector_requests_total", labels) or 0.0


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("draining", [False, True])
async def test_both_ways_give_the_same_answers(
    served: Served, monkeypatch: pytest.MonkeyPatch, draining: bool, fails: bool
) -> None:
    served.drain.begun = draining
    served.sink.failing = "queue_full" if fails else None
    directly = [await answered(served, request) for request in REQUESTS]
    monkeypatch.setattr(direct, "_is_plain", lambda _: False)
    assert [await answered(served, request) for request in REQUESTS] == directly
    assert any(answer[0] == b"HTTP/1.1 200 OK" for answer in directly) is not fails


async def test_answers_are_counted_by_route_and_only_plain_requests_go_directly(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []

    class Noted(direct.Written):
        def __init__(self, data: bytes) -> None:
            written.append(data)
            super().__init__(data)

    monkeypatch.setattr(direct, "Written", Noted)
    before = counted("mux", 200), counted("native", 200)
    for request in REQUESTS:
        await answered(served, request)
    assert (counted("mux", 200) - before[0], counted("native", 200) - before[1]) == (9, 3)
    assert len(written) == 8


async def test_an_error_of_ours_is_answered_500_and_counted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def receive(*_: object, **__: object) -> Outcome:
        raise RuntimeError("a fault")

    monkeypatch.setattr(served.reception, "receive", receive)
    before = counted("mux", 500)
    answer = await answered(served, post("/", MUX, ORIGIN))
    assert answer[0].startswith(b"HTTP/1.1 500 ")
    assert b"Access-Control-Allow-Origin: https://site.example" in answer
    assert counted("mux", 500) == before + 1


async def test_requests_of_one_packet_are_answered_in_their_order(served: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(post("/", MUX) + post("/v1/beacons?key=acme", NATIVE) + post("/", MUX, b"Connection: close\r\n"))
    answers = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    await writer.wait_closed()
    assert [len(part) > 0 for part in answers.split(b"HTTP/1.1 200 OK\r\n")] == [False, True, True, True]
    assert answers.count(b'{"status":"stored"}') == 1
    assert [record.topic for record in served.sink.records] == ["beacons"] * 3
