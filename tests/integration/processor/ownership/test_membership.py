"""Membership on a real broker: who has which partition when slots die, leave and come back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos import logs, rolling
from tests.chaos.feed import PARTITIONS, PROFILE
from tests.integration.parts.brokers import OF_VIEWS, broker_with_topics
from tests.integration.parts.slots import Slot, wait_until

pytestmark = pytest.mark.integration

#: So long that nothing here can be owed to its end.
SESSION_SECONDS = 20
HAND_OVER_SECONDS_MAX = SESSION_SECONDS * 0.6


@pytest.fixture
def session_seconds() -> int:
    """The session of the slots."""
    return SESSION_SECONDS


@pytest.fixture
def slots(tmp_path: Path, session_seconds: int) -> Iterator[list[Slot]]:
    """Three slots on a broker of their own, each with its share."""
    with broker_with_topics(tmp_path / "broker", OF_VIEWS, profile=PROFILE) as broker:
        started = [
            Slot(
                broker.bootstrap,
                tmp_path,
                number,
                PLAYHEAD_TOPICS_PROFILE=PROFILE,
                PROCESSOR_SESSION_MS=str(session_seconds * 1000),
            )
            for number in range(3)
        ]
        try:
            for slot in started:
                slot.start()
            wait_until(lambda: is_shared(started), "every slot works its share")
            yield started
        finally:
            for slot in started:
                slot.end()


def held(slot: Slot) -> frozenset[int]:
    return logs.held(slot.log_file)


def is_shared(slots: list[Slot]) -> bool:
    """Whether all partitions are worked, by slots with about as many each."""
    sizes = [len(held(slot)) for slot in slots]
    is_all = frozenset().union(*(held(slot) for slot in slots)) == frozenset(range(PARTITIONS))
    return all(slot.is_ready() for slot in slots) and is_all and max(sizes) - min(sizes) <= 1


def moves(slot: Slot) -> list[tuple[str, list[int]]]:
    """Every partition that the slot was given or gave up, since its log began."""
    found = logs.events(slot.log_file, "assigned", "revoked", "lost")
    return [(event["event"], event["partitions"]) for event in found if event["partitions"]]


def test_a_slot_killed_and_restarted_has_its_partitions_back_and_nobody_elses_move(slots: list[Slot]) -> None:
    killed, *others = slots
    before = held(killed)
    moves_before = [moves(slot) for slot in others]
    taken_before = len(logs.events(killed.log_file, "partition_taken_over"))
    starts_before = len(logs.events(killed.log_file, "started"))
    killed.kill()
    killed.start()

    def is_back() -> bool:
        taken = logs.events(killed.log_file, "partition_taken_over")[taken_before:]
        return {event["partition"] for event in taken} == before and killed.is_ready()

    wait_until(lambda: len(logs.events(killed.log_file, "started")) > starts_before, "the slot is started again")
    wait_until(is_back, "the restarted slot works what it had", HAND_OVER_SECONDS_MAX)
    assert held(killed) == before
    assert [moves(slot) for slot in others] == moves_before
    started = logs.events(killed.log_file, "started")[-1]
    assigned = logs.events(killed.log_file, "assigned")[-1]
    taken = logs.events(killed.log_file, "partition_taken_over")[-1]
    print(
        f"started to assigned {logs.at_seconds(assigned) - logs.at_seconds(started):.2f} s,"
        f" to all taken {logs.at_seconds(taken) - logs.at_seconds(started):.2f} s"
    )


def test_a_slot_that_leaves_hands_over_long_before_its_session_ends(slots: list[Slot]) -> None:
    leaver, *others = slots
    kept = [held(slot) for slot in others]
    moves_before = [len(moves(slot)) for slot in others]
    departing = held(leaver)
    assert leaver.terminate() == 0, leaver.log_tail()
    wait_until(lambda: is_shared(others), "the others work what it had", HAND_OVER_SECONDS_MAX)
    assert all(before < held(slot) for before, slot in zip(kept, others, strict=True))
    for before, slot in zip(moves_before, others, strict=True):
        assert {event for event, _ in moves(slot)[before:]} == {"assigned"}
    left = logs.at_seconds(logs.events(leaver.log_file, "revoked")[-1])

    def taken_at() -> list[float]:
        return [
            logs.at_seconds(event)
            for slot in others
            for event in logs.events(slot.log_file, "partition_taken_over")
            if event["partition"] in departing and logs.at_seconds(event) >= left
        ]

    # A slot logs what it is assigned a moment before it says that it is taking it.
    wait_until(lambda: len(taken_at()) >= len(departing), "each partition is taken", HAND_OVER_SECONDS_MAX)
    taken = taken_at()
    assert len(taken) == len(departing)
    print(f"given up to all taken elsewhere {max(taken) - left:.2f} s of a session of {SESSION_SECONDS} s")


# The former process ends when it has seen for a session that another has its slot.
@pytest.mark.parametrize("session_seconds", [8])
def test_a_slot_is_replaced_by_a_new_process_and_nobody_elses_partitions_move(
    slots: list[Slot], tmp_path: Path, session_seconds: int
) -> None:
    former, *others = slots
    before = held(former)
    moves_before = [moves(slot) for slot in others]
    bootstrap, state_dir = former.bootstrap, str(former.state_dir)
    session_ms = str(session_seconds * 1000)
    successor = Slot(
        bootstrap,
        tmp_path,
        100,
        PROCESSOR_SLOT="test/0",
        PROCESSOR_STATE_DIR=state_dir,
        PLAYHEAD_TOPICS_PROFILE=PROFILE,
        PROCESSOR_SESSION_MS=session_ms,
    )
    try:
        successor.start()
        assert former.ended() == rolling.REPLACED, former.log_tail()
        assert '"event": "replaced"' in former.last_line()
        wait_until(lambda: is_shared([successor, *others]), "the new process works what the former had")
        assert held(successor) == before
        assert [moves(slot) for slot in others] == moves_before
        assert not [event for event in successor.events("store_discarded") if event], "its disk was good"
    finally:
        successor.end()


def test_a_rolling_restart_with_standbys_moves_only_the_departing_slots_partitions(tmp_path: Path) -> None:
    # Who moves is asked, not when. A slot without CPU for a while is not suspected by its standby, nor dead to the group, and has
    # time for its last commits.
    limits = ("PROCESSOR_SESSION_MS", "PROCESSOR_SUSPECT_MS", "PROCESSOR_REVOKE_MS_MAX")
    rolled = rolling.roll(tmp_path, way="standby", **dict.fromkeys(limits, str(SESSION_SECONDS * 1000)))
    print(rolling.table(rolled, "standby"))
    assert [sorted(step.moved) for step in rolled.steps] == [[], [], []]
    assert all(step.departing for step in rolled.steps)
    assert all(not given_up for step in rolled.steps for given_up in step.given_up.values())


def test_partitions_that_a_kill_between_two_rounds_of_a_rebalance_left_to_nobody_are_taken(tmp_path: Path) -> None:
    """A slot is killed when it is to give partitions up, and comes back with the others before its session ends."""
    with broker_with_topics(tmp_path / "broker", OF_VIEWS, profile=PROFILE) as broker:
        first, second = (
            Slot(
                broker.bootstrap,
                tmp_path,
                number,
                PLAYHEAD_TOPICS_PROFILE=PROFILE,
                PROCESSOR_SESSION_MS=str(SESSION_SECONDS * 1000),
            )
            for number in range(2)
        )
        try:
            first.arm(PROCESSOR_CRASH_AT="revoking")
            first.start()
            wait_until(lambda: is_shared([first]), "it has all")
            second.start()
            assert first.ended() == -9
            first.arm(PROCESSOR_CRASH_AT="")
            first.start()
            wait_until(lambda: is_shared([first, second]), "each has its share")
        finally:
            for slot in (first, second):
                slot.end()
