"""Partitions without an owner: found by asking the group, and assigned when one member joins again.

A rebalance has two rounds: in the first, members give partitions up, in the second others take them. A member that is killed
between the two and starts again under its static id gets what the first round gave it. To the group nothing has changed, so there
is no second round. The partitions that were to be given up would have no owner until the next member joins or leaves. So a slot
asks the group every few seconds. If it has been settled for a while and some partitions have no owner, the member with the fewest
leaves and joins again.
"""

import threading
import time
from collections.abc import Sequence
from typing import Final, cast

import structlog
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from services.processor.runtime.kafka.ownership import SETTLED, Group, assigned, owner_of
from services.processor.runtime.plan import Plan
from services.rim.kafka.connection import client_config

log = structlog.get_logger(__name__)

ASK_SECONDS: Final = 5.0
ANSWER_SECONDS_MAX: Final = 5.0
#: The group has the same partitions of nobody for so long before a member joins again.
PATIENCE_SECONDS: Final = 5.0


def unowned(groups: Sequence[Group], topic: str, partitions: int) -> tuple[frozenset[int], str]:
    """The partitions of nobody in a group that is settled, and the slot that is to join again: that with the fewest, by name."""
    if len(groups) != 1 or groups[0].error is not None or groups[0].state != SETTLED or not groups[0].members:
        return frozenset(), ""
    held = {owner_of(member.client_id).slot: list(assigned(member.assignment, topic)) for member in groups[0].members}
    nobodys = frozenset(range(partitions)) - frozenset(number for numbers in held.values() for number in numbers)
    return nobodys, min(held, key=lambda slot: (len(held[slot]), slot))


class Unowned:
    """Asks from a thread of its own."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._topic = plan.application.inputs[0].name
        self._admin = AdminClient(client_config(plan.settings, f"{plan.application.id}.unowned"))
        self._seen: tuple[frozenset[int], float] = (frozenset(), 0.0)
        #: Set when this slot is to join again; who does it clears it.
        self.is_ours = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="unowned", daemon=True)

    def start(self) -> None:
        """Begins to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; waits for the question it may be asking."""
        self._stop.set()
        self._thread.join(2 * ANSWER_SECONDS_MAX)

    def _run(self) -> None:
        while not self._stop.wait(ASK_SECONDS):
            try:
                groups = cast(
                    list[Group], self._admin.list_groups(self._plan.application.id, timeout=ANSWER_SECONDS_MAX)
                )
            except KafkaException as exception:
                log.debug("group_unanswered", code=exception.args[0].name())
                continue
            self._judge(*unowned(groups, self._topic, self._plan.partitions))

    def _judge(self, nobodys: frozenset[int], chosen: str) -> None:
        now = time.monotonic()
        if not nobodys or nobodys != self._seen[0]:
            self._seen = nobodys, now
        elif now - self._seen[1] >= PATIENCE_SECONDS:
            log.warning("partitions_of_nobody", partitions=sorted(nobodys), joins_again=chosen)
            self._seen = frozenset(), now
            if chosen == self._plan.slot:
                self.is_ours.set()
