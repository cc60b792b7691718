"""A good POST beside hostile ones: what holds it up is bounded. `bench.collector.beside_hostile` has the figure."""

import asyncio
import itertools
import threading
from collections import Counter
from types import SimpleNamespace

import pytest

from bench.collector import hostile
from services.collector.admission import admission
from services.collector.intake.cmcd import cmcd
from services.collector.intake.post import ParsedBody, Post, Rules
from services.collector.settings import CollectorSettings
from tests.unit.collector.http.serving import RULES, until
from tests.unit.collector.http.test_hostile_clients import ATTACKER, good, serving

HEAD = b"POST /cmcd/acme HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\n%sContent-Length: %d\r\n\r\n"
#: Of the event loop, CPU time that the worst body takes there.
WORST_MS = 3.0


def post_of(body: bytes, *, packed: bool = False) -> bytes:
    sent = hostile.packed(body) if packed else body
    return HEAD % (ATTACKER, b"Content-Encoding: gzip\r\n" if packed else b"", len(sent)) + sent


async def test_a_good_post_waits_for_no_heavy_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind four bodies of a million items it waited for 6.1 s."""
    parse, go_on, threads = cmcd.parse_records, threading.Event(), []

    def held(post: Post, rules: Rules) -> ParsedBody:
        threads.append(threading.get_ident())
        go_on.wait(20)
        return parse(post, rules)

    monkeypatch.setattr(cmcd, "parse_records", held)
    async with serving(in_flight_bytes_max=64 * 1024 * 1024) as served:
        served.rules = RULES.model_copy(update={"body_bytes_max": 2 * 1024 * 1024, "unpack_ratio_max": 10_000})
        made = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(4)]
        for _, writer in made:
            writer.write(post_of(hostile.body("cmcd", "a list of items", 2_000_100), packed=True))
        await until(lambda: served.reception._parsing._queue.waiting == 3)
        assert [await good(served) for _ in range(3)] == [200, 200, 200]
        # One body is parsed at a time, and none of them on the thread that answers.
        assert len(threads) == 1
        go_on.set()
        assert [(await reader.readline())[9:12] for reader, _ in made] == [b"204"] * 4
        assert len(threads) == 4
        assert threading.get_ident() not in threads
        for _, writer in made:
            writer.close()


async def test_of_a_thousand_hostile_posts_a_second_few_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """From one address, by the default limits: all others are refused before their bodies are parsed."""
    limits = CollectorSettings.model_fields
    wasted_ms = float(limits["wasted_ms_per_second_max"].default)
    requests_per_second = float(limits["address_requests_per_second"].default)
    now, cpu = itertools.count(), itertools.count()
    admit, parse, parsed = admission.Admission.admit_address, cmcd.parse_records, []
    # Each request comes a millisecond after the one before, and each body takes as long as the worst.
    seconds = [0.0]

    def admitted(self: admission.Admission, address: str) -> None:
        seconds[0] = next(now) / 1_000
        admit(self, address)

    def counted(post: Post, rules: Rules) -> ParsedBody:
        parsed.append(post.client.address)
        return parse(post, rules)

    monkeypatch.setattr(admission, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    monkeypatch.setattr(admission.Admission, "admit_address", admitted)
    monkeypatch.setattr(cmcd, "parse_records", counted)
    answers: Counter[bytes] = Counter()
    async with serving(
        wasted_seconds_per_second=wasted_ms / 1_000,
        address_requests_per_second=requests_per_second,
        cpu_seconds=lambda: next(cpu) * WORST_MS / 1_000,
    ) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        for _ in range(10):
            writer.write(post_of(hostile.body("cmcd", "quotes", 1_000)) * 100)
            for _ in range(100):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
                await reader.readexactly(length)
                answers[head[9:12]] += 1
            assert await good(served) == 200
        writer.close()
    assert answers == {b"204": len(parsed), b"429": 1_000 - len(parsed)}
    # What is left of a second when the burst and the rate are used up is that of all others.
    assert 1 <= len(parsed) <= (wasted_ms + 1.01 * wasted_ms) / (WORST_MS - 0.3)
