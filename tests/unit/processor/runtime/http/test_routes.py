"""An application's routes over the real server: steps taken here or in one hop, with confirmed ownership, within their time."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import pytest

from deploy.local.ports import free_port
from services.processor.engine.application.access import LookFailed
from services.processor.engine.application.requests import Ask, Await, Handling, Query, Reply, Request, Route, Submit
from services.processor.engine.routing import Owner, Owners
from services.processor.runtime.http.queries import HOP_PATH, OwnerQuery
from services.processor.runtime.http.routes import RequestLimits
from services.processor.runtime.http.server import LookupServer
from services.processor.runtime.questions import Questions, Unanswered
from services.processor.runtime.slot.watches import Watches
from shared.partitioning import partition_of
from shared.settings import Settings
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION
from tests.unit.processor.runtime.http.stand_ins import PARTITIONS, SLOTS_TOKEN, TOKEN, Answering, Group, Here, endpoint

THING = Query("thing", lambda rows, subject: None)


def get(request: Request) -> Handling:
    key = request.parts["key"].encode()
    found = yield Ask(THING, partition_of(key, request.partitions), key)
    return Reply(404) if found is None else Reply(200, found, (("ETag", '"1"'), ("Content-Type", "application/json")))


def wait(request: Request) -> Handling:
    key = request.parts["key"].encode()
    return Reply(200, (yield Await(THING, partition_of(key, request.partitions), key)))


def put(request: Request) -> Handling:
    yield Submit(BEACONS, b"a", request.body)
    return Reply(204)


def echo(request: Request) -> Handling:
    yield from ()
    seen = {"q": dict(request.query), "h": request.headers.get("x-echo"), "n": len(request.nonce), "m": request.method}
    return Reply(200, json.dumps(seen).encode())


def raising(request: Request) -> Handling:
    yield from ()
    raise ZeroDivisionError("a bug in the application")


ROUTED = replace(
    APPLICATION,
    routes=(
        Route("GET", "/things/{key}", get),
        Route("GET", "/waits/{key}", wait),
        Route("PUT", "/things/{key}", put),
        Route("PATCH", "/echo", echo),
        Route("GET", "/raises", raising),
    ),
    queries=(THING,),
)


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Any


class Process(NamedTuple):
    """One process that serves the routes."""

    url: str
    group: Group
    here: Here
    server: LookupServer

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        request = urllib.request.Request(self.url + path, body, method=method)
        for name, value in {"Authorization": f"Bearer {TOKEN}", **headers}.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, answer.read(), answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, json.loads(error.read() or b"null"), error.headers)


class Loop(SimpleNamespace):
    """Stands in for a `Worker` with these rows and every partition."""

    def __init__(self, rows: dict[bytes, bytes]) -> None:
        super().__init__(questions=Answering(), rows=rows, member_id="me", queries=self)
        self.watches = Watches()

    def has(self, _partition: int) -> bool:
        return True

    def ask(self, query: Query, subject: bytes, _partition: int) -> tuple[bytes | None, str]:
        if subject == b"broken":
            raise LookFailed("broken")
        return self.rows.get(subject), self.member_id

    def watch(self, query: Query, subject: bytes, partition: int, until: float) -> Future[tuple[bytes | None, str]]:
        return self.watches.add(partition, lambda: self.ask(query, subject, partition), until)


@pytest.fixture
def make() -> Iterator[Callable[..., Process]]:
    """Starts processes of the slots that the test names."""
    made: list[Process] = []

    def start(slot: str, seconds_max: float = 30.0) -> Process:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        group, here = Group(url, "me"), Here()
        server = LookupServer(
            ROUTED,
            endpoint(port),
            slot=slot,
            ownership=group,  # type: ignore[arg-type]
            replica=here,  # type: ignore[arg-type]
            settings=Settings(kafka_bootstrap="127.0.0.1:1"),
            requests=RequestLimits(seconds_max=seconds_max, body_bytes_max=100),
        )
        server.start()
        made.append(Process(url, group, here, server))
        return made[-1]

    yield start
    for each in made:
        each.server.stop()


@pytest.fixture
def process(make: Callable[..., Process]) -> Process:
    """The process of the slot that has everything, and a row."""
    one = make("test/0")
    one.here.worker = Loop({b"there": b"{}"})
    return one


def elsewhere(process: Process, url: str | None) -> None:
    """From now on the process believes that another slot has everything."""
    process.here.worker = None
    owners = dict.fromkeys(range(PARTITIONS), Owner("test/9", url))
    process.group.owners = Owners(process.url, PARTITIONS, owners)


def test_an_owner_answers_for_itself_and_says_what_the_handler_says(process: Process) -> None:
    answer = process.ask("/things/there")
    assert (answer.status, answer.body, answer.headers["ETag"]) == (200, b"{}", '"1"')
    assert process.ask("/things/absent").status == 404


@pytest.mark.thorough
def test_another_process_asks_the_owner_in_one_hop(process: Process, make: Callable[..., Process]) -> None:
    other = make("test/1", seconds_max=1.0)
    elsewhere(other, process.url)
    assert other.ask("/things/there").body == b"{}"
    assert other.ask("/things/absent").status == 404, "the owner says so"
    assert other.ask("/things/broken").status == 500
    # Both believe that the other has it: nobody asks back.
    elsewhere(process, other.url)
    answer = other.ask("/things/there")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


def test_what_the_group_does_not_confirm_is_not_reported(make: Callable[..., Process]) -> None:
    process = make("test/0", seconds_max=0.5)
    process.here.worker = Loop({b"there": b"{}"})
    process.group.member_id = "another who took the slot's id"
    for path in ("/things/there", "/things/absent", "/waits/there"):
        answer = process.ask(path)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert answer.body["type"] == "urn:playhead:problem:unanswered"


def test_it_asks_again_until_somebody_can_answer(process: Process) -> None:
    loop, tries = process.here.worker, []

    def ask(query: Query, subject: bytes, partition: int) -> tuple[bytes | None, str]:
        tries.append(subject)
        if len(tries) < 3:
            raise Unanswered("the partition is being taken")
        return b"now", "me"

    loop.ask = ask
    assert process.ask("/things/there").body == b"now"


def test_a_question_may_wait_for_a_commit(process: Process) -> None:
    loop = process.here.worker
    commit = iter(range(1, 1_000_000))

    def watch(query: Query, subject: bytes, partition: int, until: float) -> Future[tuple[bytes | None, str]]:
        answer = loop.watches.add(partition, lambda: loop.ask(query, subject, partition), until)
        loop.watches.turn({partition: next(commit)})
        assert not answer.done()
        loop.rows[subject] = b"committed"
        loop.watches.turn({partition: next(commit)})
        return answer  # type: ignore[no-any-return]

    loop.watch = watch
    assert process.ask("/waits/later").body == b"committed"


def test_who_waits_in_vain_is_asked_to_retry(make: Callable[..., Process]) -> None:
    process, other = make("test/0", seconds_max=0.5), make("test/1", seconds_max=0.5)
    process.here.worker = Loop({})
    elsewhere(other, process.url)
    for one in (process, other):
        answer = one.ask("/waits/never")
        assert (answer.status, "idempotency" in answer.body["detail"]) == (503, False)
    elsewhere(process, None)
    assert "no slot is known" in process.ask("/things/there").body["detail"]


def test_a_write_that_kafka_does_not_confirm_is_reported_as_unknown(make: Callable[..., Process]) -> None:
    answer = make("test/0", seconds_max=0.5).ask("/things/a", "PUT", b"x")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert "a request with the same idempotency key gets its outcome" in answer.body["detail"]


def test_a_full_queue_is_reported_as_such(make: Callable[..., Process]) -> None:
    process = make("test/0", seconds_max=0.5)
    process.here.worker = Loop({})
    process.here.worker.questions = Questions(questions_max=1)
    process.here.worker.questions.ask(lambda: None)
    assert "too many questions wait" in process.ask("/things/there").body["detail"]


def test_the_handler_sees_the_request(process: Process) -> None:
    answer = process.ask("/echo?a=1&b=%20", "PATCH", b"{}", X_Echo="this")
    assert json.loads(answer.body) == {"q": {"a": "1", "b": " "}, "h": "this", "n": 32, "m": "PATCH"}


@pytest.mark.parametrize(
    ("asked", "headers", "status"),
    [
        (("/raises",), {}, 500),
        (("/nothing",), {}, 404),
        (("/echo", "DELETE"), {}, 405),
        (("/echo", "PATCH", b"x" * 101), {}, 413),
        (("/things/there",), {"Authorization": "Bearer wrong"}, 401),
    ],
)
def test_everything_that_is_refused_is_a_problem(
    process: Process, asked: tuple[Any, ...], headers: dict[str, str], status: int
) -> None:
    answer = process.ask(*asked, **headers)
    assert (answer.status, answer.body["status"]) == (status, status)
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_hop_that_is_none_is_refused_and_an_unknown_question_waits_for_an_upgrade(process: Process) -> None:
    for body, status in ((b"\xc1", 400), (msgspec.msgpack.encode(OwnerQuery("newer", 0, b"", False, 1.0)), 503)):
        request = urllib.request.Request(process.url + HOP_PATH, body, {"Authorization": f"Bearer {SLOTS_TOKEN}"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        with refused.value as error:
            assert error.code == status


def test_a_body_that_does_not_come_gives_its_place_back(make: Callable[..., Process]) -> None:
    process = make("test/0", seconds_max=0.5)
    host, port = process.url.removeprefix("http://").split(":")
    head = f"PATCH /echo HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\nhalf"
    with socket.create_connection((host, int(port)), timeout=30) as slow:
        slow.sendall(head.encode())
        answer = slow.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 408 "), answer
    assert process.ask("/echo", "PATCH", b"{}").status == 200
