"""Every parser, from body to records, on damaged real bodies: nothing is raised or lost, and all can be read back."""

import gzip
import json
import random
import zlib
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, urlencode

import brotli
import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from services.collector.intake import epas, native
from services.collector.intake.cmcd import cmcd
from services.collector.intake.mux import mux
from services.collector.intake.post import ParsedBody, Post, Rules
from services.collector.intake.sender.client import Agent, Client
from services.collector.intake.sender.customers import Customer, Customers
from services.collector.sink.records import records_of
from shared.codec import BEACON
from shared.topics import PROFILES
from tests.unit.collector.intake.bodies import cmcd_bodies, epas_event, mux_posts, native_beacon, post

RULES: Final = Rules(
    customers=Customers({"acme": Customer(), "cust123": Customer(beacons_per_second=1, privacy_signals="ignore")}),
    body_bytes_max=20_000,
    attrs_max=100,
    attrs_string_chars_max=500,
    batch_beacons_max=50,
)
CLIENT: Final = Client(address="203.0.113.7", user_agent="a", agent=Agent("Chrome"), wants_privacy=True)
PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda body: brotli.compress(body, quality=1),
    "zstd": zstandard.ZstdCompressor().compress,
}
#: What breaks parsers: ends of strings and lists, numbers at their limits, halves of characters, words of no JSON.
_PIECES: Final = [
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b"=", b"(", b")", b";", b"?", b"\\", b"\n", b"\x00", b"%", b"&"),
    *(b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-0"),
    *(b"9" * 400, b"18446744073709551616", b"-9223372036854775809", b"9007199254740993", b"1" + b"0" * 30 + b".5"),
    *(b'"a":' + b"[" * 2_000 + b"]" * 2_000 + b",", b'{"a":' * 2_000 + b"0" + b"}" * 2_000),
    *(b"[" * 2_000, b'{"a":' * 2_000, b'"' + b"x" * 600 + b'"', b"{}", b"[]", b'""', b"e=", b"sid=", b'"xid":7,'),
]


def _parse_pixel(given_post: Post, rules: Rules) -> ParsedBody:
    query = given_post.body.decode("utf-8", "surrogateescape")
    return native.parse_query(parse_qsl(query, keep_blank_values=True), given_post, rules)


def _parse_epas(given_post: Post, rules: Rules) -> ParsedBody:
    return epas.parse_event(given_post, rules, "new").parsed


PARSERS: Final[dict[str, tuple[Callable[[Post, Rules], ParsedBody], list[bytes]]]] = {
    "mux": (mux.parse_beacons, [json.dumps(real["body"]).encode() for real in mux_posts()]),
    "cmcd": (cmcd.parse_records, cmcd_bodies()),
    "native": (
        native.parse_beacons,
        [
            orjson.dumps(native_beacon(seq=1, playhead_ms=5, attrs={"a": [1, {"b": None}]})),
            orjson.dumps({"beacons": [native_beacon(), native_beacon(full_snapshot=True)], "sent_time_ms": 1}),
        ],
    ),
    "epas": (_parse_epas, [orjson.dumps(epas_event(payload={"bitrate": 1})), orjson.dumps(epas_event(event="init"))]),
    "pixel": (_parse_pixel, [urlencode({**native_beacon(seq=1), "video_id": "é"}).encode()]),
}


def damaged(body: bytes, seed: int) -> bytes:
    """`body` with some of it cut out, doubled, swapped for something strange, or changed by a bit."""
    chance = random.Random(seed)
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(body) + 1)
        end = min(len(body), at + chance.choice((0, 1, 1, 4, 40)))
        part = body[at:end]
        changed = chance.choice(
            (b"", part + part, chance.choice(_PIECES), bytes(byte ^ 1 << seed % 8 for byte in part))
        )
        body = body[:at] + changed + body[end:]
    return body


@pytest.mark.parametrize("name", PARSERS)
@given(
    seed=st.integers(0, 2**32),
    number=st.integers(0, 100),
    packing=st.sampled_from([*PACKERS, "", "", ""]),
    torn=st.booleans(),
)
def test_a_damaged_body_becomes_records(name: str, seed: int, number: int, packing: str, torn: bool) -> None:
    parse, bodies = PARSERS[name]
    body = PACKERS[packing](damaged(bodies[number % len(bodies)], seed))
    if torn and packing:
        body = damaged(body, seed + 1)
    given_post = post(body, key="acme", content_encoding=packing, client=CLIENT, in_seconds=seed % 2 == 0)

    parsed = parse(given_post, RULES)

    # Something always comes of it: beacons, or bytes that were rejected. Only an empty batch is neither.
    assert parsed.accepted or parsed.rejected or name in {"mux", "native"}
    records = records_of(parsed, given_post, PROFILES["laptop"])
    assert len(records) == len(parsed.accepted) + len(parsed.rejected)
    for record, beacon in zip(records, parsed.accepted, strict=False):
        assert BEACON.decode(record.value) == beacon
        assert orjson.loads(record.value)["view_id"] == beacon.view_id
    assert {record.topic for record in records[len(parsed.accepted) :]} <= {"rejected"}
