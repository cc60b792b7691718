"""`users` on a real broker: every slot answers for every user, what was answered is seen everywhere, addresses are unique."""

import concurrent.futures
import contextlib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from deploy.local.broker import Broker
from shared import codec, topics
from shared.topics import Topic
from tests.integration.applications.tabling import TableSlot, UserReply
from tests.integration.collector.collecting import reading
from tests.integration.parts.brokers import topics_of
from tests.integration.parts.feed import uncommitted
from tests.integration.parts.lookup_slots import owners
from tests.integration.parts.slots import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return topics_of("users")


@contextlib.contextmanager
def pairing(broker: Broker, folder: Path, **environ: str) -> Iterator[tuple[TableSlot, TableSlot]]:
    """Two slots that share the partitions."""
    slots = TableSlot(broker, folder, 0, **environ), TableSlot(broker, folder, 1, **environ)
    try:
        for one in slots:
            one.slot.start()
        wait_until(lambda: all(one.slot.is_ready() for one in slots), "both slots are ready", 120)
        wait_until(lambda: all(len(owners(one)) == 2 for one in slots), "both have partitions", 120)
        yield slots
    finally:
        for one in slots:
            one.slot.end()


@pytest.fixture
def pair(own_broker: Broker, tmp_path: Path) -> Iterator[tuple[TableSlot, TableSlot]]:
    """Two slots with defaults."""
    with pairing(own_broker, tmp_path) as slots:
        yield slots


def made(slot: TableSlot, number: int, key: str = "") -> str:
    """Makes a user; its path."""
    body = {"email": f"user{number}@example.org", "name": f"User {number}"}
    reply = slot.answered("POST", "/users", body, key or f"make-{number}")
    assert reply.status == 201, reply
    return reply.location


def test_what_one_slot_wrote_the_other_returns(own_broker: Broker, pair: tuple[TableSlot, TableSlot]) -> None:
    first, second = pair
    with reading(own_broker.bootstrap, topics.USERS.name, topics.REJECTED.name) as reader:
        paths = [made(pair[number % 2], number) for number in range(12)]
        for number, path in enumerate(paths):
            writer, other = pair if number % 3 else pair[::-1]
            assert other.call("GET", path).etag == '"1"'
            changed = writer.call("PATCH", path, {"name": "changed"}, If_Match='"1"')
            assert (changed.status, changed.etag) == (200, '"2"')
            assert other.call("GET", path).body == changed.body
            assert other.call("PUT", path, {"email": "x@example.org", "name": "x"}, If_Match='"1"').status == 412
        assert [user["name"] for user in first.listed(5)] == ["changed"] * 12
        assert first.listed(5) == second.listed(100)
        assert second.call("GET", "/users?email=USER3@example.org").body["users"][0]["name"] == "changed"
        for path in paths[:6]:
            assert first.call("DELETE", path).status == 204
            assert second.call("GET", path).status == 404
        assert made(second, 0, "once-more") != paths[0], "the address is free again"
        assert len(second.listed()) == 7

        def newest() -> dict[bytes, bytes | None]:
            return {record.key or b"": record.value for record in reader.records if record.topic == topics.USERS.name}

        reader.until(lambda _: sum(value != b"" for value in newest().values()) == 7 and len(newest()) == 13)
        users = {codec.USER.decode(value).id: value for value in newest().values() if value}
        assert {user["id"] for user in second.listed()} == set(users), "the topic has the same table"
        assert not [record for record in reader.records if record.topic == topics.REJECTED.name]
    assert first.slot.terminate() == 0, first.slot.log_tail()
    assert second.slot.terminate() == 0, second.slot.log_tail()


def test_what_is_refused_is_answered_with_a_problem(pair: tuple[TableSlot, TableSlot]) -> None:
    first, second = pair
    document = first.call("GET", "/openapi.json")
    OpenAPIV31SpecValidator(document.body).validate()
    path = made(first, 0)
    cases = {
        "401": first.call("GET", path, Authorization="Bearer another token"),
        "404": second.call("GET", "/nothing/here"),
        "405": second.call("DELETE", "/users"),
        "409": second.call("POST", "/users", {"email": "User0@example.org", "name": "x"}),
        "413": first.call("POST", "/users", {"name": "x" * 70_000}),
        "422": first.call("POST", "/users", {"email": "no address"}),
    }
    for status, reply in cases.items():
        assert (str(reply.status), str(reply.body["status"])) == (status, status)
        assert reply.headers["Content-Type"] == "application/problem+json"
    assert [fault["pointer"] for fault in cases["409"].body["errors"]] == ["#/email"]
    assert sorted(fault["pointer"] for fault in cases["422"].body["errors"]) == ["#/email", "#/name"]
    assert cases["405"].headers["Allow"]
    metrics = first.metrics()
    requests = 'playhead_processor_requests_total{method="POST",path="/users",status='
    assert (metrics[requests + '"201"}'], metrics[requests + '"413"}'], metrics[requests + '"422"}']) == (1, 1, 1)


def test_of_many_who_want_an_address_at_both_slots_one_has_it(pair: tuple[TableSlot, TableSlot]) -> None:
    emails = [f"wanted{number}@example.org" for number in range(6)]

    def want(wish: tuple[str, int]) -> UserReply:
        email, number = wish
        return pair[number % 2].answered("POST", "/users", {"email": email, "name": "x"}, f"{email}-{number}")

    def want_with_one_key(wish: tuple[str, int]) -> UserReply:
        email, number = wish
        return pair[number % 2].answered("POST", "/users", {"email": email, "name": "y"}, email)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for email in emails:
            wishes = [(email, number) for number in range(8)]
            assert Counter(reply.status for reply in pool.map(want, wishes)) == {201: 1, 409: 7}
            assert {reply.status for reply in pool.map(want_with_one_key, wishes)} == {409}, "one key, one outcome"
    for slot in pair:
        assert sorted(user["email"] for user in slot.listed()) == sorted(emails)


class Clients(threading.Thread):
    """Reads over and over, and writes now and then, at one slot; keeps the answers."""

    def __init__(self, slot: TableSlot, paths: list[str]) -> None:
        super().__init__(name="clients", daemon=True)
        self._slot = slot
        self._paths = paths
        self._stopping = threading.Event()
        self.reads: Counter[int] = Counter()
        self.writes: Counter[int] = Counter()

    def run(self) -> None:
        while not self._stopping.is_set():
            for path in self._paths:
                self.reads[self._slot.call("GET", path).status] += 1
            self.writes[self._slot.call("PATCH", self._paths[0], {"name": "again"}).status] += 1

    def stop(self) -> tuple[Counter[int], Counter[int]]:
        self._stopping.set()
        self.join(120)
        assert not self.is_alive()
        return self.reads, self.writes


def test_a_hand_over_is_waited_for_and_never_answered_with_404(
    own_broker: Broker, pair: tuple[TableSlot, TableSlot]
) -> None:
    stays, goes = pair
    paths = [made(stays, number) for number in range(12)]
    clients = Clients(stays, paths)
    clients.start()
    assert goes.slot.terminate() == 0, goes.slot.log_tail()
    wait_until(lambda: owners(stays) == {"test/0"}, "the slot that stays has all")
    goes.slot.start()
    wait_until(lambda: len(owners(stays)) == 2, "the other has its share again")
    goes.slot.kill()
    wait_until(lambda: owners(stays) == {"test/0"}, "its partitions were taken when it was dead for long enough")
    reads, writes = clients.stop()
    assert set(reads) <= {200, 503}, reads
    assert set(writes) <= {200, 503}, writes
    assert reads[200] > 0


def test_a_request_that_waits_in_vain_for_an_owner_gets_a_retry_after(own_broker: Broker, tmp_path: Path) -> None:
    """The other slot is stopped for a time, and the group does not know it yet."""
    with pairing(own_broker, tmp_path, PROCESSOR_REQUEST_MS_MAX="1000", PROCESSOR_SESSION_MS="20000") as (
        server,
        stopped,
    ):
        paths = [made(server, number) for number in range(16)]
        stopped.slot.pause()
        try:
            replies = [server.call("GET", path) for path in paths]
        finally:
            stopped.slot.wake()
        assert {one.status for one in replies} <= {200, 503}
        problems = [one.body for one in replies if one.status == 503]
        assert problems, "some were the other's"
        assert {one["type"] for one in problems} == {"urn:playhead:problem:unanswered"}
        wait_until(lambda: all(server.call("GET", path).status == 200 for path in paths), "it answers again", 120)


def taken(slot: TableSlot) -> list[int]:
    """Of each partition that the slot took, in this order, the changelog rows that it read."""
    return [int(str(event["replayed_rows"])) for event in slot.slot.events("partition_taken_over")]


def test_a_restart_reads_only_what_the_disk_lacks_and_retained_partitions_read_nothing(
    own_broker: Broker, tmp_path: Path
) -> None:
    # No session ends, however slow the machine, and no outcome: nothing is committed but what is written here.
    environ = {"PROCESSOR_SESSION_MS": "20000", "USERS_OUTCOME_MS": "3600000"}
    with pairing(own_broker, tmp_path, **environ) as (stays, restarts):
        for number in range(24):
            made((stays, restarts)[number % 2], number)
        # A claim is confirmed after its user has its answer.
        wait_until(
            lambda: not uncommitted(own_broker.bootstrap, "users", topics.USER_COMMANDS), "every command is committed"
        )
        retained = taken(stays)

        def own_rows() -> list[dict[str, Any]]:
            return [row for row in stays.worked_partitions() if row["owner"] == "test/1"]

        def rows() -> int:
            return sum(sum(row["rows"].values()) for row in own_rows())

        # Not those that it took at first and gave to the other.
        own = {row["partition"] for row in own_rows()}

        def restarted() -> int:
            before = len(taken(restarts))
            restarts.slot.kill()
            restarts.slot.start()
            # The group may give them back one after another.
            wait_until(lambda: len(taken(restarts)) >= before + len(own), "it has taken its partitions", 120)
            wait_until(restarts.slot.is_ready, "it works them", 120)
            wait_until(lambda: len(owners(stays)) == 2, "the other knows it", 120)
            return sum(taken(restarts)[before:])

        assert restarted() <= 5 * rows(), "never more than was ever written there"
        assert restarted() == 0, "the disk has all that the first restart read"
        assert rows() > 0
        assert {row["partition"] for row in own_rows()} == own, "it came back to its own partitions"
        assert taken(stays) == retained, "what was retained was not read again"
        assert len(stays.listed()) == len(restarts.listed()) == 24
        reply = restarts.call("GET", "/users?email=user7@example.org")
        assert [user["name"] for user in reply.body["users"]] == ["User 7"]
