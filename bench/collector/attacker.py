"""The attacker of the benchmark beside hostile clients: hostile bodies at a steady rate, from one address.

`python -m bench.collector.attacker PORT RATE SECONDS` prints `ready`, attacks, and prints the number of answers by status as JSON.
"""

import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import uvloop

from bench.collector import hostile

ADDRESS: Final = "203.0.113.66"
KEY: Final = "acme"
CONNECTIONS: Final = 128
#: Unpacked: the size limit, a body within the bound on values, and bodies that are parsed on the event loop.
SIZES: Final = (2 * 1024 * 1024, 120_000, 16_000, 2_000)
_ANSWER_SECONDS_MAX: Final = 30.0
_PATHS: Final = {
    "mux": "/",
    "cmcd": f"/cmcd/{KEY}",
    "native": f"/v1/beacons?key={KEY}",
    "epas": f"/epas/{KEY}",
    "api calls": f"/v1/api-calls?key={KEY}",
    "otlp json": f"/v1/traces?key={KEY}",
    "otlp protobuf": f"/v1/traces?key={KEY}",
}


def requests() -> list[bytes]:
    """A whole HTTP request for each kind of hostile body of each size, packed where that is shorter."""
    made = []
    for parser, (_, kinds) in hostile.PARSERS.items():
        content_type = hostile.CONTENT_TYPES.get(parser, "text/plain")
        for kind, size in itertools.product(kinds, SIZES):
            body = hostile.body(parser, kind, size)
            packed = hostile.packed(body)
            encoding = "Content-Encoding: gzip\r\n" if len(packed) < len(body) else ""
            sent = packed if encoding else body
            head = (
                f"POST {_PATHS[parser]} HTTP/1.1\r\nHost: bench\r\nX-Forwarded-For: {ADDRESS}\r\n{encoding}"
                f"Content-Type: {content_type}\r\nContent-Length: {len(sent)}\r\n\r\n"
            )
            made.append(head.encode() + sent)
    return made


async def attack(port: int, made: Iterator[bytes], rate: float, seconds: float) -> Counter[str]:
    """Answers by status. Requests are sent at their times, whether or not earlier ones are answered, on many connections."""
    begun = time.monotonic()
    times = iter(begun + number / rate for number in range(int(rate * seconds)))
    found: Counter[str] = Counter()
    async with asyncio.timeout(seconds + _ANSWER_SECONDS_MAX):
        await asyncio.gather(*(_connection(port, made, times, found) for _ in range(CONNECTIONS)))
    found["seconds"] = round(time.monotonic() - begun)
    return found


async def _connection(port: int, made: Iterator[bytes], times: Iterator[float], found: Counter[str]) -> None:
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None
    for at in times:
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        try:
            if reader is None or writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(next(made))
            head = await reader.readuntil(b"\r\n\r\n")
            fields = head.lower()
            length = int(fields.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            await reader.readexactly(length)
            found[head[9:12].decode()] += 1
            if b"connection: close" in fields:
                writer.close()
                reader = writer = None
        except (OSError, asyncio.IncompleteReadError):
            found["closed"] += 1
            if writer is not None:
                writer.close()
            reader = writer = None
    if writer is not None:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def main() -> None:
    """Attacks, and prints what was answered."""
    port, rate, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    made = itertools.cycle(requests())
    print("ready", flush=True)
    print(json.dumps(uvloop.run(attack(port, made, rate, seconds))))


if __name__ == "__main__":
    main()
