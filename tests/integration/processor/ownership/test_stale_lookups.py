"""Lookups while a slot's owner dies and its standby takes over: what a copy says, and where the question is passed on to."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from deploy.local.broker import Broker
from shared.topics import Topic
from tests.integration.parts.brokers import OF_VIEWS
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.lookup_slots import VIEW_IDS, LookupSlot, partition, send
from tests.integration.parts.slots import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

#: Long enough to look on while nobody works the slot; its end moves nothing (a session lasts longer).
WITH_STANDBY = {"PROCESSOR_STANDBYS": "1", "PROCESSOR_SUSPECT_MS": "6000", "PROCESSOR_SESSION_MS": "20000"}


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_VIEWS


@pytest.fixture
def replicas(own_broker: Broker, tmp_path: Path) -> Iterator[tuple[LookupSlot, LookupSlot, LookupSlot]]:
    """The home of slot 0, its standby, and slot 1 without one."""
    home, other = (LookupSlot(own_broker, tmp_path, number, **WITH_STANDBY) for number in (0, 1))
    standby = LookupSlot(
        own_broker, tmp_path, 10, **{**WITH_STANDBY, "PROCESSOR_SLOT": "test/0", "PROCESSOR_REPLICA": "1"}
    )
    try:
        for one in (home, other, standby):
            one.slot.start()
        send(own_broker, range(1, 4))
        wait_until(lambda: all(one.slot.is_ready() for one in (home, other, standby)), "all are ready")
        wait_until(lambda: len(copied(other)) == PARTITIONS // 2, "the standby has copies of half of the partitions")
        wait_until(lambda: all(one.knows(3) for one in (home, other, standby)), "everybody answers for every view")
        yield home, standby, other
    finally:
        for one in (home, other, standby):
            one.slot.end()


def copied(server: LookupSlot) -> set[int]:
    """The partitions of which there is a copy that lacks nothing."""
    return {row["partition"] for row in server.partitions() if row["standby_lag_records"] == 0}


def worked(server: LookupSlot) -> set[int]:
    """The partitions of slot 0."""
    return {row["partition"] for row in server.partitions() if row["owner"] == "test/0"}


def is_stale(server: LookupSlot, view_id: str) -> bool:
    """Whether a copy answers. On a busy machine it is given up after a second, as the owner is."""
    status, body = server.view(view_id, "?stale=allow")
    return status == 200 and bool(body["stale"])


def is_owners(server: LookupSlot, view_id: str) -> bool:
    """Whether slot 0 itself answers where a copy may."""
    status, body = server.view(view_id, "?stale=allow")
    return status == 200 and (body["slot"], body["stale"]) == ("test/0", False)


def is_fresh(standby: LookupSlot, view_id: str) -> bool:
    """Whether the standby's copy has all that the owner, queried through it, has."""
    status, copy = standby.view(view_id, "?stale=allow")
    owner_status, fresh = standby.view(view_id)
    if (status, owner_status) != (200, 200):
        return False
    assert (fresh["stale"], fresh["slot"]) == (False, "test/0")
    if not copy["stale"]:
        # The copy was too busy to answer in its second, so the owner was asked.
        return False
    assert copy["age_ms"] >= 0
    return bool(copy["copy_lag_records"] == fresh["lag_records"] == 0 and copy["found"] == fresh["found"])


def test_a_standby_reports_its_lag_answers_stale_and_is_found_once_it_works_the_slot(
    own_broker: Broker, replicas: tuple[LookupSlot, LookupSlot, LookupSlot]
) -> None:
    home, standby, other = replicas
    partitions: set[int] = set()

    def agree() -> bool:
        """What they see changes from one request to the next: a copy is behind whenever the owner has committed."""
        partitions.clear()
        partitions.update(worked(home))
        return len(partitions) == PARTITIONS // 2 and copied(home) == copied(standby) == copied(other) == partitions

    wait_until(agree, "all three see copies of just those partitions that slot 0 works")
    lag_of = 'playhead_processor_standby_lag_records{{partition="{}"}}'
    wait_until(lambda: all(standby.metrics().get(lag_of.format(one)) == 0 for one in partitions), "its metrics say so")

    mine = [view_id for view_id in VIEW_IDS if partition(view_id) in partitions]
    for view_id in mine:
        # The copy is behind for a moment whenever the owner has committed, if only a bucket of the live picture.
        wait_until(lambda view_id=view_id: is_fresh(standby, view_id), "the copy answers as the owner does")
        wait_until(lambda view_id=view_id: is_owners(other, view_id), "the owner goes before a copy")
    wait_until(lambda: standby.view("nobody-played-this", "?stale=allow")[0] == 404, "the owner says so")

    home.slot.kill()
    for one in (other, standby):
        for view_id in mine[:3]:
            assert one.view(view_id)[0] == 503, "nobody works them yet"
            wait_until(lambda one=one, view_id=view_id: is_stale(one, view_id), "a copy answers")
    send(own_broker, range(4, 5))
    # The group still names the address of the process that died; only the heartbeats knows the one that works.
    wait_until(lambda: other.knows(4) and standby.knows(4), "the standby works the slot and gets the requests")
    for view_id in mine:
        wait_until(lambda view_id=view_id: is_owners(other, view_id), "the standby answers as the owner")
    wait_until(lambda: copied(other) == set(), "there is no copy any more")

    def are_measured() -> bool:
        return any(lag_of.format(one) in standby.metrics() for one in partitions)

    # What a process measures is shown at a turn of its own, not with what it says to others.
    wait_until(lambda: not are_measured(), "its metrics say so")
