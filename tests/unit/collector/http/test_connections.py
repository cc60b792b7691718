"""Connections of clients that are slow, many or wrong, on raw sockets."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from services.collector.http import connections
from services.collector.http.connections import ConnectionLimits, room_for
from services.collector.sink.records import Record
from tests.unit.collector.http.serving import Served, until
from tests.unit.collector.intake.bodies import mux_body, mux_event

BODY = mux_body(mux_event())
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(BODY)
SCHEMA = b"GET /v1/beacons/schema.json HTTP/1.1\r\nHost: a\r\n\r\n"
SECONDS_MAX = 20.0

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def serving(**limits: float) -> AsyncIterator[Served]:
    served = Served(body_seconds_max=60.0, connections=ConnectionLimits(**limits))  # type: ignore[arg-type]
    await served.start()
    try:
        yield served
    finally:
        while _opened:
            writer = _opened.pop()[1]
            # Not closed: bytes that the collector does not read would be waited for.
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await served.stop()


_opened: list[Connection] = []


async def connected(served: Served) -> Connection:
    """A connection that is closed with the collector, at the latest."""
    _opened.append(await asyncio.open_connection("127.0.0.1", served.port))
    return _opened[-1]


async def status(connection: Connection, request: bytes) -> int:
    """The status of the answer to a request; 0 when the connection was closed instead."""
    reader, writer = connection
    try:
        writer.write(request)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS_MAX)
    except (asyncio.IncompleteReadError, ConnectionError):
        return 0
    return int(head.split()[1])


async def closed(connection: Connection) -> None:
    """Returns when the other side has closed it, having sent nothing."""
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(connection[0].read(), SECONDS_MAX) == b""


def given_up(reason: str) -> float:
    return REGISTRY.get_sample_value("playhead_collector_connections_closed_total", {"reason": reason}) or 0


async def until_gauge(gauge: str, value: float) -> None:
    await until(lambda: REGISTRY.get_sample_value(f"playhead_collector_{gauge}") == value)


async def test_a_head_that_does_not_end_is_not_waited_for() -> None:
    before = given_up("slow_head")
    async with serving(head_seconds_max=0.3) as served:
        idle, used, slow = [await connected(served) for _ in range(3)]
        assert await status(used, HEAD + BODY) == 200

        async def dribble(connection: Connection) -> None:
            with contextlib.suppress(ConnectionError):
                for byte in HEAD * 100:
                    connection[1].write(bytes([byte]))
                    await connection[1].drain()
                    await asyncio.sleep(0.02)

        async def second_head(connection: Connection) -> None:
            connection[1].write(HEAD[:20])

        dribbling = asyncio.create_task(dribble(slow))
        await second_head(used)
        await closed(slow)
        await closed(used)
        dribbling.cancel()
        assert given_up("slow_head") - before == 2
        # A client that sends nothing yet is not slow.
        assert await status(idle, HEAD + BODY) == 200


async def test_a_body_may_take_longer_than_a_head() -> None:
    async with serving(head_seconds_max=0.05) as served:
        reader, writer = await connected(served)
        slow = await connected(served)
        slow[1].write(HEAD[:10])
        writer.write(HEAD)
        await closed(slow)
        assert await status((reader, writer), BODY) == 200


async def test_a_body_that_drips_is_not_waited_for() -> None:
    """The time is for the whole body: a byte now and then does not prolong it."""
    served = Served(body_seconds_max=0.3)
    await served.start()
    reader, writer = await connected(served)

    async def drip() -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b" ")
                await asyncio.sleep(0.02)

    writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
    dripping = asyncio.create_task(drip())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS_MAX)
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nConnection: close\r\n" in head
    dripping.cancel()
    writer.close()
    await served.stop()


async def test_what_comes_of_a_body_after_its_answer_is_no_head() -> None:
    """A body too large is answered before it has come: a connection cut off then would hide the answer."""
    async with serving() as served:
        reader, writer = await connected(served)
        writer.write(b"POST /v1/beacons?key=a HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n")
        writer.write(b" " * 20_000)
        await until(lambda: len(served.sink.records) == 1)
        for _ in range(99):
            writer.write(b" " * 20_000)
            await writer.drain()
            await asyncio.sleep(0)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS_MAX)
        assert head.startswith(b"HTTP/1.1 413 ")


async def test_a_head_that_grows_and_grows_is_cut_off() -> None:
    before = given_up("large_head")
    async with serving() as served:
        connection = await connected(served)
        header = b"X: " + b"x" * 1_000 + b"\r\n"
        connection[1].write(HEAD[:-2])
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                connection[1].write(header)
                await connection[1].drain()
                await asyncio.sleep(0)
        await closed(connection)
        assert given_up("large_head") - before == 1
        async with served.client.get("/", headers={"Cookie": "c" * 30_000}) as answer:
            assert answer.status == 200


async def test_a_new_connection_takes_the_place_of_the_one_that_has_waited_longest() -> None:
    before = given_up("displaced")
    async with serving(connections_max=3) as served:
        held = [await connected(served) for _ in range(3)]
        assert await status(held[0], HEAD + BODY) == 200
        held[1][1].write(HEAD[:30])
        newest = await connected(served)
        assert await status(newest, HEAD + BODY) == 200
        await closed(held[1])
        assert [await status(held[number], HEAD + BODY) for number in (0, 2)] == [200, 200]
        assert given_up("displaced") - before == 1
        await until_gauge("connections", 3)


@pytest.mark.parametrize("rest", [b"", b"x"])
async def test_a_connection_whose_request_is_answered_before_its_body_came_loses_its_place(rest: bytes) -> None:
    before = given_up("displaced")
    async with serving(connections_max=2) as served:
        held = [await connected(served) for _ in range(2)]
        for one in held:
            assert await status(one, b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n") == 200
            one[1].write(rest)
        assert await status(await connected(served), HEAD + BODY) == 200
        assert given_up("displaced") - before == 1


async def test_a_head_that_follows_a_body_which_came_after_its_answer_is_not_waited_for() -> None:
    before = given_up("slow_head")
    async with serving(head_seconds_max=0.2) as served:
        connection = await connected(served)
        assert await status(connection, b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n") == 200
        connection[1].write(b"x")
        await until(lambda: all(one._body.is_eof() for one in held_by(served).waiting))
        connection[1].write(HEAD[:30])
        await until(lambda: given_up("slow_head") - before == 1)


async def test_when_all_connections_are_busy_a_new_one_hears_so() -> None:
    async with serving(connections_max=2) as served:
        busy = [await connected(served) for _ in range(2)]
        for _, writer in busy:
            writer.write(HEAD + BODY[:-1])
        await until_gauge("connections", 2)
        await until_gauge("in_flight_bytes", 2 * (len(BODY) - 1))
        reader, writer = await connected(served)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS_MAX)
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nAccess-Control-Allow-Origin: *\r\n" in head
        assert b"\r\nRetry-After: " in head
        writer.close()
        assert [await status(one, BODY[-1:]) for one in busy] == [200, 200]
        assert len(served.stored()) == 2


def held_by(served: Served) -> connections.Connections:
    assert served.listener._connections is not None
    return served.listener._connections


async def in_little_room(served: Served, connection: Connection) -> None:
    """The collector has the connection; the kernel keeps little of its answers."""
    port = connection[1].get_extra_info("sockname")[1]
    server: Any = served.runner.server
    while True:
        for one in server.connections:
            if one._wire.get_extra_info("peername")[1] == port:
                one._wire.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
                return
        await asyncio.sleep(0.001)


async def unread_answers(served: Served, reached: Callable[[], bool]) -> Connection:
    """A client that asks again and again and reads no answer, until something is reached."""
    connection = await connected(served)
    connection[1].transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.wait_for(in_little_room(served, connection), SECONDS_MAX)
    async with asyncio.timeout(SECONDS_MAX):
        while not reached():
            connection[1].write(SCHEMA)
            await asyncio.sleep(0.001)
    return connection


async def reading_nothing(served: Served) -> Connection:
    """Such a client, once its answers have no room on their way."""
    known = len(held_by(served).unread)
    return await unread_answers(served, lambda: len(held_by(served).unread) > known)


def files_open() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_a_client_that_does_not_read_loses_its_place_to_a_new_one() -> None:
    before = given_up("displaced")
    async with serving(connections_max=2, unread_seconds_max=60.0) as served:
        for _ in range(2):
            # The next request waits behind an answer, so that the connection does not wait for one.
            (await reading_nothing(served))[1].write(SCHEMA)
        await until(lambda: held_by(served)._longest_unread() is not None and not held_by(served).waiting)
        assert await status(await connected(served), HEAD + BODY) == 200
        assert given_up("displaced") - before == 1


async def test_answers_are_not_kept_for_a_client_that_does_not_read() -> None:
    before = given_up("unread")
    async with serving(connections_max=2, unread_seconds_max=0.3) as served:
        listening = files_open()
        for _ in range(3):
            await reading_nothing(served)
            await until(lambda: not held_by(served).unread)
        await until(lambda: files_open() == listening + len(_opened))
        assert given_up("unread") - before == 3


async def test_a_connection_that_is_closed_keeps_no_file_for_answers_that_nobody_reads() -> None:
    async with serving(unread_seconds_max=0.3) as served:
        listening = files_open()
        server: Any = served.runner.server

        def is_waiting_to_be_sent() -> bool:
            return any(one._wire.get_write_buffer_size() for one in server.connections)

        _, writer = await unread_answers(served, is_waiting_to_be_sent)
        assert not held_by(served).unread
        writer.write(HEAD.replace(b"Host: a", b"Host: a\r\nConnection: close") + BODY)
        await until(lambda: len(served.stored()) == 1)
        await until(lambda: files_open() == listening + 1)
        await until_gauge("connections", 0)


async def test_a_client_that_reads_late_gets_all_its_answers() -> None:
    async with serving() as served:
        reader, writer = await reading_nothing(served)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        writer.write(SCHEMA.replace(b"Host: a", b"Host: a\r\nConnection: close"))
        answers = await asyncio.wait_for(reader.read(), SECONDS_MAX)
        assert b"\r\nConnection: close\r\n" in answers
        await until_gauge("connections", 0)
        assert not held_by(served).unread


async def test_a_client_that_does_not_read_is_given_up_while_the_collector_stops() -> None:
    before = given_up("unread")
    async with serving(unread_seconds_max=0.5) as served:
        await reading_nothing(served)
        await served.stop()
        assert given_up("unread") - before == 1


FAT = b"X: " + b"x" * 30_000 + b"\r\n"


@pytest.mark.parametrize(
    "heads",
    [
        pytest.param((HEAD[:-2] + FAT + b"\r\n" + BODY) * 3, id="three together"),
        pytest.param(HEAD[:-2] + FAT * 3 + b"\r\n", id="one"),
        pytest.param(HEAD[:-2] + FAT * 3, id="one that does not end"),
    ],
)
async def test_heads_behind_a_request_have_a_size_together(heads: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    before = given_up("large_head")
    kept, storing = asyncio.Event(), asyncio.Event()

    async def store(_records: Sequence[Record]) -> None:
        storing.set()
        await kept.wait()

    async with serving() as served:
        monkeypatch.setattr(served.sink, "store", store)
        connection = await connected(served)
        connection[1].write(HEAD + BODY)
        await asyncio.wait_for(storing.wait(), SECONDS_MAX)
        connection[1].write(heads)
        await closed(connection)
        assert given_up("large_head") - before == 1
        kept.set()


async def test_requests_behind_a_request_are_answered_in_their_order() -> None:
    async with serving() as served:
        reader, writer = await connected(served)
        writer.write((HEAD + BODY) * 20 + SCHEMA.replace(b"Host: a", b"Host: a\r\nConnection: close"))
        answers = await asyncio.wait_for(reader.read(), SECONDS_MAX)
        assert answers.count(b"HTTP/1.1 200 OK\r\n") == 21
        assert len(served.stored()) == 20


@pytest.mark.parametrize("request_", [b"\x16\x03\x01\r\n\r\n", HEAD[:-2] + b"X: " + b"x" * 40_000 + b"\r\n\r\n"])
async def test_a_page_can_read_that_its_head_was_refused(request_: bytes) -> None:
    async with serving() as served:
        head = await served.raw(request_)
        assert head.startswith((b"HTTP/1.0 400 ", b"HTTP/1.1 400 "))
        assert b"\r\nAccess-Control-Allow-Origin: *\r\n" in head


def test_there_are_no_more_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(connections.resource, "setrlimit", lambda _, limits: set_to.append(limits))
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (1_024, 4_096))
    assert room_for(500) == 500
    assert set_to == []
    assert room_for(2_000) == 2_000
    assert room_for(10_000) == 4_096 - connections.FILES_RESERVED
    assert set_to == [(2_000 + connections.FILES_RESERVED, 4_096), (4_096, 4_096)]
