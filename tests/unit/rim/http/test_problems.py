"""Errors below `/v1` are problems (RFC 9457), whoever raises them; elsewhere they are aiohttp's."""

import asyncio
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
    runner = GuardedRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        lines = ["POST /v1/read HTTP/1.1", "Host: a", "Content-Length: 1", "Connection: close"]
        lines += [f"Expect: {expected}"] if expected else []
        writer.write("\r\n".join([*lines, "", "x"]).encode())
        answer = (await reader.read()).decode()
        writer.close()
    finally:
        await runner.cleanup()

    final = answer.removeprefix("HTTP/1.1 100 Continue\r\n\r\n")
    assert final.startswith(f"HTTP/1.1 {status} ")
    assert (PROBLEM_JSON in final) == (status == 417)
    assert "cake" not in final


async def test_an_answer_that_has_begun_is_broken_off() -> None:
    async with _client() as client:
        with pytest.raises(Exception, match=r"payload|disconnected|reset|closed"):
            await (await client.get("/v1/fails-late")).read()
