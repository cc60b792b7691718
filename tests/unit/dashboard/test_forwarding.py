"""Questions that are passed on: as they are, to a service that may be away, slow or broken."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from deploy.local.ports import free_port
from services.accounts.core.credentials import Credential, Kind, parsed_credential
from services.accounts.http.access import METRICS, Routing
from services.accounts.http.open_requests import OpenRequests
from services.dashboard import forwarding
from services.dashboard.forwarding import Forwarding
from services.rim.http import writing
from services.rim.http.openapi import Operation, document
from shared.http.problems import TYPES, Problem
from tests.unit.dashboard.door import credential


@dataclass
class Elsewhere:
    """The service that questions are passed on to; `answer` is the test's."""

    answer: Callable[[web.Request], Any]
    reads_bodies: bool = True
    seen: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    has_begun: asyncio.Event = field(default_factory=asyncio.Event)
    was_cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        self.has_begun.set()
        try:
            if self.reads_bodies:
                self.bodies.append(await request.read())
            return await self.answer(request)  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise


async def _plain(request: web.Request) -> web.Response:
    return web.json_response({"path": request.raw_path}, status=418, headers={"Set-Cookie": "a=b", "X-Own": "1"})


@contextlib.asynccontextmanager
async def passing(
    answer: Callable[[web.Request], Any] = _plain,
    *,
    seconds: float = 20,
    url: str | None = None,
    open_requests: OpenRequests | None = None,
) -> AsyncIterator[tuple[Any, Elsewhere]]:
    """A client of the dashboard's routes, and what is behind them."""
    elsewhere = Elsewhere(answer)
    behind = web.Application()
    behind.router.add_route("*", "/{tail:.*}", elsewhere.handle)
    app = web.Application()
    routing = Routing(app)

    async def own(_: web.Request) -> web.Response:
        return web.json_response("here")

    routing.get("/v1/live", own, METRICS, name="live")
    async with TestServer(behind, handler_cancellation=True) as server:
        passing_on = Forwarding(str(server.make_url("/")) if url is None else url, wait_seconds_max=seconds)
        passing_on.add_to(routing, [Operation("/v1/live", "what is now", Problem)], open_requests)
        await passing_on.open()
        try:
            async with TestClient(TestServer(app, handler_cancellation=True)) as client:
                yield client, elsewhere
        finally:
            await passing_on.close()


async def test_a_question_and_its_answer_are_passed_on_as_they_are() -> None:
    path = "/v1/overall?filter=%7B%22a%22%3A%20%22b%2Fc%22%7D&filter=+x"
    headers = {"Authorization": "Bearer secret", "Host": "playhead.example.com", "Connection": "X-Hop", "X-Hop": "1"}
    async with (
        passing() as (client, elsewhere),
        client.session.post(
            URL(f"{client.make_url('')}{path}", encoded=True),
            data=b"body",
            headers=headers | {"X-Forwarded-For": "1.2.3.4"},
        ) as answer,
    ):
        assert (answer.status, await answer.json()) == (418, {"path": path})
        assert (answer.headers["X-Own"], answer.headers["Set-Cookie"]) == ("1", "a=b")
    (request,) = elsewhere.seen
    assert (request.method, elsewhere.bodies) == ("POST", [b"body"])
    assert (request.headers["Host"], request.headers["Authorization"]) == ("playhead.example.com", "Bearer secret")
    assert request.headers["X-Forwarded-For"] == "1.2.3.4, 127.0.0.1"
    assert "X-Hop" not in request.headers


async def test_what_is_served_here_is_answered_here() -> None:
    async with passing() as (client, elsewhere), client.get("/v1/live") as answer:
        assert await answer.json() == "here"
    assert elsewhere.seen == []


async def test_an_answer_is_passed_on_while_it_comes() -> None:
    goes_on = asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        await goes_on.wait()
        await response.write(b"last")
        return response

    async with passing(slowly) as (client, _), client.get("/v1/exports/1") as answer:
        assert await answer.content.readany() == b"first"
        goes_on.set()
        assert await answer.content.read() == b"last"


async def test_a_client_that_goes_away_ends_its_question() -> None:
    async def never(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async with passing(never) as (client, elsewhere):
        asking = asyncio.create_task(client.get("/v1/overall"))
        async with asyncio.timeout(20):
            await elsewhere.has_begun.wait()
            asking.cancel()
            await elsewhere.was_cancelled.wait()


async def _breaks_off(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _hangs(_: web.Request) -> web.Response:
    await asyncio.Event().wait()
    return web.Response()


@pytest.mark.parametrize(
    ("answer", "url", "status", "kind"),
    [
        (_plain, f"http://127.0.0.1:{free_port()}", 503, "query-away"),
        (_breaks_off, None, 503, "query-away"),
        (_hangs, None, 504, "query-slow"),
        (_plain, "", 404, "query-off"),
    ],
    # The port is another one in each worker, and so would be the test's name.
    ids=["away", "breaks off", "hangs", "off"],
)
async def test_a_service_that_gives_no_answer_is_named(
    answer: Callable[[web.Request], Any], url: str | None, status: int, kind: str
) -> None:
    async with passing(answer, seconds=0.2, url=url) as (client, _), client.get("/v1/overall") as found:
        problem = await found.json()
        assert (found.status, problem["type"]) == (status, f"urn:playhead:problem:{kind}")
        assert found.content_type == "application/problem+json"


async def test_an_answer_that_breaks_off_is_not_taken_for_whole() -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "10"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response

    async with passing(half) as (client, _):
        with pytest.raises(Exception, match=r"payload|disconnected|reset|closed"):
            await (await client.get("/v1/exports/1")).read()


async def _drips(request: web.Request) -> web.StreamResponse:
    """Answers shortly, but for `/v1/exports/…`: of that a byte comes again and again."""
    if "exports" not in request.path:
        return await _plain(request)
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x")
        await asyncio.sleep(0.01)


async def test_a_wait_for_a_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "CONNECTIONS_MAX", 1)
    many = OpenRequests(1_000)
    async with (
        passing(_drips, seconds=0.2, open_requests=many) as (client, _),
        client.get("/v1/exports/1") as one,
    ):
        assert await one.content.readany()
        async with asyncio.timeout(20), client.get("/v1/overall") as waited:
            assert (waited.status, (await waited.json())["type"]) == (503, f"{TYPES}query-away")
            assert waited.headers["Retry-After"] == "1"


async def test_who_does_not_read_an_answer_holds_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(writing, "WRITE_SECONDS_MAX", 0.2)
    was_given_up = asyncio.Event()

    async def large(request: web.Request) -> web.StreamResponse:
        if "exports" not in request.path:
            return await _plain(request)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(bytes(1 << 20))
        finally:
            was_given_up.set()

    async with passing(large, open_requests=OpenRequests(1_000)) as (client, _):
        _, writer = await asyncio.open_connection(client.server.host, client.server.port, limit=1_024)
        writer.write(b"GET /v1/exports/1 HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(20):
            await was_given_up.wait()
            async with client.get("/v1/overall") as answer:
                assert answer.status == 418
        writer.close()


async def test_who_does_not_send_a_body_that_is_refused_holds_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "CONNECTIONS_MAX", 1)

    async def refuses(_: web.Request) -> web.Response:
        return web.Response(status=403)

    async with passing(refuses, open_requests=OpenRequests(1_000)) as (client, elsewhere):
        elsewhere.reads_bodies = False
        _, writer = await asyncio.open_connection(client.server.host, client.server.port)
        writer.write(b"POST /v1/exports HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
        async with asyncio.timeout(5):
            await elsewhere.has_begun.wait()
            async with client.get("/v1/overall") as answer:
                assert answer.status == 403
        writer.close()


async def test_a_caller_has_so_many_requests_open_and_others_are_answered() -> None:
    # Of ten connections two are for a credential, and five for an address.
    limits = OpenRequests(10, credential=_token_of, address=lambda request: request.headers["Address"])
    async with passing(_drips, open_requests=limits) as (client, _), contextlib.AsyncExitStack() as held:

        def given(who: int, address: str) -> dict[str, str]:
            return {"Authorization": credential(Kind.TOKEN, who).text, "Address": address}

        async def hold(who: int, address: str) -> None:
            one = await held.enter_async_context(client.get("/v1/exports/1", headers=given(who, address)))
            assert (one.status, await one.content.readexactly(1)) == (200, b"x")

        async def status(who: int, address: str) -> int:
            async with client.get("/v1/overall", headers=given(who, address)) as answer:
                if answer.status == 429:
                    assert (await answer.json())["type"] == f"{TYPES}too-many-questions"
                    assert answer.headers["Retry-After"] == "1"
                return answer.status  # type: ignore[no-any-return]

        for _ in range(2):
            await hold(1, "192.0.2.1")
        assert [await status(1, "192.0.2.2"), await status(2, "192.0.2.1")] == [429, 418]
        # Invented credentials help nobody: an address has its own bound.
        for who in (2, 3, 4):
            await hold(who, "192.0.2.1")
        assert [await status(5, "192.0.2.1"), await status(5, "192.0.2.2")] == [429, 418]
        await held.aclose()
        async with asyncio.timeout(20):
            while await status(1, "192.0.2.1") != 418:  # noqa: ASYNC110 - what was held is let go a moment later
                await asyncio.sleep(0.01)


def _token_of(request: web.Request) -> Credential | None:
    return parsed_credential(Kind.TOKEN, request.headers.get("Authorization", ""))


async def test_the_document_is_that_of_both_services_or_there_is_none_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a document would say that there is no other half."""
    monkeypatch.setattr(forwarding, "_DOCUMENT_SECONDS", 0.0)
    answers: list[Callable[[web.Request], Any]] = []

    async def described(_: web.Request) -> web.StreamResponse:
        return web.json_response(document([Operation("/v1/overall", "all views", Problem)]))

    async def no_document(_: web.Request) -> web.StreamResponse:
        return web.json_response({"paths": {"/v1/overall": {"parameters": []}}, "components": {"schemas": {}}})

    async def another(_: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok"})

    async def now(request: web.Request) -> web.StreamResponse:
        return await answers[-1](request)  # type: ignore[no-any-return]

    async def given(client: Any) -> tuple[int, dict[str, Any]]:
        async with client.get("/v1/openapi.json") as answer:
            return answer.status, await answer.json()

    async with passing(now) as (client, _):
        for answer in (_breaks_off, no_document, another):
            answers.append(answer)
            status, problem = await given(client)
            assert (status, problem["type"]) == (503, f"{TYPES}query-away")
        answers.append(described)
        status, whole = await given(client)
        assert (status, set(whole["paths"])) == (200, {"/v1/live", "/v1/overall"})
        assert {"502", "503", "504"} <= set(whole["paths"]["/v1/overall"]["get"]["responses"])
        assert "502" not in whole["paths"]["/v1/live"]["get"]["responses"]
        for answer in (_breaks_off, no_document, another):
            answers.append(answer)
            assert await given(client) == (200, whole), "what it said before"
    async with passing(url="") as (client, _):
        assert set((await given(client))[1]["paths"]) == {"/v1/live"}, "no other service is set"


async def test_who_asks_for_the_document_again_does_not_ask_the_other_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_DOCUMENT_SECONDS", 3_600.0)

    async def described(_: web.Request) -> web.StreamResponse:
        return web.json_response(document([Operation("/v1/overall", "all views", Problem)]))

    async with passing(described) as (client, elsewhere):
        for _ in range(5):
            async with client.get("/v1/openapi.json") as answer:
                assert answer.status == 200
        assert len(elsewhere.seen) == 1
