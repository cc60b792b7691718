"""Payloads of session recordings are streamed into chunks: whole or not at all, and bounded against any client."""

import asyncio
import gzip
import hashlib
import io
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import msgspec
import pytest

from services.collector.intake.sender.customers import Customer, Customers
from services.collector.sink.records import Record
from services.collector.sink.sink import MemorySink, Unstored
from services.rim.telemetry.metrics import counter
from shared.chunks import CHUNK_BYTES_MAX, Chunk, chunk_of
from shared.metrics import COLLECTOR_LIMITED
from shared.partitioning import partition_of, recording_key
from tests.unit.collector.http.serving import UPLOADS, Served, until

URL = "/recordings/s-1?sequence=0"


def bytes_of(count: int) -> bytes:
    return random.Random(count).randbytes(count)


def chunks(records: Sequence[Record]) -> list[Chunk]:
    return [chunk_of([(name, _bytes(value)) for name, value in record.headers]) for record in records]


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


async def streamed(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


class SlowSink(MemorySink):
    """Acknowledges nothing until the test does; knows how much was on its way at the most."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = asyncio.Event()
        self.on_their_way = 0
        self.most = 0

    async def store(self, records: Sequence[Record]) -> None:
        self.on_their_way += len(records)
        self.most = max(self.most, self.on_their_way)
        await self.may_go_on.wait()
        self.on_their_way -= len(records)
        await super().store(records)


class FailingOnce(MemorySink):
    """Does not store the record that comes third."""

    def __init__(self) -> None:
        super().__init__()
        self.came = 0

    async def store(self, records: Sequence[Record]) -> None:
        self.came += 1
        if self.came == 3:
            raise Unstored("deadline", "failure requested")
        await super().store(records)


def use(served: Served, sink: MemorySink) -> None:
    served.uploads._sink = sink


@pytest.mark.parametrize(
    "size", [1, 10_000, CHUNK_BYTES_MAX - 1, CHUNK_BYTES_MAX, CHUNK_BYTES_MAX + 1, 3 * CHUNK_BYTES_MAX]
)
@pytest.mark.parametrize("is_length_known", [True, False])
async def test_a_payload_becomes_chunks_that_say_what_they_are(
    served: Served, size: int, is_length_known: bool
) -> None:
    payload = bytes_of(size)
    data = io.BytesIO(payload) if is_length_known else streamed(payload[: size // 2], payload[size // 2 :])
    async with served.client.post(URL, data=data, headers={"Content-Type": "video/x-unheard-of"}) as answer:
        receipt = await answer.json()
        assert answer.status == 200
    records = served.sink.records
    assert b"".join(record.value for record in records) == payload
    assert max(len(record.value) for record in records) <= CHUNK_BYTES_MAX
    sha256 = hashlib.sha256(payload).hexdigest()
    count = -(-size // CHUNK_BYTES_MAX)
    assert receipt == {
        "status": "stored",
        "session": "s-1",
        "sequence": 0,
        "bytes": size,
        "chunks": count,
        "sha256": sha256,
    }
    found = chunks(records)
    assert [chunk.index for chunk in found] == list(range(count))
    assert [chunk.is_last for chunk in found] == [False] * (count - 1) + [True]
    assert {chunk.count for chunk in found[:-1]} <= {count if is_length_known else 0}
    assert (found[-1].end, found[-1].sha256.hex()) == (size, sha256)
    assert {chunk.content_type for chunk in found} == {"video/x-unheard-of"}
    key = recording_key("default", "s-1")
    assert {(record.topic, record.key, record.partition) for record in records} == {
        ("recordings", key, partition_of(key, 8))
    }


async def test_what_a_client_has_packed_is_kept_as_it_came(served: Served) -> None:
    packed = gzip.compress(b"[1, 2, 3]" * 1_000)
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    async with served.client.post(URL, data=packed, headers=headers) as answer:
        assert answer.status == 200
    assert served.sink.records[0].value == packed
    assert chunks(served.sink.records)[0].content_encoding == "gzip"


async def test_a_repetition_is_another_upload_of_the_same_payload(served: Served) -> None:
    for _ in range(2):
        async with served.client.post(URL, data=b"the same") as answer:
            assert answer.status == 200
    first, second = chunks(served.sink.records)
    assert msgspec.structs.replace(first, upload="") == msgspec.structs.replace(second, upload="")
    assert first.upload != second.upload


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/recordings/s-1", 400, "sequence is not a number"),
        ("/recordings/s-1?sequence=-1", 400, "sequence is not a number"),
        ("/recordings/s-1?sequence=1000000", 400, "sequence is not a number"),
        ("/recordings/a%2Fb?sequence=0", 400, "a session id matches"),
        ("/recordings/s-1?sequence=0&key=no%20key", 400, "key 'no key' is not"),
    ],
)
async def test_what_names_no_payload_is_refused_and_says_why(
    served: Served, path: str, status: int, detail: str
) -> None:
    async with served.client.post(path, data=b"x") as answer:
        assert answer.status == status
        assert detail in (await answer.json())["detail"]
    assert served.sink.records == []


async def test_keys_are_those_of_customers(served: Served) -> None:
    served.rules = served.rules.model_copy(
        update={"customers": Customers({"acme": Customer(keys=("k1",), revoked_keys=("k0",))})}
    )
    for key, status in (("k1", 200), ("k0", 410), ("k2", 401), ("", 401)):
        async with served.client.post(URL, data=b"x", headers={"Authorization": f"Bearer {key}"}) as answer:
            assert answer.status == status
    assert [record.key for record in served.sink.records] == [b"acme:s-1"]


async def test_an_empty_payload_is_refused(served: Served) -> None:
    async with served.client.post(URL, data=b"") as answer:
        assert answer.status == 400
    async with served.client.post(URL, data=streamed()) as answer:
        assert answer.status == 400


async def test_a_payload_that_is_too_large_is_refused_before_it_is_read_or_when_it_shows(served: Served) -> None:
    head = f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Length: {UPLOADS.payload_bytes_max + 1}\r\n\r\n"
    assert b" 413 " in await served.raw(head.encode())
    assert served.sink.records == []
    pieces = [bytes(CHUNK_BYTES_MAX)] * (UPLOADS.payload_bytes_max // CHUNK_BYTES_MAX + 1)
    async with served.client.post(URL, data=streamed(*pieces)) as answer:
        assert answer.status == 413
    assert not any(chunk.is_last for chunk in chunks(served.sink.records))


@pytest.mark.thorough
async def test_chunks_on_their_way_are_bounded_for_all_uploads_together_and_the_rest_is_not_read(
    served: Served,
) -> None:
    sink = SlowSink()
    use(served, sink)
    uploads = [
        asyncio.create_task(posted(served, f"/recordings/s-{number}?sequence=0", bytes_of(8_000_000)))
        for number in range(UPLOADS.uploads_max)
    ]
    await until(lambda: sink.on_their_way == UPLOADS.chunks_max)
    # One more upload than there may be gets a Retry-After.
    assert await posted(served, URL, b"x") == 503
    sink.may_go_on.set()
    assert await asyncio.gather(*uploads) == [200] * UPLOADS.uploads_max
    assert sink.most == UPLOADS.chunks_max
    for number in range(UPLOADS.uploads_max):
        mine = [record.value for record in sink.records if record.key == b"default:s-%d" % number]
        assert b"".join(mine) == bytes_of(8_000_000)
    assert await posted(served, URL, b"x") == 200


async def posted(served: Served, path: str, data: bytes) -> int:
    async with served.client.post(path, data=io.BytesIO(data)) as answer:
        return answer.status


async def test_nothing_is_answered_before_the_last_chunk_is_acknowledged(served: Served) -> None:
    sink = SlowSink()
    use(served, sink)
    upload = asyncio.create_task(posted(served, URL, bytes_of(2_500_000)))
    await until(lambda: sink.on_their_way == 3)
    done, _ = await asyncio.wait({upload}, timeout=0.2)
    assert not done
    sink.may_go_on.set()
    assert await upload == 200


async def test_a_last_chunk_that_is_not_stored_is_not_answered_200(served: Served) -> None:
    use(served, FailingOnce())
    assert await posted(served, URL, bytes_of(2_500_000)) == 503


async def test_a_chunk_that_is_not_stored_makes_the_whole_payload_unstored(served: Served) -> None:
    sink = FailingOnce()
    use(served, sink)
    async with served.client.post(URL, data=io.BytesIO(bytes_of(6_000_000))) as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
    await until(lambda: served.uploads._storing == set())
    found = chunks(sink.records)
    assert not any(chunk.index == 2 for chunk in found)
    # The repetition has all there is to have.
    async with served.client.post(URL, data=io.BytesIO(bytes_of(6_000_000))) as answer:
        assert answer.status == 200
    again = [record for record in sink.records if chunks([record])[0].upload != found[0].upload]
    assert b"".join(record.value for record in again) == bytes_of(6_000_000)


async def test_a_client_that_stops_sending_is_given_up(served: Served) -> None:
    head = f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n"
    answer = await served.raw(head.encode() + bytes(100))
    assert b" 408 " in answer
    assert b"Retry-After" in answer
    assert served.sink.records == []


async def test_a_client_that_goes_away_leaves_no_payload(served: Served) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n".encode() + bytes(2_500_000))
    await until(lambda: len(served.sink.records) == 2)
    writer.close()
    await until(lambda: served.uploads._active == 0)
    assert not any(chunk.is_last for chunk in chunks(served.sink.records))


async def test_more_than_a_customers_rate_gets_a_retry_after(served: Served) -> None:
    served.rules = served.rules.model_copy(update={"customers": Customers({"acme": Customer(bytes_per_second=1_000)})})
    headers = {"Authorization": "Bearer acme"}
    limited = counter(COLLECTOR_LIMITED).labels("acme")._value.get()
    async with served.client.post(URL, data=bytes(50_000), headers=headers) as answer:
        assert answer.status == 200
    async with served.client.post(URL, data=bytes(10), headers=headers) as answer:
        assert answer.status == 429
        assert int(answer.headers["Retry-After"]) >= 30
    assert counter(COLLECTOR_LIMITED).labels("acme")._value.get() == limited + 1


@pytest.mark.thorough
async def test_a_payload_of_unknown_length_is_charged_as_it_comes(served: Served) -> None:
    """42 MB passed in half a second at a limit of 10 kB/s, since a chunked body counted as nothing."""
    served.rules = served.rules.model_copy(update={"customers": Customers({"acme": Customer(bytes_per_second=10_000)})})
    headers = {"Authorization": "Bearer acme"}
    async with served.client.post(URL, data=streamed(*[bytes(100_000)] * 50), headers=headers) as answer:
        assert answer.status == 429
    assert sum(len(record.value) for record in served.sink.records) <= 1_000_000


async def test_what_is_announced_takes_nothing_from_others_until_it_comes() -> None:
    """One byte of 5 MB kept a customer's other requests out for as long as the upload was open."""
    served = Served(uploads=replace(UPLOADS, chunk_seconds_max=60.0, silent_seconds_max=60.0))
    await served.start()
    served.rules = served.rules.model_copy(update={"customers": Customers({"acme": Customer(bytes_per_second=1_000)})})
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(f"POST {URL}&key=acme HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\nx".encode())
    await until(lambda: served.uploads._active == 1)
    async with served.client.post(URL, data=bytes(10), headers={"Authorization": "Bearer acme"}) as answer:
        assert answer.status == 200
    writer.close()
    await served.stop()


async def test_announced_payloads_at_the_same_time_wait_for_each_other() -> None:
    """Each alone would pass whole."""
    served = Served(uploads=replace(UPLOADS, chunk_seconds_max=1.0))
    await served.start()
    served.rules = served.rules.model_copy(update={"customers": Customers({"acme": Customer(bytes_per_second=1_000)})})
    head = f"POST {URL}&key=acme HTTP/1.1\r\nHost: x\r\nContent-Length: 400000\r\n\r\n".encode()
    pairs = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(2)]
    for _, writer in pairs:
        writer.write(head)
    await until(lambda: served.uploads._active == 2)
    for _, writer in pairs:
        writer.write(bytes(200_000))
    answers = [asyncio.ensure_future(reader.readline()) for reader, _ in pairs]
    await until(lambda: any(answer.done() for answer in answers))
    assert {answer.result().split()[1] for answer in answers if answer.done()} == {b"429"}
    for answer, (_, writer) in zip(answers, pairs, strict=True):
        answer.cancel()
        writer.close()
    await served.stop()


async def test_slow_uploads_of_one_address_leave_slots_for_others() -> None:
    limits = replace(UPLOADS, chunk_seconds_max=60.0, silent_seconds_max=60.0, uploads_by_address_max=2)
    served = Served(uploads=limits)
    await served.start()
    head = "POST {} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {}\r\nContent-Length: 5000000\r\n\r\n"
    slow = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(4)]
    for _, writer in slow:
        writer.write(head.format(URL, "203.0.113.1").encode() + b"x")
    refused = [asyncio.ensure_future(reader.readline()) for reader, _ in slow]
    await until(lambda: sum(answer.done() for answer in refused) == 2)
    async with served.client.post(URL, data=b"x", headers={"X-Forwarded-For": "198.51.100.9"}) as answer:
        assert answer.status == 200
    for answer_, (_, writer) in zip(refused, slow, strict=True):
        answer_.cancel()
        writer.close()
    await served.stop()


async def test_an_upload_that_falls_silent_is_given_up_long_before_its_chunk_is_due() -> None:
    served = Served(uploads=replace(UPLOADS, chunk_seconds_max=60.0, silent_seconds_max=0.1))
    await served.start()
    head = f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n"
    assert b" 408 " in await served.raw(head.encode() + bytes(100))
    await served.stop()


async def test_an_upload_with_too_long_between_two_chunks_is_no_success() -> None:
    """The processor may have forgotten what came before, although each chunk came in time and is stored."""
    served = Served(uploads=replace(UPLOADS, between_chunks_seconds_max=0.0))
    await served.start()
    for size, status in ((CHUNK_BYTES_MAX, 200), (2 * CHUNK_BYTES_MAX, 408)):
        async with served.client.post(URL, data=io.BytesIO(bytes_of(size))) as answer:
            assert answer.status == status
    assert len(served.sink.records) == 3
    await served.stop()


async def test_an_upload_has_a_limit_of_time_however_fast_its_chunks_are() -> None:
    served = Served(uploads=replace(UPLOADS, chunk_seconds_max=60.0, silent_seconds_max=60.0, upload_seconds_max=0.1))
    await served.start()
    head = f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n"
    assert b" 408 " in await served.raw(head.encode() + bytes(100))
    await served.stop()
