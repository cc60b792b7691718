"""Paths and methods that nobody serves: each answer is a problem, of the query service and of the dashboard before it."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from services.dashboard.app import make_app
from services.dashboard.forwarding import Forwarding
from shared.http.problems import PROBLEM_JSON, TYPES
from tests.unit.dashboard.desk import NOW_MS, STREAMS_MAX, quiet_board
from tests.unit.dashboard.door import METRICS_TOKEN, door
from tests.unit.query.parts.desk import desk as query_desk
from tests.unit.query.parts.desk import headers_of


@contextlib.asynccontextmanager
async def client_of(service: str) -> AsyncIterator[Any]:
    """A client of `query`; `dashboard`, which passes on to it; or `alone`, which is the dashboard without it."""
    async with query_desk() as at:
        if service == "query":
            yield at.client
            return
        forwarding = Forwarding(str(at.client.make_url("/")) if service == "dashboard" else "", wait_seconds_max=20)
        board = quiet_board()
        app = make_app(board, None, door(), streams_max=STREAMS_MAX, now_ms=lambda: NOW_MS, forwarding=forwarding)
        await forwarding.open()
        try:
            async with TestClient(TestServer(app)) as client:
                yield client
        finally:
            await forwarding.close()


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/v1/nope", 404, None),
        ("DELETE", "/v1/nope/x", 404, None),
        ("OPTIONS", "/v1/nope", 404, None),
        ("GET", "/v1", 404, None),
        ("POST", "/v1/overall", 405, "GET,HEAD"),
        ("OPTIONS", "/v1/overall", 405, "GET,HEAD"),
        ("PUT", "/v1/exports", 405, "GET,HEAD,POST"),
    ],
)
@pytest.mark.parametrize("service", ["query", "dashboard"])
async def test_what_nobody_serves_is_answered_with_a_problem(
    service: str, method: str, path: str, status: int, allowed: str | None
) -> None:
    async with client_of(service) as client, client.request(method, path, headers=headers_of(METRICS_TOKEN)) as answer:
        problem = await answer.json(content_type=PROBLEM_JSON)

    assert (answer.status, problem["status"], problem["type"]) == (
        status,
        status,
        TYPES + ("unknown" if status == 404 else "method"),
    )
    assert answer.headers.get("Allow") == allowed


@pytest.mark.parametrize("service", ["query", "dashboard"])
async def test_the_head_of_an_answer_is_asked_for_alone(service: str) -> None:
    async with client_of(service) as client:
        for path, status, kind in (("/v1/nope", 404, PROBLEM_JSON), ("/v1/overall", 200, "application/json")):
            async with client.head(path, headers=headers_of(METRICS_TOKEN)) as answer:
                assert (answer.status, answer.content_type, await answer.read()) == (status, kind, b"")


@pytest.mark.parametrize("service", ["dashboard", "alone"])
@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
async def test_a_path_of_the_dashboard_names_its_own_methods(service: str, method: str) -> None:
    async with client_of(service) as client, client.request(method, "/v1/live") as answer:
        problem = await answer.json(content_type=PROBLEM_JSON)

    assert (answer.status, problem["type"], answer.headers["Allow"]) == (405, f"{TYPES}method", "GET,HEAD")


@pytest.mark.thorough
async def test_files_of_the_page_are_no_part_of_the_api() -> None:
    async with client_of("dashboard") as client, client.get("/static/nope.js") as answer:
        assert (answer.status, answer.content_type) == (404, "text/plain")
