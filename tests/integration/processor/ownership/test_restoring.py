"""A restore that takes long: it holds up neither the slot's other partitions nor its membership, and survives a rebalance."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from deploy.local.broker import Broker
from shared import topics
from shared.topics import Topic
from tests.integration.parts.brokers import OF_VIEWS
from tests.integration.parts.lookup_slots import VIEW_IDS, LookupSlot, owners, partition, send
from tests.integration.parts.slots import wait_until

pytestmark = pytest.mark.integration

#: A slot that joins gets the lowest half: the restore goes to it.
LONG = 0
HELD_UP = next(view_id for view_id in VIEW_IDS if partition(view_id) == LONG)
OTHERS = [view_id for view_id in VIEW_IDS if partition(view_id) != LONG]


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_VIEWS


@contextmanager
def changelog_held(broker: Broker) -> Iterator[None]:
    """While it lasts nobody can read the changelog of partition `LONG` to its end: a transaction stands open in it."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "a test", "transaction.timeout.ms": 300_000}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topics.VIDEO_VIEWS_CHANGELOG.name, b"", b"\x01never committed", LONG)
    assert producer.flush(30) == 0
    yield
    producer.abort_transaction(30)


def is_restoring(server: LookupSlot) -> bool:
    """Whether that partition is being restored, and says how far it is, while all others are worked."""
    seen = server.partitions()
    return bool(seen) and all(
        row["state"] == "working" if row["partition"] != LONG else (row["restore_left_records"] or 0) > 0
        for row in seen
    )


def logged(server: LookupSlot) -> list[tuple[object, object]]:
    """Partition and records that are left, as its log says."""
    return [(event["partition"], event["left_records"]) for event in server.slot.events("restoring")]


def test_a_long_restore_holds_up_nobody_and_survives_a_rebalance(own_broker: Broker, tmp_path: Path) -> None:
    # Neither is dropped from the group for want of CPU: nobody loses a partition but by what the restore holds up.
    first, second = (LookupSlot(own_broker, tmp_path, number, PROCESSOR_SESSION_MS="20000") for number in range(2))
    try:
        first.slot.start()
        wait_until(first.slot.is_ready, "the slot works")
        send(own_broker, range(1, 4))
        wait_until(lambda: first.knows(3), "it has every view")
        first.slot.kill()
        with changelog_held(own_broker):
            first.slot.start()
            wait_until(lambda: is_restoring(first), "all but one partition are restored")
            for beacons in (4, 5, 6):
                send(own_broker, range(beacons, beacons + 1))
                wait_until(lambda beacons=beacons: first.knows(beacons, OTHERS), "the others go on")  # type: ignore[misc]
            assert first.view(HELD_UP)[0] == 503
            name = f'playhead_processor_restore_left_records{{partition="{LONG}"}}'
            wait_until(lambda: first.metrics().get(name, 0) > 0, "its metrics say how far it is")
            wait_until(lambda: (LONG, first.metrics()[name]) in logged(first), "its log says so, too")
            assert all("rows" in event for event in first.slot.events("restoring"))
            second.slot.start()
            wait_until(lambda: len({row["owner"] for row in first.partitions()}) == 2, "a second slot has its share")
            wait_until(lambda: is_restoring(second), "what was restored is worked by one or the other")
            send(own_broker, range(7, 8))
            wait_until(lambda: second.knows(7, OTHERS), "the others go on")
            wait_until(lambda: is_restoring(first), "that partition alone is being restored still")
            assert [row["owner"] for row in first.partitions() if row["partition"] == LONG] == ["test/1"], (
                "it has moved"
            )
            assert not [event for one in (first, second) for event in one.slot.events("lost")]
        wait_until(lambda: len(owners(first)) == 2, "the last partition is restored")
        wait_until(lambda: first.knows(7), "nothing is missing")
    finally:
        for one in (first, second):
            one.slot.end()
