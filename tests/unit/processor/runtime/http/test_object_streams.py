"""Stored objects as answers: one as it came, many as the parts of one body, and never half of one that looks whole."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.processor.engine.application.application import Objects, StoredObject
from services.processor.runtime.http import object_streams
from services.processor.runtime.http.object_streams import Busy, ObjectAnswers
from services.processor.runtime.objects.object_store import ObjectMissing, ObjectStore

CONTENTS = {"a/0": b"first \r\n--not a boundary", "a/1": bytes(700_000), "a/2": b"third"}
Client = TestClient[web.Request, web.Application]


def stored(name: str, **headers: str) -> StoredObject:
    return StoredObject(name, len(CONTENTS.get(name, b"?")), {"Content-Type": "text/plain", **headers})


class Desk:
    """An application that gives out what the test gave it."""

    def __init__(self, folder: Path) -> None:
        store = ObjectStore(str(folder))
        for name, content in CONTENTS.items():
            store.put(name, iter([content]), len(content))
        self.answers = ObjectAnswers(store)
        self.found = Objects([])
        self.rest: dict[str, Objects] = {}
        self.asked: list[Mapping[str, str]] = []

    async def give(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self.answers.respond(request, self.found, self._more)
        except (ObjectMissing, Busy) as error:
            return web.Response(status=404 if isinstance(error, ObjectMissing) else 503)

    async def _more(self, parameters: Mapping[str, str]) -> Objects | None:
        self.asked.append(parameters)
        return self.rest.get(parameters["from"])


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
async def client(desk: Desk) -> AsyncIterator[Client]:
    app = web.Application()
    app.router.add_get("/", desk.give)
    async with TestClient(TestServer(app), auto_decompress=False) as made:
        yield made


async def parts_of(client: Client) -> list[tuple[str, bytes]]:
    async with client.get("/") as answer:
        assert answer.status == 200
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        reader = aiohttp.MultipartReader.from_response(answer)
        found = []
        while (part := await reader.next()) is not None:
            assert isinstance(part, aiohttp.BodyPartReader)
            found.append((part.headers["Content-Type"], bytes(await part.read())))
        return found


async def test_no_browser_runs_an_object_of_any_type(desk: Desk, client: Client) -> None:
    desk.found = Objects([stored("a/0", **{"Content-Type": "text/html"})], is_one=True)
    async with client.get("/") as answer:
        assert (answer.status, await answer.read()) == (200, CONTENTS["a/0"])
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["Playhead-Content-Type"] == "text/html"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in answer.headers["Content-Security-Policy"]


async def test_many_are_the_parts_of_one_body_in_their_order(desk: Desk, client: Client) -> None:
    desk.found = Objects([stored(name) for name in ("a/1", "a/0", "a/2")])
    assert await parts_of(client) == [("text/plain", CONTENTS[name]) for name in ("a/1", "a/0", "a/2")]


async def test_what_comes_after_is_asked_for_when_it_is_wanted(desk: Desk, client: Client) -> None:
    desk.found = Objects([stored("a/0")], rest={"from": "1"})
    desk.rest = {"1": Objects([stored("a/1")], rest={"from": "2"}), "2": Objects([stored("a/2")])}
    assert [content for _, content in await parts_of(client)] == list(CONTENTS.values())
    assert desk.asked == [{"from": "1"}, {"from": "2"}]


async def test_none_at_all_is_a_body_without_parts(desk: Desk, client: Client) -> None:
    assert await parts_of(client) == []


async def test_one_is_given_out_as_it_came(desk: Desk, client: Client) -> None:
    desk.found = Objects([stored("a/1", **{"Content-Encoding": "gzip"})], is_one=True)
    async with client.get("/") as answer:
        assert await answer.read() == CONTENTS["a/1"]
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Content-Length"] == "700000"


async def test_one_that_is_gone_is_reported(desk: Desk, client: Client) -> None:
    desk.found = Objects([stored("a/none")], is_one=True)
    async with client.get("/") as answer:
        assert answer.status == 404


async def test_a_body_that_lacks_an_object_is_broken_off(desk: Desk, client: Client) -> None:
    desk.found = Objects([stored("a/0"), stored("a/none"), stored("a/2")])
    with pytest.raises(aiohttp.ClientError):
        async with client.get("/") as answer:
            await answer.read()


async def test_more_than_may_be_streamed_at_once_are_asked_to_retry(
    desk: Desk, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_streams, "STREAMS_MAX", 0)
    async with client.get("/") as answer:
        assert answer.status == 503
