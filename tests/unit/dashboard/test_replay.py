"""The replay page's questions, passed on to a processor whose answers the test sets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.http.access import Routing
from services.dashboard.replay import Replay

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


async def test_a_number_of_thousands_of_digits_is_refused(
    client: TestClient[web.Request, web.Application], processor: Processor
) -> None:
    for path, name in (("/v1/recordings", "from"), ("/v1/recordings/payload", "number")):
        async with client.get(path, params={**WHO, name: "9" * 5_000}) as answer:
            assert answer.status == 400
    assert processor.requests == []
