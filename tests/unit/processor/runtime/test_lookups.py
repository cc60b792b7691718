"""Who is let in, over the real server; and how a slot answers that cannot."""

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.local.ports import free_port
from services.processor.engine.application import Application, Lookup, LookupWrong
from services.processor.engine.routing import Owner, Owners
from services.processor.runtime.lookups import PROXIED, Endpoint, LookupServer
from services.processor.runtime.ownership import Described, boot_seconds
from services.processor.runtime.questions import Looked, Questions
from tests.unit.processor.counting import APPLICATION

TOKEN = "a token of sixteen or more"


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer {TOKEN}", True),
        ("Basic " + base64.b64encode(f"anybody:{TOKEN}".encode()).decode(), True),
        ("", False),
        ("Bearer", False),
        (f"Bearer {TOKEN} ", False),
        ("Bearer caf\u00e9", False),
        (TOKEN, False),
        (f"Digest {TOKEN}", False),
        ("Basic " + base64.b64encode(f"{TOKEN}:anybody".encode()).decode(), False),
        ("Basic not base64", False),
        ("Basic " + base64.b64encode(b"\xff\xfe").decode(), False),
    ],
)
def test_the_token_opens_as_bearer_and_as_a_password(authorization: str, expected: bool) -> None:
    assert Endpoint("127.0.0.1", 1, TOKEN).admits(authorization) is expected


class Group:
    """Stands in for `Ownership`: it says what the test sets, each time it is wanted."""

    def __init__(self, url: str, member_id: str) -> None:
        self.owners = Owners(url, 1, {0: Owner("test/0", url)})
        self.member_id = member_id
        self.is_settled = True
        self._on_news: Callable[[], None] = lambda: None
        self.newest = Described()

    def start(self, on_news: Callable[[], None]) -> None:
        self._on_news = on_news

    def stop(self) -> None: ...

    def want(self) -> None:
        self.newest = Described(boot_seconds(), {}, {0: self.member_id}, self.is_settled)
        self._on_news()


class Answering(Questions):
    """A loop that turns at once."""

    def ask(self, question: Callable[[], Any]) -> Future[Any]:
        answer = super().ask(question)
        self.answer()
        return answer


@dataclass
class Setup:
    url: str
    group: Group
    worker: SimpleNamespace | None

    def get(self, path: str, **headers: str) -> tuple[int, Any, Any]:
        request = urllib.request.Request(self.url + path)
        for name, value in {"Authorization": f"Bearer {TOKEN}", **headers}.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read()), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), error.headers


def key_of(parts: Any) -> bytes:
    if parts["key"] == "wrong":
        raise LookupWrong("not a key")
    return str(parts["key"]).encode()


@pytest.fixture
def setup() -> Iterator[Setup]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    group = Group(url, "me")

    def look(_lookup: Lookup, key: bytes, _partition: int) -> tuple[Looked, str]:
        return Looked(b'{"n":1}' if key == b"there" else None, True, 0.0, 0), "me"

    worker = SimpleNamespace(partitions=frozenset({0}), questions=Answering(), look=look)
    made = Setup(url, group, worker)
    application = Application(
        **{name: getattr(APPLICATION, name) for name in ("name", "inputs", "outputs", "changelog", "stores", "start")},
        lookups=(Lookup("/counts/{key}", key_of, lambda rows, key: None),),
    )
    endpoint = Endpoint("127.0.0.1", port, TOKEN)
    server = LookupServer(
        application,
        endpoint,
        slot="test/0",
        ownership=group,  # type: ignore[arg-type]
        worker=lambda: made.worker,  # type: ignore[arg-type, return-value]
    )
    server.start()
    yield made
    server.stop()


def test_nothing_is_told_without_the_token(setup: Setup) -> None:
    status, _, headers = setup.get("/counts/there", Authorization="Bearer wrong")
    assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="playhead lookups"')
    status, _, headers = setup.get("/partitions", Authorization="", Accept="text/html")
    assert (status, headers["WWW-Authenticate"]) == (401, 'Basic realm="playhead lookups"')


def test_what_the_group_confirms_is_told_and_nothing_else(setup: Setup) -> None:
    status, body, _ = setup.get("/counts/there")
    assert (status, body["found"], body["slot"], body["committed"]) == (200, {"n": 1}, "test/0", True)
    assert setup.get("/counts/absent")[0] == 404
    setup.group.member_id = "another who took the slot's id"
    for path in ("/counts/there", "/counts/absent"):
        status, _, headers = setup.get(path)
        assert (status, headers["Retry-After"]) == (503, "1")


def test_a_group_that_stays_unsettled_is_waited_for_and_then_told_as_such(setup: Setup) -> None:
    setup.group.is_settled, setup.group.member_id = False, "nobody"
    assert setup.get("/counts/there")[0] == 503


def test_a_full_queue_is_told_as_such(setup: Setup) -> None:
    assert setup.worker is not None
    setup.worker.questions = Questions(questions_max=1)
    setup.worker.questions.ask(lambda: None)
    status, body, headers = setup.get("/counts/there")
    assert (status, headers["Retry-After"]) == (503, "1")
    assert "too many questions wait" in body


def test_a_request_that_was_passed_on_is_not_passed_on_again(setup: Setup) -> None:
    setup.worker = None
    setup.group.owners = Owners(setup.url, 1, {0: Owner("test/1", "http://127.0.0.1:1")})
    status, body, _ = setup.get("/counts/there", **{PROXIED: "test/2"})
    assert (status, "does not have the partition" in body) == (503, True)


def test_an_owner_that_does_not_answer_and_an_owner_nobody_knows_are_waited_for(setup: Setup) -> None:
    setup.worker = None
    for owners in ({0: Owner("test/1", f"http://127.0.0.1:{free_port()}")}, {}, {0: Owner("test/0", setup.url)}):
        setup.group.owners = Owners(setup.url, 1, owners)
        status, _, headers = setup.get("/counts/absent")
        assert (status, headers["Retry-After"]) == (503, "1")


def test_a_path_that_names_no_key_is_the_askers_mistake(setup: Setup) -> None:
    status, body, _ = setup.get("/counts/wrong")
    assert (status, "not a key" in body) == (400, True)
