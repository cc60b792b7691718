"""What the API makes of each answer of the processor's lookups."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from services.query.rim.processor import FoundView, Processor, ProcessorAway
from services.rim.http.lookups import Lookups


async def view_of(status: int, body: bytes) -> FoundView | None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body)

    app = web.Application()
    app.router.add_get("/{rest:.*}", answer)
    async with TestServer(app) as server:
        processor = Processor(Lookups(str(server.make_url("/")), "a token of sixteen or more", seconds_max=5))
        await processor.open()
        try:
            return await processor.view("acme", "v")
        finally:
            await processor.close()


async def test_a_view_is_what_the_owner_says() -> None:
    found = await view_of(200, b'{"found":{"state":"open","revision":1,"row":{}}}')
    assert found == FoundView("open", 1, {})


@pytest.mark.parametrize("status", [400, 404])
async def test_a_view_that_no_slot_knows_or_can_have_is_none(status: int) -> None:
    assert await view_of(status, b"{}") is None


@pytest.mark.parametrize(("status", "body"), [(200, b"[]"), (401, b""), (500, b""), (503, b"")])
async def test_every_other_answer_is_no_answer(status: int, body: bytes) -> None:
    with pytest.raises(ProcessorAway):
        await view_of(status, body)
