"""Errors below `/v1` are problems (RFC 9457), whoever raises them; elsewhere they are aiohttp's."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.rim.admin.guarded_runner import HTTP_LOG, GuardedRunner
from services.rim.http.problems import api_problems
from shared.http.problems import PROBLEM_JSON, TYPES


async def _read(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


async def _fail(_: web.Request) -> web.Response:
    raise RuntimeError("a secret")


async def _fail_late(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"begun")
    raise RuntimeError("a secret")


async def _moved(_: web.Request) -> web.Response:
    raise web.HTTPFound("/v1/other")


def _client() -> TestClient[Any, Any]:
    app = web.Application(middlewares=[api_problems], client_max_size=100)
    for prefix in ("", "/v1"):
        app.router.add_post(f"{prefix}/read", _read)
        app.router.add_get(f"{prefix}/fails", _fail)
    app.router.add_get("/v1/fails-late", _fail_late)
    app.router.add_get("/v1/moved", _moved)
    return TestClient(TestServer(app, logger=HTTP_LOG))


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/v1", 404, "unknown"),
        ("GET", "/v1/", 404, "unknown"),
        ("GET", "/v1/read", 405, "method"),
        ("POST", "/v1/read", 413, "body-large"),
        ("GET", "/v1/fails", 500, "failed"),
    ],
)
async def test_an_error_below_v1_is_a_problem(method: str, path: str, status: int, kind: str) -> None:
    async with _client() as client, client.request(method, path, data=b"x" * 101) as answer:
        problem = await answer.json(content_type=PROBLEM_JSON)

    assert (answer.status, problem["status"], problem["type"]) == (status, status, TYPES + kind)
    assert "secret" not in str(problem)
    assert answer.headers.get("Allow") == ("POST" if status == 405 else None)
    assert len(answer.headers.getall("Content-Type")) == 1


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/x", 404), ("GET", "/read", 405), ("GET", "/v10", 404)]
)
async def test_an_error_elsewhere_stays_as_it_is(method: str, path: str, status: int) -> None:
    async with _client() as client, client.request(method, path) as answer:
        assert (answer.status, answer.content_type) == (status, "text/plain")


async def test_what_is_no_error_stays_as_it_is() -> None:
    async with _client() as client, client.get("/v1/moved", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, "/v1/other")


@pytest.mark.parametrize(
    ("expected", "status"),
    [("100-continue", 200), ("100-Continue", 200), ("a cake", 417), ("\u00e9", 417), (None, 200)],
)
async def test_what_is_expected_in_vain_is_refused_with_a_problem(expected: str | None, status: int) -> None:
    app = web.Application(middlewares=[api_problems])
    app.router.add_post("/v1/read", _read)
    lines = ["POST /v1/read HTTP/1.1", "Host: a", "Content-Length: 1", "Connection: close"]
    lines += [f"Expect: {expected}"] if expected else []
    answer = await _answer(app, "\r\n".join([*lines, "", "x"]).encode())

    final = answer.removeprefix("HTTP/1.1 100 Continue\r\n\r\n")
    assert final.startswith(f"HTTP/1.1 {status} ")
    assert (PROBLEM_JSON in final) == (status == 417)
    assert "cake" not in final


async def test_an_answer_that_has_begun_is_broken_off() -> None:
    async with _client() as client:
        with pytest.raises(Exception, match=r"payload|disconnected|reset|closed"):
            await (await client.get("/v1/fails-late")).read()


@pytest.mark.parametrize(
    ("request_bytes", "kind"),
    [
        (b"a cake\r\n\r\n", "malformed"),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", "malformed"),
        (b"GET /v1/cake HTTP/9.9\r\n\r\n", "malformed"),
        (b"GET /v1/read HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "malformed"),
        (b"GET /v1/read HTTP/1.1\r\nHost: a\r\nContent-Length: cake\r\n\r\n", "malformed"),
        (b"GET /v1/read HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", "malformed"),
        (b"GET /v1/" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", "request-long"),
        (b"GET /v1/read HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", "request-long"),
    ],
)
async def test_what_is_no_http_is_refused_with_a_problem_that_does_not_quote_it(
    request_bytes: bytes, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = web.Application(middlewares=[api_problems])
    app.router.add_get("/v1/read", _read)
    # After one that is answered, too.
    before = b"GET /v1/read HTTP/1.1\r\nHost: a\r\n\r\n"
    for sent in ([request_bytes], [before, request_bytes]):
        head, _, body = (await _answer(app, *sent)).rpartition("\r\n\r\n")
        problem = json.loads(body)
        assert (problem["status"], problem["type"]) == (400, TYPES + kind)
        # aiohttp answers what it cannot read as HTTP/1.0, whose connections end with the answer.
        assert f"HTTP/1.0 400 Bad Request\r\nContent-Type: {PROBLEM_JSON}" in head
        assert "cake" not in head + body
    assert not [record for record in caplog.records if record.exc_info]


async def _answer(app: web.Application, *requests: bytes) -> str:
    """All that a server of the application answers to the last of these requests, until it closes the connection.

    Those before have answers without a body.
    """
    runner = GuardedRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        for request in requests[:-1]:
            writer.write(request)
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        writer.write(requests[-1])
        answer = (await asyncio.wait_for(reader.read(), 30)).decode()
        writer.close()
    finally:
        await runner.cleanup()
    return answer
