"""Lookups on a real broker: any slot answers for any view, never wrongly, through failures of the owner."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.local.broker import Broker
from shared.topics import Topic
from tests.integration.parts.brokers import OF_VIEWS
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.lookup_slots import VIEW_IDS, LookupSlot, owners, partition, send
from tests.integration.parts.slots import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_VIEWS


class Polling(threading.Thread):
    """Asks for every view over and over; counts the answers: (status, beacons)."""

    def __init__(self, server: LookupSlot, **headers: str) -> None:
        super().__init__(name="polling", daemon=True)
        self._server = server
        self._headers = headers
        self._stopping = threading.Event()
        self.answers: Counter[tuple[int, int]] = Counter()

    def run(self) -> None:
        while not self._stopping.is_set():
            for view_id in VIEW_IDS:
                status, body = self._server.view(view_id, **self._headers)
                self.answers[status, body["found"]["row"]["beacon_count"] if status == 200 else 0] += 1

    def stop(self) -> Counter[tuple[int, int]]:
        self._stopping.set()
        self.join(60)
        assert not self.is_alive()
        return self.answers


@pytest.fixture
def pair(own_broker: Broker, tmp_path: Path) -> Iterator[tuple[LookupSlot, LookupSlot]]:
    """Two slots that share the partitions and have every view with three beacons."""
    slots = LookupSlot(own_broker, tmp_path, 0), LookupSlot(own_broker, tmp_path, 1)
    try:
        for one in slots:
            one.slot.start()
        wait_until(lambda: all(one.slot.is_ready() for one in slots), "both slots are ready")
        send(own_broker, range(1, 4))
        wait_until(lambda: all(len(owners(one)) == 2 for one in slots), "both have partitions")
        wait_until(lambda: all(one.knows(3) for one in slots), "both answer for every view")
        yield slots
    finally:
        for one in slots:
            one.slot.end()


def overview(server: LookupSlot) -> Any:
    """What it says of all slots and partitions, once both slots and the leaders of their inputs have answered it."""
    answers: list[Any] = []

    def is_whole() -> bool:
        status, seen = server.get("/partitions")
        answers.append(seen)
        return (
            status == 200
            and len(seen["slots"]) == 2
            and all(slot["problem"] is None for slot in seen["slots"])
            and all(row["state"] == "working" and row["lag_records"] is not None for row in seen["partitions"])
        )

    wait_until(is_whole, "both slots have answered")
    return answers[-1]


def test_both_slots_answer_for_every_view_and_both_see_every_partition(pair: tuple[LookupSlot, LookupSlot]) -> None:
    overviews = [overview(one) for one in pair]
    slots_of_views = set()
    for view_id in VIEW_IDS:
        answers = [one.answer_to(f"/views/acme/{view_id}") for one in pair]
        (status, first), (_, second) = answers
        assert status == 200
        slots_of_views.add(first["slot"])
        assert (first["slot"], first["partition"], first["found"]) == (
            second["slot"],
            second["partition"],
            second["found"],
        )
        assert first["partition"] == partition(view_id)
        assert (first["found"]["state"], first["found"]["row"]["view_id"]) == ("open", view_id)
        assert first["lag_records"] == 0
        assert first["age_ms"] >= 0
    assert slots_of_views == {"test/0", "test/1"}
    assert [one.answer_to("/views/acme/nobody-played-this")[0] for one in pair] == [404, 404]
    assert [one.view("x" * 65)[0] for one in pair] == [400, 400]
    assert [one.get("/partitions", Authorization="Bearer another token")[0] for one in pair] == [401, 401]
    for seen in overviews:
        assert [row["partition"] for row in seen["partitions"]] == list(range(PARTITIONS))
        assert sum(row["rows"]["views"] for row in seen["partitions"]) == len(VIEW_IDS)
        assert all(row["lag_records"] == 0 and row["standby_lag_records"] is None for row in seen["partitions"])
        assert [(slot["slot"], slot["problem"]) for slot in seen["slots"]] == [("test/0", None), ("test/1", None)]
        assert all(slot["rss_bytes"] > 0 for slot in seen["slots"])


def test_a_hand_over_is_answered_with_503_and_never_with_404(
    own_broker: Broker, pair: tuple[LookupSlot, LookupSlot]
) -> None:
    stays, goes = pair
    polling = Polling(stays)
    polling.start()
    assert goes.slot.terminate() == 0, goes.slot.log_tail()
    wait_until(lambda: owners(stays) == {"test/0"}, "the slot that stays has all")
    wait_until(lambda: stays.knows(3), "it answers for all")
    goes.slot.start()
    wait_until(lambda: len(owners(stays)) == 2, "the other has its share again")
    goes.slot.kill()
    goes.slot.start()
    wait_until(lambda: len(owners(stays)) == 2 and stays.knows(3), "it came back with what it had")
    answers = polling.stop()
    assert set(answers) <= {(200, 3), (503, 0)}, answers
    assert answers[200, 3] > 0


def test_a_zombie_answers_nothing_old(own_broker: Broker, pair: tuple[LookupSlot, LookupSlot]) -> None:
    successor, zombie = pair
    zombie.slot.pause()
    wait_until(lambda: owners(successor) == {"test/0"}, "the successor has all")
    send(own_broker, range(4, 5))
    wait_until(lambda: successor.knows(4), "the successor has folded what came meanwhile")
    # Their connections wait in the zombie's port while it sleeps: its first turn answers them.
    pollings = [Polling(zombie), Polling(zombie, Playhead_Proxied="a test"), Polling(zombie, Playhead_Proxied="a test")]
    for polling in pollings:
        polling.start()
    zombie.slot.wake()
    wait_until(lambda: zombie.knows(4), "the zombie is one of the group again")
    answers = sum((polling.stop() for polling in pollings), Counter[tuple[int, int]]())
    assert set(answers) <= {(200, 4), (503, 0)}, answers
    assert answers[503, 0] > 0, "it got requests before it could know"


def test_a_slot_that_was_replaced_while_it_slept_a_moment_answers_nothing_old(
    own_broker: Broker, pair: tuple[LookupSlot, LookupSlot], tmp_path: Path
) -> None:
    """No session has timed out and no process has notified it yet: only the group's answer keeps it from answering."""
    _, zombie = pair
    successor = LookupSlot(own_broker, tmp_path, 2, PROCESSOR_SLOT="test/1")
    try:
        zombie.slot.pause()
        successor.slot.start()
        wait_until(successor.slot.is_ready, "another process works the slot")
        send(own_broker, range(4, 5))
        wait_until(lambda: successor.knows(4), "it has folded what came meanwhile")
        pollings = [Polling(zombie, Playhead_Proxied="a test") for _ in range(3)]
        for polling in pollings:
            polling.start()
        zombie.slot.wake()
        wait_until(lambda: not zombie.slot.is_running, "the zombie has learnt that it is replaced")
        answers = sum((polling.stop() for polling in pollings), Counter[tuple[int, int]]())
        assert set(answers) <= {(503, 0), (0, 0)}, answers
        assert answers[503, 0] > 0, "it got requests before it could know"
    finally:
        successor.slot.end()
