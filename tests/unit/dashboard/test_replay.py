"""The replay page's questions, passed on to a processor whose answers the test sets."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.http.access import Routing
from services.accounts.http.open_requests import OpenRequests
from services.dashboard import replay
from services.dashboard.replay import Replay
from services.rim.http import writing

TOKEN = "a token of sixteen or more"
WHO = {"customer": "acme", "session": "s-1"}


class Processor:
    """Stands in for a slot's lookups."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[tuple[str, str]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append((request.path_qs, request.headers["Authorization"]))
        headers = {"Content-Encoding": "gzip", "Playhead-Sequence": "7", "Playhead-Sha256": "x"}
        return web.Response(status=self.status, body=b"packed", content_type="text/html", headers=headers)


@pytest.fixture
def processor() -> Processor:
    return Processor()


@pytest.fixture
async def client(processor: Processor, tmp_path: Path) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    slot = web.Application()
    slot.router.add_get("/{path:.*}", processor.answer)
    async with TestServer(slot) as server:
        app = web.Application()
        Replay(f"http://127.0.0.1:{server.port}/", TOKEN, tmp_path).add_to(Routing(app), lambda handler, *_: handler)
        async with TestClient(TestServer(app), auto_decompress=False) as made:
            yield made


async def test_a_payload_is_passed_on_as_it_is(
    client: TestClient[web.Request, web.Application], processor: Processor
) -> None:
    async with client.get("/v1/recordings/payload", params={**WHO, "number": "7"}) as answer:
        assert (answer.status, await answer.read()) == (200, b"packed")
        assert answer.headers["Content-Encoding"] == "gzip"
        assert "Playhead-Sha256" not in answer.headers
        # A client chose the bytes and their type: no browser runs them on this origin, or shows them as a page.
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["Content-Disposition"] == "attachment"
        assert answer.headers["Content-Security-Policy"].startswith("sandbox")
    assert processor.requests == [("/recordings/s-1/7?customer=acme", f"Bearer {TOKEN}")]


async def test_the_list_begins_at_the_requested_number(
    client: TestClient[web.Request, web.Application], processor: Processor
) -> None:
    async with client.get("/v1/recordings", params={**WHO, "from": "2048"}) as answer:
        assert answer.status == 200
    assert processor.requests[0][0] == "/recordings/s-1/index?customer=acme&from=2048"


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/v1/recordings", {"customer": "acme"}),
        ("/v1/recordings", {**WHO, "session": "../partitions"}),
        ("/v1/recordings", {**WHO, "from": "-1"}),
        ("/v1/recordings", {**WHO, "from": "9" * 5_000}),
        ("/v1/recordings/payload", {**WHO, "number": "9" * 5_000}),
        ("/v1/recordings/payload", WHO),
        ("/v1/recordings/payload", {**WHO, "number": "index"}),
    ],
)
async def test_a_request_that_names_nothing_is_passed_on_to_no_slot(
    client: TestClient[web.Request, web.Application], processor: Processor, path: str, parameters: dict[str, str]
) -> None:
    async with client.get(path, params=parameters) as answer:
        assert answer.status == 400
    assert processor.requests == []


@pytest.mark.parametrize(("status", "expected"), [(404, 404), (503, 503), (500, 503), (401, 502)])
async def test_refusals_of_the_processor_are_reported_by_kind(
    client: TestClient[web.Request, web.Application], processor: Processor, status: int, expected: int
) -> None:
    processor.status = status
    async with client.get("/v1/recordings", params=WHO) as answer:
        assert answer.status == expected
        assert (await answer.json())["title"]


async def test_an_unreachable_processor_is_reported() -> None:
    app = web.Application()
    Replay("http://127.0.0.1:1", TOKEN, None).add_to(Routing(app), lambda handler, *_: handler)
    async with TestClient(TestServer(app)) as client:
        async with client.get("/v1/recordings", params=WHO) as answer:
            assert answer.status == 503
        async with client.get("/replay") as answer:
            assert answer.status == 404
            assert "DASHBOARD_RRWEB_DIR" in (await answer.json())["detail"]


async def test_who_reads_slowly_or_much_at_a_time_leaves_connections_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(replay, "SILENT_SECONDS_MAX", 10.0)
    monkeypatch.setattr(writing, "WRITE_SECONDS_MAX", 0.2)
    has_begun, was_given_up = asyncio.Event(), asyncio.Event()

    async def large(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        has_begun.set()
        try:
            while True:
                await response.write(bytes(1 << 20))
        finally:
            was_given_up.set()

    async def index(_: web.Request) -> web.Response:
        return web.json_response({})

    slot, app = web.Application(), web.Application()
    slot.router.add_get("/recordings/s-1/{number:[0-9]+}", large)
    slot.router.add_get("/recordings/s-1/index", index)
    async with TestServer(slot, handler_cancellation=True) as server:
        url, limit = f"http://127.0.0.1:{server.port}", OpenRequests(2, address=lambda one: one.headers["Address"])
        Replay(url, TOKEN, None).add_to(Routing(app), lambda handler, *_: handler, limit)
        async with TestClient(TestServer(app, handler_cancellation=True)) as client, asyncio.timeout(20):
            _, writer = await asyncio.open_connection(client.server.host, client.server.port, limit=1_024)
            path = "/v1/recordings/payload?customer=acme&session=s-1&number=1"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAddress: 192.0.2.1\r\n\r\n".encode())
            await has_begun.wait()
            for address, status in (("192.0.2.1", 429), ("192.0.2.2", 200)):
                async with client.get("/v1/recordings", params=WHO, headers={"Address": address}) as answer:
                    assert answer.status == status
            await was_given_up.wait()
            async with client.get("/v1/recordings", params=WHO, headers={"Address": "192.0.2.1"}) as answer:
                assert answer.status == 200
            writer.close()


async def test_a_wait_for_a_connection_to_the_processor_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(replay, "SILENT_SECONDS_MAX", 0.3)

    async def drips(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.01)

    slot, app = web.Application(), web.Application()
    slot.router.add_get("/{path:.*}", drips)
    async with TestServer(slot, handler_cancellation=True) as server:
        made = Replay(f"http://127.0.0.1:{server.port}", TOKEN, None)
        made.add_to(Routing(app), lambda handler, *_: handler, OpenRequests(100))
        async with TestClient(TestServer(app, handler_cancellation=True)) as client, asyncio.timeout(20):
            payload = client.get("/v1/recordings/payload", params={**WHO, "number": "7"})
            async with payload as one:
                assert await one.content.readany()
                async with client.get("/v1/recordings", params=WHO) as answer:
                    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


async def test_a_number_of_thousands_of_digits_is_refused(
    client: TestClient[web.Request, web.Application], processor: Processor
) -> None:
    for path, name in (("/v1/recordings", "from"), ("/v1/recordings/payload", "number")):
        async with client.get(path, params={**WHO, name: "9" * 5_000}) as answer:
            assert answer.status == 400
    assert processor.requests == []
