"""Which answers are compressed, and for whom."""

import contextlib
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.rim.http.compression import BYTES_MIN, compressing

LONG: Final = {"views": ["a view"] * BYTES_MIN}
LARGE: Final = {"views": ["a view"] * 100 * BYTES_MIN}


@contextlib.asynccontextmanager
async def _client() -> AsyncIterator[TestClient[web.Request, web.Application]]:
    async def long(_: web.Request) -> web.Response:
        return web.json_response(LONG)

    async def large(_: web.Request) -> web.Response:
        return web.json_response(LARGE)

    async def short(_: web.Request) -> web.Response:
        return web.json_response({})

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="a" * BYTES_MIN, content_type="text/html")

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: " + b"a" * BYTES_MIN + b"\n\n")
        return response

    app = web.Application(middlewares=[compressing(besides={"/secret"})])
    for path, handler in {"/": long, "/large": large, "/secret": long, "/short": short, "/page": page}.items():
        app.router.add_get(path, handler)
    app.router.add_get("/stream", stream)
    app.router.add_post("/", long)
    async with TestClient(TestServer(app), auto_decompress=False) as client:
        yield client


@pytest.mark.parametrize(("path", "content"), [("/", LONG), ("/large", LARGE)])
async def test_a_long_answer_is_compressed_for_who_takes_it(path: str, content: Any) -> None:
    async with _client() as client:
        answer = await client.get(path, headers={"Accept-Encoding": "br, gzip;q=0.8"})
        body = await answer.read()
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert int(answer.headers["Content-Length"]) == len(body) < len(json.dumps(content)) / 4
        assert json.loads(gzip.decompress(body)) == content
        for refused in ("identity", "br", "gzip;q=0", ""):
            answer = await client.get(path, headers={"Accept-Encoding": refused})
            assert "Content-Encoding" not in answer.headers, refused
            # A cache does not give the one for the other.
            assert answer.headers["Vary"] == "Accept-Encoding"
            assert json.loads(await answer.read()) == content


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/short"), ("GET", "/page"), ("GET", "/stream"), ("GET", "/secret"), ("POST", "/")]
)
async def test_what_is_short_a_stream_or_has_a_secret_stays_as_it_is(method: str, path: str) -> None:
    async with _client() as client:
        answer = await client.request(method, path, headers={"Accept-Encoding": "gzip"})
        assert answer.status == 200
        assert "Content-Encoding" not in answer.headers
