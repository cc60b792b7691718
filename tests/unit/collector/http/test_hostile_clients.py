"""Clients that want to take from others: promises, slow bodies, CPU, room. Each takes from itself alone."""

import asyncio
import gzip
import itertools
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from services.collector.http import reading
from services.collector.http.parsing import REQUEST_SECONDS
from services.collector.http.user_agents import AGENTS_PARSED_BY_CUSTOMER_MAX, Agents
from services.collector.intake.mux import mux
from services.collector.intake.post import ParsedBody, Post, Rules
from services.collector.intake.sender.customers import Customer, Customers
from tests.unit.collector.http.serving import BODIES, RULES, Served, until
from tests.unit.collector.http.test_user_agents import CHROME
from tests.unit.collector.intake.bodies import RECV_TIME_MS, mux_body, mux_event, native_beacon

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\nContent-Length: %d\r\n\r\n"
ATTACKER = b"203.0.113.1"


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Served]:
    served = Served(60.0, **options)
    await served.start()
    try:
        yield served
    finally:
        await served.stop()


@asynccontextmanager
async def connections(served: Served, count: int, sent: bytes) -> AsyncIterator[list[asyncio.StreamReader]]:
    made = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(count)]
    for _, writer in made:
        writer.write(sent)
    try:
        yield [reader for reader, _ in made]
    finally:
        for _, writer in made:
            writer.close()


async def good(served: Served, address: str = "198.51.100.9") -> int:
    headers = {"X-Forwarded-For": address}
    async with served.client.post("/", data=mux_body(mux_event()), headers=headers) as answer:
        return answer.status


async def test_promises_take_no_room() -> None:
    """130 connections that announce a whole body each and send one byte stopped the intake of everybody for 29 s."""
    async with serving() as served, connections(served, 130, HEAD % (ATTACKER, 10_000) + b"{"):
        await until(lambda: served.reception._admission._in_flight.bytes == 130)
        assert await good(served) == 200
        assert await good(served, ATTACKER.decode()) == 200


async def test_bytes_that_one_address_sends_leave_room_for_others() -> None:
    async with (
        serving(party_share_max=0.25) as served,
        connections(served, 6, HEAD % (ATTACKER, 10_000) + b"x" * 9_000) as readers,
    ):
        answers = [asyncio.ensure_future(reader.readline()) for reader in readers]
        await until(lambda: sum(answer.done() for answer in answers) == 4)
        assert {answer.result() for answer in answers if answer.done()} == {b"HTTP/1.1 503 Service Unavailable\r\n"}
        assert served.reception._admission._in_flight.bytes == 18_000
        assert await good(served) == 200
        for answer in answers:
            answer.cancel()


async def test_a_body_that_is_slower_than_the_least_rate_is_given_up_after_a_second() -> None:
    bodies = replace(BODIES, seconds_max=60.0, bytes_per_second_min=1_000.0)
    async with serving(bodies=bodies) as served, connections(served, 1, HEAD % (ATTACKER, 10_000) + b"{") as (reader,):
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: " in answer


@pytest.mark.thorough
async def test_slow_bodies_are_bounded_by_address() -> None:
    bodies = replace(BODIES, seconds_max=60.0, bytes_per_second_min=0.01, slow_by_address_max=2)
    async with serving(bodies=bodies) as served, connections(served, 5, HEAD % (ATTACKER, 10_000) + b"{") as readers:
        answers = [asyncio.ensure_future(reader.readline()) for reader in readers]
        await until(lambda: sum(answer.done() for answer in answers) == 3)
        async with connections(served, 1, HEAD % (b"198.51.100.9", 10_000) + b"{") as (other,):
            # It is as slow, and has a slot of its own address.
            await until(lambda: len(served.reception._bodies._slow._taken) == 2)
            assert not other.at_eof()
        assert sum(answer.done() for answer in answers) == 3
        for answer in answers:
            answer.cancel()


async def test_cpu_that_an_address_wastes_is_taken_from_that_address() -> None:
    ticks = itertools.count()
    # Each body takes a second of CPU by this clock; a quarter of one is what an address may waste.
    async with serving(wasted_seconds_per_second=0.25, cpu_seconds=lambda: float(next(ticks))) as served:
        assert await good(served, ATTACKER.decode()) == 200
        assert await good(served, ATTACKER.decode()) == 503
        assert await good(served) == 200


async def test_a_body_that_takes_long_to_read_is_charged_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a byte. Reading goes on after an answer too, so the connection ends."""
    seconds, step = 0.0, 0.0

    def cpu_seconds() -> float:
        nonlocal seconds
        seconds += step
        return seconds

    monkeypatch.setattr(reading, "cpu_seconds", cpu_seconds)
    head = b"POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % ATTACKER
    async with serving(wasted_seconds_per_second=0.25) as served, AsyncExitStack() as stack:
        made = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(2)]
        for _, writer in made:
            stack.callback(writer.close)
            writer.write(head + b"1\r\n{\r\n")
        await until(lambda: served.reception._admission._in_flight.bytes == 2)
        for reader, writer in made:
            step = 1.0
            writer.write(b"1\r\n \r\n")
            assert await asyncio.wait_for(reader.read(), 20) == b""
            step = 0.0
        assert await good(served, ATTACKER.decode()) == 503
        assert await good(served) == 200


async def test_a_body_in_very_many_pieces_has_the_time_of_one_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reading, "cpu_seconds", itertools.count(step=REQUEST_SECONDS / 2).__next__)
    head = b"POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % ATTACKER
    async with serving(wasted_seconds_per_second=REQUEST_SECONDS) as served, AsyncExitStack() as stack:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        stack.callback(writer.close)
        writer.write(head)
        for pieces in range(1, 9):
            if reader.at_eof():
                break
            writer.write(b"1\r\n \r\n")
            await until(lambda: reader.at_eof() or served.reception._admission._in_flight.bytes == pieces)  # noqa: B023
        assert reader.at_eof()
    assert caplog.records == []


async def test_each_chunk_of_a_body_has_its_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "cpu_seconds", lambda: 0.0)
    body = mux_body(mux_event(c1="x" * 5_000))
    parts = [body[at : at + 1] for at in range(len(body))]
    async with serving(wasted_seconds_per_second=REQUEST_SECONDS, cpu_seconds=lambda: 0.0) as served:
        for pieces, next_status in (([body], 200), (parts, 503)):
            chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
            head = HEAD.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked") % ATTACKER
            assert (await served.raw(head + chunks + b"0\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            assert await good(served, ATTACKER.decode()) == next_status


async def test_a_body_that_takes_long_to_read_after_its_answer_is_ended(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % ATTACKER
    async with serving(wasted_seconds_per_second=REQUEST_SECONDS) as served, AsyncExitStack() as stack:
        served.rules = RULES.model_copy(update={"body_bytes_max": 1})
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        stack.callback(writer.close)
        writer.write(head + b"2\r\n  \r\n")
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        assert answer.startswith(b"HTTP/1.1 ")
        monkeypatch.setattr(reading, "cpu_seconds", itertools.count().__next__)
        writer.write(b"1\r\n \r\n")
        await asyncio.wait_for(reader.read(), 20)
    assert caplog.records == []


async def test_what_a_request_took_to_read_before_it_was_admitted_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(reading, "cpu_seconds", lambda: float(next(ticks)))
    async with serving(wasted_seconds_per_second=0.25) as served:
        assert await good(served, ATTACKER.decode()) == 503


async def test_made_up_agents_are_counted_by_the_customer_whose_key_the_body_names(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.reception._clients, "_agents", Agents(lambda: 0.0))
    customers = Customers({"acme": Customer(), "other": Customer()})
    served.rules = RULES.model_copy(update={"customers": customers})
    for key in ("acme", "other"):
        for number in range(AGENTS_PARSED_BY_CUSTOMER_MAX + 1):
            headers = {"User-Agent": f"{CHROME.format(140)} {key}/{number}", "X-Forwarded-For": f"198.51.100.{number}"}
            body = mux_body(mux_event(ake=key, xid=f"{key}-{number}"))
            async with served.client.post("/", data=body, headers=headers) as answer:
                assert answer.status == 200
    unread = [beacon.view_id for _, beacon in served.stored() if beacon.browser is None]
    assert unread == [f"{key}-{AGENTS_PARSED_BY_CUSTOMER_MAX}" for key in ("acme", "other")]


async def test_a_customer_beyond_its_new_views_goes_on_with_those_that_play(served: Served) -> None:
    served.rules = RULES.model_copy(update={"customers": Customers({"acme": Customer(new_views_per_second=0.2)})})
    statuses = []
    for view in ("v1", "v2", "v3", "v1", "v2", "v1"):
        document = native_beacon(view_id=view, time_ms=RECV_TIME_MS + len(statuses))
        async with served.client.post("/v1/beacons?key=acme", json=document) as answer:
            statuses.append(answer.status)
    # A bucket of two; the third view was not remembered, and gets a Retry-After.
    assert statuses == [200, 200, 429, 200, 200, 200]
    async with served.client.post("/v1/beacons?key=acme", json=native_beacon(view_id="v3")) as answer:
        assert answer.status == 429


async def test_a_customer_beyond_its_recordings_a_minute_gets_a_retry_after(served: Served) -> None:
    served.rules = RULES.model_copy(update={"customers": Customers({"acme": Customer(recordings_per_minute=12)})})
    statuses = []
    for number in range(4):
        async with served.client.post(f"/recordings/s?key=acme&sequence={number}", data=b"x") as answer:
            statuses.append(answer.status)
    assert statuses == [200, 200, 429, 429]


async def test_requests_of_one_address_have_a_rate_before_a_key_is_read() -> None:
    async with serving(address_requests_per_second=0.2) as served:
        assert [await good(served, ATTACKER.decode()) for _ in range(3)] == [200, 200, 503]
        headers = {"X-Forwarded-For": ATTACKER.decode()}
        async with served.client.post("/recordings/s?key=nobody&sequence=0", data=b"x", headers=headers) as answer:
            assert answer.status == 429
        assert await good(served) == 200


async def test_bodies_that_an_address_sends_at_once_are_not_all_parsed() -> None:
    ticks = itertools.count()
    body = mux_body(mux_event())
    begun = HEAD % (ATTACKER, len(body)) + body[:-1]
    async with (
        serving(wasted_seconds_per_second=0.25, cpu_seconds=lambda: float(next(ticks))) as served,
        AsyncExitStack() as stack,
    ):
        made = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(20)]
        for _, writer in made:
            stack.callback(writer.close)
            writer.write(begun)
        # All of them were admitted before the first was parsed.
        await until(lambda: served.reception._admission._in_flight.bytes == 20 * (len(body) - 1))
        for _, writer in made:
            writer.write(body[-1:])
        answers = await asyncio.gather(*(reader.readline() for reader, _ in made))
        assert sorted(Counter(answer.split()[1] for answer in answers).items()) == [(b"200", 1), (b"503", 19)]
        assert await good(served) == 200


async def test_a_large_body_is_read_on_a_thread_and_means_the_same(served: Served) -> None:
    served.rules = RULES.model_copy(update={"body_bytes_max": 90_000})
    body = mux_body(*[mux_event(xsqno=number, c1="x" * 11_500) for number in range(3)])
    assert len(body) > 32_768
    async with served.client.post("/", data=body) as answer:
        assert answer.status == 200
    assert [beacon.seq for _, beacon in served.stored()] == [0, 1, 2]


async def test_what_a_body_unpacks_to_is_in_flight_before_it_is_parsed() -> None:
    async with serving() as served:
        served.rules = RULES.model_copy(update={"body_bytes_max": 2_000_000})
        body = gzip.compress(json.dumps([0] * 60_000 + list(range(3_000))).encode())
        assert 1_000 < len(body) < 10_000
        async with served.client.post("/", data=body) as answer:
            assert answer.status == 503
        assert served.stored() == []


async def test_what_a_parser_takes_long_for_is_parsed_on_a_thread(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies that are small and still take long: escapes, invalid inputs. The same body once more, without."""
    threads: dict[int, int] = {}

    def spied(post: Post, rules: Rules) -> ParsedBody:
        parsed = mux.parse_beacons(post, rules)
        threads[len(parsed.rejected)] = threading.get_ident()
        return parsed

    served.reception.rules = lambda: RULES.model_copy(update={"body_bytes_max": 40_000})
    monkeypatch.setattr(served.reception, "receive", partial(_receive, served.reception.receive, spied))
    digits = b'{"events":[' + b"1," * 40 + b"1]}"
    escapes = mux_body(mux_event(c1="\\" * 600))
    for body in (digits, escapes, mux_body(mux_event(), *[1] * 20)):
        async with served.client.post("/", data=body) as answer:
            assert answer.status == 200
    here = threading.get_ident()
    assert {count: thread == here for count, thread in threads.items()} == {41: False, 0: False, 20: True}


async def _receive(receive: Any, parse: Any, request: Any, _parse: Any, *args: Any, **options: Any) -> Any:
    return await receive(request, parse, *args, **options)
