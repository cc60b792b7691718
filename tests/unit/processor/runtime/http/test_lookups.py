"""Who is let in, over the real server; and how a slot answers that cannot."""

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.local.ports import free_port
from services.processor.engine.application.application import Application, Candidate, Lookup, LookupWrong
from services.processor.engine.routing import Owner, Owners
from services.processor.runtime.http.hops import PROXIED
from services.processor.runtime.http.routes import RequestLimits
from services.processor.runtime.http.server import LookupServer
from services.processor.runtime.questions import Looked, LookedInCopy, Questions, Unanswered
from shared.partitioning import partition_of
from shared.schemas.slots import PartitionStatus, SlotStatus
from shared.settings import Settings
from tests.unit.processor.engine.counting import APPLICATION
from tests.unit.processor.runtime.http.stand_ins import (
    PARTITIONS,
    SLOTS_TOKEN,
    TOKEN,
    Answering,
    Group,
    Here,
    answering,
    endpoint,
    having,
)


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer {TOKEN}", True),
        ("", False),
        ("Bearer", False),
        (f"Bearer {TOKEN} ", False),
        ("Bearer caf\u00e9", False),
        (TOKEN, False),
        (f"Digest {TOKEN}", False),
        ("Basic " + base64.b64encode(f"anybody:{TOKEN}".encode()).decode(), False),
        # As the server reads a byte that is no UTF-8.
        ("Bearer \udcff", False),
    ],
)
def test_the_token_opens_as_bearer_alone(authorization: str, expected: bool) -> None:
    assert (endpoint(1).credentials.holder(authorization) is not None) is expected


@dataclass
class Setup:
    """One process with lookups."""

    url: str
    group: Group
    here: Here
    server: LookupServer

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


def candidates_of(parts: Any) -> tuple[Candidate, ...]:
    if parts["key"] == "wrong":
        raise LookupWrong("not a key")
    return tuple(Candidate(name.encode(), name.encode()) for name in str(parts["key"]).split("+"))


def worker(rows: dict[bytes, bytes]) -> SimpleNamespace:
    """One that has every partition and these rows."""

    def look(_lookup: Lookup, subject: bytes, _partition: int) -> tuple[Looked, str]:
        return Looked(rows.get(subject), 0.0, 0), "me"

    return having(frozenset(range(PARTITIONS)), look=look)


def standby(rows: dict[bytes, bytes]) -> SimpleNamespace:
    """One that has copies of these rows."""

    def look(_lookup: Lookup, subject: bytes, _partition: int) -> LookedInCopy:
        return LookedInCopy(rows.get(subject), 1_234, 5)

    return SimpleNamespace(questions=Answering(), look=look)


def counting() -> Application:
    """The application that counts, with lookups of its own."""
    names = ("name", "inputs", "outputs", "changelog", "stores", "start")
    return Application(
        **{name: getattr(APPLICATION, name) for name in names},
        lookups=(
            Lookup("/counts/{key}", candidates_of, lambda rows, key: None),
            Lookup(
                "/documents",
                candidates_of,
                lambda rows, key: None,
                parameters=frozenset({"key"}),
                is_document=True,
            ),
        ),
    )


@pytest.fixture
def make() -> Iterator[Callable[[str], Setup]]:
    """Starts processes of the slots that the test names."""
    made: list[Setup] = []

    def start(slot: str) -> Setup:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        group, here = Group(url, "me"), Here()
        server = LookupServer(
            counting(),
            endpoint(port),
            slot=slot,
            ownership=group,  # type: ignore[arg-type]
            replica=here,  # type: ignore[arg-type]
            settings=Settings(),
            requests=RequestLimits(),
        )
        server.start()
        made.append(Setup(url, group, here, server))
        return made[-1]

    yield start
    for each in made:
        each.server.stop()


@pytest.fixture
def setup(make: Callable[[str], Setup]) -> Setup:
    """The process of the slot that has the partition, and a row."""
    one = make("test/0")
    one.here.worker = worker({b"there": b'{"n":1}'})
    return one


def owned_by(slot: str, url: str | None, *, asked: Setup) -> Owners:
    """What `asked` knows when one slot has everything."""
    return Owners(asked.url, PARTITIONS, dict.fromkeys(range(PARTITIONS), Owner(slot, url)))


def test_nothing_is_reported_without_the_token(setup: Setup) -> None:
    status, _, headers = setup.get("/counts/there", Authorization="Bearer wrong")
    assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="playhead lookups"')
    assert setup.get("/partitions", Authorization="", Accept="text/html")[0] == 401


def test_what_the_group_confirms_is_reported_and_nothing_else(setup: Setup) -> None:
    status, body, _ = setup.get("/counts/there")
    assert (status, body["found"], body["slot"]) == (200, {"n": 1}, "test/0")
    assert setup.get("/counts/absent")[0] == 404
    setup.group.member_id = "another who took the slot's id"
    for path in ("/counts/there", "/counts/absent"):
        status, _, headers = setup.get(path)
        assert (status, headers["Retry-After"]) == (503, "1")


@pytest.mark.thorough
def test_a_group_that_stays_unsettled_is_waited_for_and_then_reported_as_such(setup: Setup) -> None:
    setup.group.is_settled, setup.group.member_id = False, "nobody"
    assert setup.get("/counts/there")[0] == 503


def test_a_full_queue_is_reported_as_such(setup: Setup) -> None:
    setup.here.worker.queries.questions = Questions(questions_max=1)
    setup.here.worker.queries.questions.ask(lambda: None)
    status, body, headers = setup.get("/counts/there")
    assert (status, headers["Retry-After"]) == (503, "1")
    assert "too many questions wait" in body


def test_a_request_that_was_passed_on_is_not_passed_on_again(setup: Setup) -> None:
    setup.here.worker = None
    setup.group.owners = owned_by("test/1", "http://127.0.0.1:1", asked=setup)
    status, body, _ = setup.get("/counts/there", **{PROXIED: "test/2", "Authorization": f"Bearer {SLOTS_TOKEN}"})
    assert (status, "does not have the partition" in body) == (503, True)


def test_an_owner_that_does_not_answer_and_an_owner_nobody_knows_are_waited_for(setup: Setup) -> None:
    setup.here.worker = None
    nobody = Owners(setup.url, PARTITIONS, {})
    dead = owned_by("test/1", f"http://127.0.0.1:{free_port()}", asked=setup)
    for owners in (dead, nobody, owned_by("test/0", setup.url, asked=setup)):
        setup.group.owners = owners
        status, _, headers = setup.get("/counts/absent")
        assert (status, headers["Retry-After"]) == (503, "1")


def test_a_path_that_names_no_key_is_the_askers_mistake(setup: Setup) -> None:
    status, body, _ = setup.get("/counts/wrong")
    assert (status, "not a key" in body) == (400, True)


def test_what_another_slot_has_is_asked_of_it_once(setup: Setup, make: Callable[[str], Setup]) -> None:
    asked = make("test/1")
    asked.group.owners = owned_by("test/0", setup.url, asked=asked)
    status, body, _ = asked.get("/counts/there")
    assert (status, body["slot"], body["stale"], body["found"]) == (200, "test/0", False, {"n": 1})
    assert asked.get("/counts/absent")[0] == 404, "the owner says so"
    # Both believe that the other has it: neither may ask back.
    setup.here.worker = None
    setup.group.owners = owned_by("test/1", asked.url, asked=setup)
    status, body, headers = asked.get("/counts/there")
    assert (status, headers["Retry-After"]) == (503, "1")


def test_each_meaning_of_a_path_is_asked_for_where_it_belongs(setup: Setup, make: Callable[[str], Setup]) -> None:
    asked = make("test/1")
    asked.here.worker = worker({b"second": b'{"n":2}'})
    second = partition_of(b"second", PARTITIONS)
    assert second not in {partition_of(b"there", PARTITIONS), partition_of(b"absent", PARTITIONS)}
    asked.here.worker.queries.has = frozenset({second}).__contains__
    owners = owned_by("test/0", setup.url, asked=asked).by_partition
    asked.group.owners = Owners(asked.url, PARTITIONS, {**owners, second: Owner("test/1", asked.url)})
    assert asked.get("/counts/absent+second")[1]["found"] == {"n": 2}
    assert asked.get("/counts/second+there")[1]["found"] == {"n": 2}
    assert asked.get("/counts/absent+there")[1]["found"] == {"n": 1}
    assert asked.get("/counts/absent+absent")[0] == 404
    setup.here.worker = None
    assert asked.get("/counts/absent+second")[1]["found"] == {"n": 2}, (
        "what is found counts, also if others do not answer"
    )
    asked.here.worker = worker({})
    asked.here.worker.queries.has = frozenset({second}).__contains__
    assert asked.get("/counts/second+absent")[0] == 503, "nobody knows whether the second is there"


def test_a_copy_answers_only_who_takes_it_and_says_what_it_is(make: Callable[[str], Setup]) -> None:
    one = make("test/0")
    one.group.owners = owned_by("test/1", None, asked=one)
    one.here.standby = standby({b"there": b'{"n":1}'})
    assert one.get("/counts/there")[0] == 503
    status, body, _ = one.get("/counts/there?stale=allow")
    assert status == 200
    assert body == {
        "slot": "test/0",
        "partition": partition_of(b"there", PARTITIONS),
        "stale": True,
        "age_ms": 1_234,
        "lag_records": None,
        "copy_lag_records": 5,
        "found": {"n": 1},
    }
    assert one.get("/counts/absent?stale=allow")[0] == 503, "that a copy lacks it proves nothing"


def test_a_copy_elsewhere_is_asked_when_the_owner_is_silent(setup: Setup, make: Callable[[str], Setup]) -> None:
    asked, spare = make("test/1"), make("test/0")
    asked.group.owners = owned_by("test/0", setup.url, asked=asked)
    asked.here.urls = [f"http://127.0.0.1:{free_port()}", spare.url]
    spare.here.standby = standby({b"there": b'{"n":0}'})
    assert asked.get("/counts/there?stale=allow")[1]["stale"] is False, "the owner goes before a copy"
    setup.here.worker = None
    assert asked.get("/counts/there")[0] == 503
    status, body, _ = asked.get("/counts/there?stale=allow")
    assert (status, body["stale"], body["found"]) == (200, True, {"n": 0})


def test_a_copy_that_cannot_answer_leaves_it_to_the_owner(setup: Setup, make: Callable[[str], Setup]) -> None:
    asked = make("test/0")
    asked.group.owners = owned_by("test/0", setup.url, asked=asked)

    def look(*_: object) -> LookedInCopy:
        raise Unanswered("in the middle of a commit")

    asked.here.standby = SimpleNamespace(questions=Answering(), look=look)
    status, body, _ = asked.get("/counts/there?stale=allow")
    assert (status, body["stale"]) == (200, False)


def test_a_document_is_the_whole_body_and_its_key_may_be_in_the_query(
    setup: Setup, make: Callable[[str], Setup]
) -> None:
    asked = make("test/1")
    asked.group.owners = owned_by("test/0", setup.url, asked=asked)
    for one in (setup, asked):
        status, body, headers = one.get("/documents?key=there")
        assert (status, body) == (200, {"n": 1})
        said = [headers[f"Playhead-{name}"] for name in ("Slot", "Stale", "Lag-Records")]
        assert said == ["test/0", "false", "0"]
        assert one.get("/documents?key=absent")[0] == 404
    assert setup.get("/documents?key=wrong")[0] == 400


@pytest.mark.parametrize("query", ["stale=yes", "stale", "fresh=1", "stale=allow&x"])
def test_a_query_that_nobody_knows_is_refused(setup: Setup, query: str) -> None:
    assert setup.get(f"/counts/there?{query}")[0] == 400


def test_every_partition_reports_its_freshest_copy(setup: Setup) -> None:
    setup.here.worker.queries.status = lambda: SlotStatus("test/0", [PartitionStatus(0, "test/0", "working")])
    seen = setup.get("/partitions")[1]["partitions"]
    assert [row["standby_lag_records"] for row in seen] == [7] * PARTITIONS


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, b"404: Not Found"), (404, b"{}"), (401, b"401: Unauthorized"), (500, b"500: Internal Server Error")],
)
def test_what_is_no_answer_of_the_owner_is_not_passed_on(
    make: Callable[[str], Setup], status: int, body: bytes
) -> None:
    asked = make("test/1")
    with answering(status, body) as url:
        asked.group.owners = owned_by("test/0", url, asked=asked)
        found, why, _ = asked.get("/counts/there")
    assert (found, f"answered {status}" in str(why)) == (503, True)
