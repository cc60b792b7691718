"""Membership: the slot as a member of the application's group. The group decides which partitions the slot has.

The group divides the first input alone. The partitions of the other inputs follow it by number: no assignor promises to keep the
partitions of several topics together while they move.
"""

import time
from collections.abc import Callable, Sequence

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from services.processor.runtime.kafka.positions import Positions
from services.processor.runtime.kafka.reader import Reader
from services.processor.runtime.plan import Plan
from services.processor.runtime.slot.partitions import Partitions

log = structlog.get_logger(__name__)


class Membership:
    """Joins the group and leaves it. `on_change` is called after the slot's partitions have changed."""

    def __init__(
        self,
        plan: Plan,
        consumer: Consumer,
        reader: Reader,
        positions: Positions,
        partitions: Partitions,
        *,
        on_change: Callable[[], None],
    ) -> None:
        self._plan = plan
        self._consumer = consumer
        self._reader = reader
        self._positions = positions
        self._partitions = partitions
        self._on_change = on_change
        #: Whether the group has ever assigned partitions, and whether the slot is on its way out.
        self.has_joined = False
        self.is_stopping = False
        self._rejoins = False
        #: Whether the partitions that it had when it began to leave were taken from the client.
        self._has_left = False
        #: Whether everything folded was committed before it was released at the end.
        self.is_clean = True

    @property
    def member_id(self) -> str:
        """The id of this membership; empty before the slot has joined."""
        return self._consumer.memberid() or ""

    def join(self) -> None:
        """Subscribes. The callbacks run in the loop's polls."""
        self._consumer.subscribe(
            [self._plan.application.inputs[0].name],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    def rejoin(self) -> None:
        """Leaves the group, committing what is folded, and joins again once the slot has no partitions (`turn`)."""
        self._rejoins = True
        self._consumer.unsubscribe()

    def turn(self) -> None:
        """Follows each poll."""
        if self._rejoins and not self._partitions:
            self._rejoins = False
            self.join()

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = _numbers(partitions)
        self._positions.start()
        self._partitions.take_over(numbers)
        # Only now: a slot that has joined is ready once it works all partitions that it has.
        self.has_joined = True
        log.info("assigned", partitions=numbers)
        self._on_change()

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = _numbers(partitions)
        self._plan.crash_points.reach("revoking")
        self._close(numbers)
        self._positions.stop(numbers)
        self._has_left = self.is_stopping

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = _numbers(partitions)
        log.warning("lost", partitions=numbers)
        # What was handed over before is the successor's by now.
        self.is_clean = self.is_clean and not (self.is_stopping and set(numbers) & set(self._partitions.numbers))
        self._partitions.release(numbers)
        self._positions.stop(numbers)
        self._has_left = self.is_stopping
        self._on_change()

    def _close(self, numbers: Sequence[int]) -> None:
        deadline = time.monotonic() + self._plan.settings.revoke_ms_max / 1000
        is_clean = self._partitions.close(numbers, self._consumer.consumer_group_metadata, deadline)
        if self.is_stopping:
            # Only what is left behind at the end: the successor of an earlier hand-over has folded it again long ago.
            self.is_clean = self.is_clean and is_clean
        log.info("revoked", partitions=numbers, committed=is_clean)
        self._on_change()

    def leave(self) -> None:
        """Commits and leaves the group at once: a static member that only closes leaves when its session times out."""
        self.is_stopping = True
        self._has_left = not self._partitions
        # Before it unsubscribes: then the client drops the answer to a request to join that is under way, and with it the
        # generation in which it may commit.
        self._close(self._partitions.numbers)
        self._consumer.unsubscribe()
        deadline = time.monotonic() + self._plan.settings.revoke_ms_max / 1000 + self._plan.settings.session_ms / 1000
        # The client leaves when its partitions are revoked, here.
        while not self._has_left and time.monotonic() < deadline:
            self._reader.consume(0.1)
        if self._partitions:
            self.is_clean = False
            log.error("left_behind", partitions=self._partitions.numbers)

    def hand_over(self) -> None:
        """Commits and releases every partition, but stays a member: the next process with the slot's id has them at once."""
        self.is_stopping = True
        self._close(self._partitions.numbers)

    def abandon(self) -> None:
        """Drops everything uncommitted. No record is lost: the new owner continues from the last commit."""
        self.is_stopping = True
        self._partitions.release(self._partitions.numbers)

    def close(self) -> None:
        """Closes the client."""
        try:
            self._consumer.close()
        except (KafkaException, SystemError) as error:
            # After a fatal error the client may raise another one (an error inside a callback appears as SystemError). The member
            # then has no process, and a replica remains a standby.
            log.warning("consumer_close_failed", error=str(error))


def _numbers(partitions: Sequence[TopicPartition]) -> list[int]:
    return sorted(at.partition for at in partitions)
