"""Whole HTTP requests, heads included, as nobody but an attacker sends them; and the first lines of the answers."""

import asyncio
import random
from collections.abc import Sequence
from typing import Final

#: Bytes that break readers of heads: no UTF-8, halves of characters, numbers without end, quotes, percent signs.
_VALUES: Final = [
    *(
        b"\xff",
        b"\xed\xa0\x80",
        b"a" * 4_000,
        b"9" * 5_000,
        b"-1",
        b"1e999",
        b"",
        b" ",
        b"%",
        b"%ff",
        b"%00",
        b"{",
        b'"',
    ),
    *(b"Bearer \xff", b"Basic \xff", b"Basic YTpi/w==", b"Bearer ", b"bearer acme", b"null", b"\xc3\xa9", b"text/html"),
    *(b"gzip", b"br", b"deflate, gzip", b"application/json; charset=\xff", b"multipart/form-data", b"100-continue"),
    *(b"1.2.3.4, \xff", b"::ffff:1.2.3.4%eth0", b"bytes=0-", b"websocket", b"?1", b"https://\xff.example"),
]
_HEADERS: Final = [
    *(b"User-Agent", b"Authorization", b"Origin", b"Content-Type", b"Content-Encoding", b"X-Forwarded-For", b"Accept"),
    *(b"Access-Control-Request-Headers", b"Cookie", b"Referer", b"If-None-Match", b"If-Modified-Since", b"Range"),
    *(b"Last-Event-ID", b"DNT", b"Sec-GPC", b"X-EPAS-Event", b"X-EPAS-Version", b"traceparent", b"Upgrade", b"Expect"),
]
_METHODS: Final = [b"GET", b"GET", b"POST", b"POST", b"OPTIONS", b"HEAD", b"PUT", b"DELETE", b"PATCH"]
_NAMES: Final = [
    *(b"key", b"from", b"hours", b"customer", b"session", b"number", b"view", b"view_id"),
    *(b"sequence", b"stale", b"time_ms"),
]


def hostile_requests(
    count: int, paths: Sequence[str], bodies: Sequence[bytes], headers: Sequence[bytes] = (), seed: int = 0
) -> list[bytes]:
    """Requests to these paths, each of one connection; `headers` are in all of them."""
    chance = random.Random(seed)
    return [_request(chance, paths, bodies, headers) for _ in range(count)]


def _request(chance: random.Random, paths: Sequence[str], bodies: Sequence[bytes], headers: Sequence[bytes]) -> bytes:
    target = chance.choice(paths).encode()
    if chance.random() < 0.3:
        target += chance.choice(_VALUES).replace(b" ", b"+")
    if chance.random() < 0.5:
        pairs = [
            chance.choice(_NAMES) + b"=" + chance.choice(_VALUES).replace(b" ", b"+")
            for _ in range(chance.randint(1, 4))
        ]
        target += (b"&" if b"?" in target else b"?") + b"&".join(pairs)
    body = chance.choice(bodies)
    lines = [chance.choice(_METHODS) + b" " + target[:8_000] + b" HTTP/1.1", b"Host: x", b"Connection: close", *headers]
    lines += [chance.choice(_HEADERS) + b": " + chance.choice(_VALUES) for _ in range(chance.randint(0, 4))]
    lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def status_of(port: int, request: bytes) -> int:
    """The status of the answer; 0 where the connection is closed without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        line = await asyncio.wait_for(reader.readline(), 30)
        if line.startswith(b"HTTP/1.1 100"):
            await reader.readline()
            line = await asyncio.wait_for(reader.readline(), 30)
        return int(line.split()[1]) if line else 0
    except ConnectionError:
        return 0
    finally:
        writer.close()
