"""One view requested over HTTP: what each answer of the processor's lookups means."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from services.dashboard.views import ProcessorViews
from services.rim.http import lookups
from services.rim.http.lookups import Lookups, LookupsAway, LookupsRefused

TOKEN = "a token of sixteen or more"


class Slot:
    """Answers as the test sets, and remembers the requests."""

    def __init__(self) -> None:
        self.status, self.body = 200, b"{}"
        self.requests: list[tuple[str, str | None]] = []
        app = web.Application()
        app.router.add_get("/{rest:.*}", self._answer)
        self.server = TestServer(app)

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append((request.raw_path, request.headers.get("Authorization")))
        return web.Response(status=self.status, body=self.body)


@pytest.fixture
async def slot() -> AsyncIterator[Slot]:
    made = Slot()
    await made.server.start_server()
    yield made
    await made.server.close()


@pytest.fixture
async def client(slot: Slot) -> AsyncIterator[ProcessorViews]:
    made = ProcessorViews(Lookups(str(slot.server.make_url("/")), TOKEN, seconds_max=5))
    await made.open()
    yield made
    await made.close()


async def test_a_view_is_requested_by_its_names_with_the_token(slot: Slot, client: ProcessorViews) -> None:
    slot.body = b'{"found":{}}'
    assert await client.view("acme", "a/b?c#d é") == b'{"found":{}}'
    assert slot.requests == [("/views/acme/a%2Fb%3Fc%23d%20%C3%A9?stale=allow", f"Bearer {TOKEN}")]


async def test_a_view_the_owner_does_not_know_is_none(slot: Slot, client: ProcessorViews) -> None:
    slot.status = 404
    assert await client.view("acme", "v") is None


@pytest.mark.parametrize(
    ("status", "error"), [(503, LookupsAway), (500, LookupsAway), (401, LookupsRefused), (400, LookupsRefused)]
)
async def test_other_answers_are_reported_by_kind(
    slot: Slot, client: ProcessorViews, status: int, error: type[Exception]
) -> None:
    slot.status = status
    with pytest.raises(error):
        await client.view("acme", "v")


async def test_an_answer_beyond_all_measure_is_refused(
    slot: Slot, client: ProcessorViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "ANSWER_BYTES_MAX", 10)
    slot.body = b"x" * 11
    with pytest.raises(LookupsRefused):
        await client.view("acme", "v")


async def test_an_unreachable_slot_is_reported_as_away(slot: Slot, client: ProcessorViews) -> None:
    await slot.server.close()
    with pytest.raises(LookupsAway):
        await client.view("acme", "v")
