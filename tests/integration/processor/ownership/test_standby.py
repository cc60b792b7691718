"""Warm standbys: a host dies, and its slots go on elsewhere from copies that were kept."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from deploy.local.broker import Broker
from shared.topics import Topic
from tests.integration.parts.brokers import OF_VIEWS
from tests.integration.parts.feed import FINISH, Feed, Rows, expect
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import Slot, wait_until

pytestmark = pytest.mark.integration

#: A replica that gets no CPU for seconds is not dead, and a standby takes over long before the group drops the dead one.
STANDBY = {
    "PROCESSOR_STANDBYS": "1",
    "PROCESSOR_HAND_BACK_MS": "1500",
    "PROCESSOR_SUSPECT_MS": "5000",
    "PROCESSOR_SESSION_MS": "20000",
}


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_VIEWS


class Host:
    """A host: its own slot, and a standby for the other host's."""

    def __init__(self, broker: Broker, folder: Path, number: int) -> None:
        other = 1 - number
        self.home = Slot(broker.bootstrap, folder, number, **FINISH, **STANDBY)
        self.standby = Slot(
            broker.bootstrap,
            folder,
            10 + other,
            **{**FINISH, **STANDBY, "PROCESSOR_SLOT": f"test/{other}", "PROCESSOR_REPLICA": "1"},
        )
        self.replicas = (self.home, self.standby)

    def start(self) -> None:
        for replica in self.replicas:
            replica.start()

    def kill(self) -> None:
        for replica in self.replicas:
            replica.kill()

    def is_ready(self) -> bool:
        return all(replica.is_ready() for replica in self.replicas)

    def end(self) -> None:
        for replica in self.replicas:
            replica.end()


@pytest.fixture
def hosts(own_broker: Broker, tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    pair = Host(own_broker, tmp_path, 0), Host(own_broker, tmp_path, 1)
    try:
        for host in pair:
            host.start()
        wait_until(lambda: all(host.is_ready() for host in pair), "both hosts are ready")
        yield pair
    finally:
        for host in pair:
            host.end()


def count(slot: Slot, event: str) -> int:
    return len(slot.events(event))


def copies(slot: Slot) -> set[int]:
    events = slot.events("standing_by")
    return set(events[-1]["partitions"]) if events else set()  # type: ignore[arg-type, call-overload]


def is_calm(first: Host, second: Host) -> None:
    """Waits until each slot has its half of the partitions, and its standby copies of just these."""
    for slot, standby in ((first.home, second.standby), (second.home, first.standby)):
        wait_until(lambda slot=slot: slot.working() == PARTITIONS // 2, f"slot {slot.number} works its half")  # type: ignore[misc]
        wait_until(lambda standby=standby: len(copies(standby)) == PARTITIONS // 2, f"{standby.number} has copies")  # type: ignore[misc]


def test_a_dead_hosts_slots_go_on_from_warm_copies_and_come_home_again(
    own_broker: Broker, hosts: tuple[Host, Host]
) -> None:
    first, second = hosts
    feed = Feed(own_broker.bootstrap, views=300, seconds=26, seed=9)
    rows = Rows(own_broker.bootstrap)
    try:
        is_calm(first, second)
        feed.start()
        feed.join(5)
        assigned = count(second.home, "assigned")
        # A standby that was there before its home has worked the slot once already.
        taken, handed_over = count(second.standby, "partition_taken_over"), count(second.standby, "handing_over")
        first.kill()
        wait_until(lambda: second.standby.working() == PARTITIONS // 2, "the standby works the dead slot's partitions")
        assert count(second.home, "assigned") == assigned, "no other slot's partitions moved"
        # Warm: what was replayed is a tail, not the state.
        replayed = [int(str(event["replayed_rows"])) for event in second.standby.events("partition_taken_over")[taken:]]
        assert max(replayed) < 60
        first.start()
        wait_until(lambda: count(second.standby, "handing_over") > handed_over, "the slot is handed back to its home")
        wait_until(lambda: first.home.working() == PARTITIONS // 2, "home works it again")
        feed.finish()
        expect(feed.truth, feed.repeats, rows, seconds=90)
    finally:
        rows.close()


def test_a_slot_that_gets_a_stop_signal_hands_over_to_its_standby_without_a_rebalance(
    own_broker: Broker, hosts: tuple[Host, Host]
) -> None:
    first, second = hosts
    is_calm(first, second)
    wait_until(
        lambda: [event["successor"] for event in first.home.events("successor")][-1:] == [1],
        "the slot knows its successor",
    )
    assigned, handed_over = count(second.home, "assigned"), count(first.home, "handing_over")
    assert first.home.terminate() == 0, first.home.log_tail()
    wait_until(lambda: second.standby.working() == PARTITIONS // 2, "the standby works the slot")
    assert count(first.home, "handing_over") == handed_over + 1
    assert count(second.home, "assigned") == assigned
