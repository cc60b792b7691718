"""`python -m tests.chaos.users`: clients of `users` at slots that die, sleep and restart; every history must be linearizable.

Exits 1 and keeps its folder when one is not, or the table ends in another state than it should.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from deploy.local.broker import Broker
from shared import topics
from tests.chaos.command import carry_out
from tests.chaos.feed import PARTITIONS, PROFILE
from tests.chaos.users_clients import Client, Shared
from tests.chaos.users_history import History
from tests.integration.applications.tabling import TableSlot
from tests.integration.parts.brokers import broker_with_topics, topics_of
from tests.integration.parts.slots import wait_until

SETTLE_SECONDS_MAX = 300.0
FAULTS = ("killed", "killed, back after its session", "stopped for a moment", "stopped past its session", "restarted")
SESSION_SECONDS = 3.0

#: A run of this length is a result that docs/results.md shows.
RESULT_MINUTES: Final = 10


@dataclass(frozen=True)
class Options:
    """One run."""

    seconds: float
    seed: int = 1
    slots: int = 2
    clients: int = 6
    #: From one fault to the next, at the least.
    fault_seconds: float = 4.0


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    faults: Counter[str]
    operations: int
    unknown: int
    #: What is not as it should be.
    wrong: list[str]

    def table(self) -> str:
        """The result in words."""
        lines = [f"operations {self.operations:,}, of these {self.unknown} whose outcome nobody knows"]
        lines += [f"{number:4} slots {fault}" for fault, number in sorted(self.faults.items())]
        lines += [f"WRONG: {fault}" for fault in self.wrong] or ["every history is linearizable; the table is whole"]
        return "\n".join(lines)


def run(options: Options, folder: Path) -> Result:
    """Runs, waits until all is settled, and judges."""
    with broker_with_topics(folder / "broker", topics_of("users"), profile=PROFILE) as broker:
        slots = [
            TableSlot(
                broker,
                folder,
                number,
                3_000,
                PLAYHEAD_TOPICS_PROFILE=PROFILE,
                PROCESSOR_SESSION_MS=str(int(SESSION_SECONDS * 1_000)),
            )
            for number in range(options.slots)
        ]
        history, shared = History(), Shared()
        try:
            for one in slots:
                one.slot.start()
            wait_until(lambda: all(one.slot.is_ready() for one in slots), "the slots are ready", 120)
            clients = [Client(number, options.seed, slots, history, shared) for number in range(options.clients)]
            for client in clients:
                client.start()
            faults = _torment(slots, options)
            for client in clients:
                client.ask_to_stop()
            for client in clients:
                client.stop()
            wrong = _settled(slots) + _late_or_rejected(broker)
        finally:
            for one in slots:
                one.slot.end()
    return Result(faults, history.operations, history.unknown, wrong + history.faults())


def _torment(slots: Sequence[TableSlot], options: Options) -> Counter[str]:
    """Faults are injected into one slot at a time until the time is over; then every slot runs."""
    random_ = random.Random(options.seed)
    faults: Counter[str] = Counter()
    ends_at = time.monotonic() + options.seconds
    while time.monotonic() < ends_at:
        time.sleep(options.fault_seconds * random_.uniform(0.5, 1.0))
        fault = FAULTS[sum(faults.values())] if sum(faults.values()) < len(FAULTS) else random_.choice(FAULTS)
        faults[fault] += 1
        _inject(random_.choice(slots), fault)
        wait_until(lambda: all(one.slot.is_ready() for one in slots), f"the slots are ready after: {fault}", 180)
    return faults


def _inject(one: TableSlot, fault: str) -> None:
    if fault.startswith("stopped"):
        one.slot.pause()
        time.sleep(1.0 if fault == "stopped for a moment" else 2 * SESSION_SECONDS)
        one.slot.wake()
        return
    if fault == "restarted":
        one.slot.terminate()
    else:
        one.slot.kill()
        if fault != "killed":
            time.sleep(2 * SESSION_SECONDS)
    one.slot.start()


def _settled(slots: Sequence[TableSlot]) -> list[str]:
    """Waits until no change waits for an address; what is not whole then."""

    def rows(store: str) -> int:
        overviews: list[list[dict[str, Any]]] = []

        def is_whole() -> bool:
            overviews.append(slots[0].partitions())
            return bool(overviews[-1]) and all(row["state"] == "working" for row in overviews[-1])

        wait_until(is_whole, "every partition says its rows", SETTLE_SECONDS_MAX)
        return sum(row["rows"].get(store, 0) for row in overviews[-1])

    wait_until(lambda: rows("changes") == 0, "no change is under way", SETTLE_SECONDS_MAX)
    listed = [one.listed() for one in slots]
    wrong = ["the slots list different tables"] if any(table != listed[0] for table in listed) else []
    emails = [user["email"] for user in listed[0]]
    if len(set(emails)) != len(emails):
        wrong.append("two users have one address")
    if (claimed := rows("email_claims")) != len(emails):
        wrong.append(f"{claimed} addresses are claimed, {len(emails)} are had")
    return wrong + [
        f"its address does not lead to user {user['id']}"
        for user in listed[0]
        if slots[-1].call("GET", f"/users?email={user['email']}").body["users"] != [user]
    ]


def _late_or_rejected(broker: Broker) -> list[str]:
    """Whether anything was: the topic's partitions end where they began, as nothing else writes to them."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topics.REJECTED.name, at), timeout=60)
            for at in range(PARTITIONS)
        ]
    finally:
        consumer.close()
    return [f"records in topic {topics.REJECTED.name}: {ends}"] if any(high for _, high in ends) else []


def main() -> int:
    """Runs, prints, and says where the logs are when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.users", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slots", type=int, default=3, choices=range(2, 6))
    parser.add_argument("--clients", type=int, default=8, metavar="1..64", choices=range(1, 65))
    given = parser.parse_args()
    return carry_out(
        lambda folder: run(Options(given.minutes * 60, given.seed, given.slots, given.clients), folder),
        name="chaos-users",
        title="Users: linearizable through kills",
        command=f"python -m tests.chaos.users --minutes {given.minutes:g}",
        checked="every history is linearizable, and the table is the same on every slot",
        is_kept=given.minutes >= RESULT_MINUTES,
    )


if __name__ == "__main__":
    sys.exit(main())
