"""Leaving a port that others share: no connection is reset that the kernel took on, and new ones meet somebody else."""

import asyncio
import contextlib
import socket
import time

import pytest

from services.collector.http import connections
from services.collector.http.listener import HANDSHAKE_SECONDS, drop_new_handshakes
from tests.unit.collector.http.serving import Served
from tests.unit.collector.intake.bodies import mux_body, mux_event

BODY = mux_body(mux_event())
REQUEST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
SECONDS_MAX = 30.0

#: Of a TCP header's octet 13 (RFC 9293).
FIN, SYN, RST, PSH, ACK, ECE, CWR = 1, 2, 4, 8, 16, 64, 128


@pytest.mark.parametrize(
    ("flags", "is_kept"),
    [
        (SYN, False),
        (SYN | ECE | CWR, False),
        (ACK, True),
        (PSH | ACK, True),
        (FIN | ACK, True),
        (RST, True),
        (RST | ACK, True),
        (SYN | ACK, True),
    ],
)
def test_only_the_first_packet_of_a_handshake_is_dropped(flags: int, is_kept: bool) -> None:
    """The kernel runs the filter over a datagram that looks like a TCP header."""
    header = bytes(13) + bytes([flags]) + bytes(6)
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with left, right:
        drop_new_handshakes(right)
        left.send(header)
        right.setblocking(False)
        try:
            assert right.recv(100) == header
            assert is_kept
        except BlockingIOError:
            assert not is_kept


def test_who_comes_while_one_leaves_the_port_meets_another() -> None:
    with contextlib.ExitStack() as stack:
        leaving, staying = (stack.enter_context(socket.socket()) for _ in range(2))
        port = 0
        for one in (leaving, staying):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            one.bind(("127.0.0.1", port))
            one.listen(100)
            one.setblocking(False)
            port = one.getsockname()[1]
        drop_new_handshakes(leaving)
        # The kernel spreads them: that all are given to one of two has a chance of one in 2^40.
        clients = [stack.enter_context(socket.socket()) for _ in range(40)]
        for client in clients:
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(("127.0.0.1", port))
        with pytest.raises(BlockingIOError):
            leaving.accept()
        leaving.close()

        deadline, accepted = time.monotonic() + SECONDS_MAX, 0
        while accepted < len(clients):
            assert time.monotonic() < deadline, f"{accepted} of {len(clients)}"
            time.sleep(0.05)
            accepted += accepted_by(staying, stack)


def accepted_by(listening: socket.socket, stack: contextlib.ExitStack) -> int:
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            stack.enter_context(listening.accept()[0])
            count += 1
    return count


async def test_connections_accepted_by_the_kernel_are_served_though_the_listener_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sockets are connected without the loop having had a turn: only the kernel knows of them when the end begins."""
    monkeypatch.setattr(connections, "FIRST_REQUEST_SECONDS_MAX", SECONDS_MAX)
    served = Served(body_seconds_max=SECONDS_MAX, handshake_seconds=HANDSHAKE_SECONDS)
    await served.start()
    early = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(5)]
    for one in early[1:]:
        one.sendall(REQUEST)
    served.drain.begun = True
    closing = asyncio.create_task(served.listener.close())
    # The first says nothing until the listener is gone.
    late: list[asyncio.StreamWriter] = []
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                late.append((await asyncio.open_connection("127.0.0.1", served.port))[1])
    early[0].sendall(REQUEST)
    for writer in late:
        writer.close()
    await closing
    for one in early:
        one.settimeout(SECONDS_MAX)
        answer = await asyncio.to_thread(one.recv, 4_096)
        assert answer.startswith(b"HTTP/1.1 200 ")
        one.close()
    assert len(served.stored()) == 5
    await served.stop()
