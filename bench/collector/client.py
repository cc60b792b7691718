"""The players: HTTP requests made in advance, on a given number of connections, each with one request at a time."""

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Final

from deploy.local.process import Child

FIXTURE: Final = Path(__file__).parents[2] / "tests" / "fixtures" / "mux-embed-ok.json"
VIEWS: Final = 500
AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
_LISTEN_SECONDS_MAX: Final = 60.0
_ANSWER_SECONDS_MAX: Final = 30.0


class NotStored(RuntimeError):
    """A server answered something else than 200."""


def requests(beacons: int) -> list[bytes]:
    """Whole HTTP requests of so many real events each, of many views."""
    posts = json.loads(FIXTURE.read_text())
    events = [event for post in posts for event in post["body"]["events"]]
    made = []
    for number in range(VIEWS):
        batch = [events[(number + n) % len(events)] | {"xid": f"view-{number}"} for n in range(beacons)]
        body = json.dumps({"metadata": posts[1]["body"]["metadata"], "events": batch}, separators=(",", ":")).encode()
        head = f"POST / HTTP/1.1\r\nHost: bench\r\nUser-Agent: {AGENT}\r\nContent-Type: text/plain\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        made.append(head.encode() + body)
    return made


async def send(port: int, made: list[bytes], connections: int, seconds: float) -> tuple[int, list[float]]:
    """How many requests were answered 200 within the time, and how long each took (s). Raises `NotStored`.

    The time begins when all connections are there, and each sends one request at least.
    """
    latencies: list[float] = []
    async with asyncio.timeout(seconds + _ANSWER_SECONDS_MAX):
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(connections)]
        deadline = time.monotonic() + seconds

        async def player(number: int) -> None:
            reader, writer = streams[number]
            is_first = True
            while is_first or time.monotonic() < deadline:
                is_first = False
                begun = time.perf_counter()
                writer.write(made[number % len(made)])
                answer = await reader.readuntil(b"\r\n\r\n")
                if not answer.startswith(b"HTTP/1.1 200"):
                    raise NotStored(answer.decode(errors="replace"))
                latencies.append(time.perf_counter() - begun)
                number += connections
            writer.close()
            await writer.wait_closed()

        await asyncio.gather(*(player(number) for number in range(connections)))
    return len(latencies), sorted(latencies)


def cpu_seconds(child: Child) -> float:
    """The CPU time that the threads of a process have used, to the microsecond."""
    tasks = Path(f"/proc/{child.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def wait_for_port(child: Child, port: int) -> None:
    """Returns once something listens."""

    def listens() -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    child.wait_until(listens, _LISTEN_SECONDS_MAX, "listening")
