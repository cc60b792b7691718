"""Whole HTTP requests, heads included, as nobody but an attacker sends them; and the first lines of the answers."""

import asyncio
import contextlib
import random
import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from tests.fuzz.hostile import dumped
from tests.fuzz.values import mutated

#: Nested deeper than a decoder may follow, where a value is wanted and where it is passed over.
_DEEP: Final = [b"[" * 9_000, b'{"a":' * 2_500, b'{"x":' + b"[" * 7_000 + b"]" * 7_000 + b"}"]

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
_METHODS: Final = [
    *(b"GET", b"GET", b"GET", b"POST", b"POST", b"POST"),
    b"OPTIONS",
    b"HEAD",
    b"PUT",
    b"DELETE",
    b"PATCH",
    b"PATCH",
]
_NAMES: Final = [
    *(b"key", b"from", b"hours", b"customer", b"session", b"number", b"view", b"view_id"),
    *(b"sequence", b"stale", b"time_ms", b"metrics", b"to", b"tz", b"filter", b"compare", b"bucket", b"by"),
    *(b"limit", b"order", b"order_by", b"views_min", b"of", b"before", b"after", b"key_base64", b"all"),
    *(
        b"metric",
        b"above_ms",
        b"below",
        b"dimensions",
        b"baseline_from",
        b"baseline_to",
        b"cursor",
        b"action",
        b"actor",
        b"format",
    ),
    *(b"viewer", b"title", b"error", b"score_below", b"from_ms", b"until_ms", b"step_ms", b"dimension", b"fields"),
]
#: Values that some parameter takes, or nearly: behind its check code goes on.
_ACCEPTED: Final = [
    *(b"views", b"startup_ms_p95,viewers", b"hour", b"country,cdn", b"custom.a'b", b"custom.\x00", b"previous", b"*"),
    *(
        b"Europe/Berlin",
        b"Europe",
        b"../../etc/passwd",
        b"0",
        b"8999999999999",
        b"1774569600000",
        b"18446744073709551616",
    ),
    *(b"2026-03-29T02:30", b"0001-01-01", b"9999-12-31T23:59-23:59", b"startup_ms", b"rebuffer_ms", b"ascending"),
    *(b'{"dimension":"cdn","in":["a",null]}', b'{"not":{"dimension":"custom.x","in":[null]}}', b'{"and":[]}'),
    *(b'{"dimension":"asn","in":["\\ud800"]}', b'{"and":' * 1_000, b"acme", b"acme,beta", b"month", b"1"),
    # Cursors of a list: a NUL, halves of characters, a number without end, arrays within arrays.
    *(
        b"YQBi",
        b"7aCA",
        b"OTk5OTk5OTk5OTk5OTk5OTk5OTk5OQ",
        b"kwDEAJGRkZGRkQ",
        b"playback_failure_fraction",
        b"cdn,country,os",
    ),
]


def paths_of(app: web.Application) -> list[str]:
    """Every path that the application serves, parts of a path filled in: what is added later is among them."""
    canonical = {route.resource.canonical for route in app.router.routes() if route.resource is not None}
    return sorted(re.sub(r"\{[^}]*\}", "a", path) for path in canonical)


def hostile_bodies(documents: Sequence[Any], count: int, seed: int = 0) -> list[bytes]:
    """These documents as JSON with strange values in them, and, a quarter of all, what is nested without end."""
    chance = random.Random(seed)
    wrong = [dumped(mutated(chance, chance.choice(documents), chance.choice((0, 1, 1, 2)))) for _ in range(count)]
    return [*wrong, *_DEEP * (1 + count // 10)]


def hostile_requests(
    count: int, paths: Sequence[str], bodies: Sequence[bytes], headers: Sequence[bytes] = (), seed: int = 0
) -> list[bytes]:
    """Requests to these paths, each of one connection; `headers` are in all of them."""
    chance = random.Random(seed)
    return [_request(chance, paths, bodies, headers) for _ in range(count)]


def _request(chance: random.Random, paths: Sequence[str], bodies: Sequence[bytes], headers: Sequence[bytes]) -> bytes:
    target = chance.choice(paths).encode()
    # Half have one strange thing alone, so that code behind the first check is reached.
    is_strange = chance.random() < 0.5
    if is_strange and chance.random() < 0.6:
        target += chance.choice(_VALUES).replace(b" ", b"+")
    if chance.random() < 0.5:
        pairs = [chance.choice(_NAMES) + b"=" + _value(chance) for _ in range(chance.randint(1, 4))]
        target += (b"&" if b"?" in target else b"?") + b"&".join(pairs)
    body = chance.choice(bodies)
    lines = [chance.choice(_METHODS) + b" " + target[:8_000] + b" HTTP/1.1", b"Host: x", b"Connection: close", *headers]
    if chance.random() < 0.5:
        lines.append(b"Content-Type: application/json")
    strange_headers = chance.randint(0, 4) if is_strange else 0
    lines += [chance.choice(_HEADERS) + b": " + chance.choice(_VALUES) for _ in range(strange_headers)]
    lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _value(chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        return quote(chance.choice(_ACCEPTED), safe="").encode()
    return chance.choice(_VALUES).replace(b" ", b"+")


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
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
