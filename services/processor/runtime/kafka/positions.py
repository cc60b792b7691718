"""Positions: from which offset the slot's consumer reads each input, and which partitions are paused.

A partition is assigned to the client only when it is known from where to read. A client that is assigned the beginning asks the
broker for its offset. If the answer comes after a seek, the client forgets the seek and reads from the beginning.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

#: A seek right after an assignment may find the client not ready yet. Both must have passed: a process that was stopped
#: for longer has tried once.
SEEK_SECONDS_MAX: Final = 10.0
SEEK_TRIES_MAX: Final = 100

#: The client's word for an epoch that is not known.
_NO_EPOCH: Final = -1


class SeekFailed(RuntimeError):
    """The consumer does not go where it must read from."""


class Positions:
    """Rewinds and pauses of one consumer, by topic and partition. Partitions are given as their number, for all `topics`."""

    def __init__(self, consumer: Consumer, topics: Iterable[str]) -> None:
        self._consumer = consumer
        self._topics = list(topics)
        #: What the client reads, and of it what is paused.
        self._assigned: set[tuple[str, int]] = set()
        self._paused: set[tuple[str, int]] = set()
        #: To which offset, with its leader epoch, until when on the monotonic clock, and after how many more tries.
        self._rewinds: dict[tuple[str, int], tuple[TopicPartition, float, int]] = {}

    def start(self) -> None:
        """The group has assigned partitions. None is read before its first rewind: until it is taken nobody knows from where."""
        # The group waits for this call.
        self._consumer.incremental_assign([])

    def stop(self, numbers: Iterable[int]) -> None:
        """The group has taken these partitions away."""
        left = [at for at in self._all_inputs(numbers) if at in self._assigned]
        self._assigned.difference_update(left)
        # The client keeps the pause of a partition that it does not read: the next assignment would give no records.
        for at in self._paused.intersection(left):
            self._resume(at)
        self._consumer.incremental_unassign([TopicPartition(*at) for at in left])

    def forget(self, number: int) -> None:
        """The partition does not belong to the slot any more; its requested rewinds are dropped."""
        for at in self._all_inputs([number]):
            self._rewinds.pop(at, None)

    def rewind(self, topic: str, partition: int, offset: int | None, leader_epoch: int | None = None) -> None:
        """Reading of an input's partition is to begin or continue at `offset` (None: its beginning), see `carry_out_rewinds`.

        `leader_epoch` is that of the record before it or a later one, where it is known. The client then asks the leader where
        this epoch ends (KIP-320), and reports a log that was cut off before `offset`.
        """
        epoch = _NO_EPOCH if leader_epoch is None else leader_epoch
        at = TopicPartition(topic, partition, OFFSET_BEGINNING if offset is None else offset, leader_epoch=epoch)
        self._rewinds[topic, partition] = (at, time.monotonic() + SEEK_SECONDS_MAX, SEEK_TRIES_MAX)

    def is_rewinding(self, at: tuple[str, int]) -> bool:
        """Whether records read now come again."""
        return at in self._rewinds

    def carry_out_rewinds(self) -> None:
        """Seeks, or assigns what is not read yet. Raises `SeekFailed` when one did not work for long."""
        for at, (to, deadline, tries_left) in list(self._rewinds.items()):
            try:
                self._go_to(at, to)
            except KafkaException as exception:
                if time.monotonic() > deadline and tries_left <= 0:
                    raise SeekFailed(f"cannot seek {at[0]}/{at[1]}: {exception.args[0].str()}") from exception
                self._rewinds[at] = (to, deadline, tries_left - 1)
                continue
            del self._rewinds[at]
            if at in self._paused:
                self._resume(at)

    def hold_back(self, number: int, is_overfull: Callable[[str], bool]) -> None:
        """Pauses the inputs of a partition at work of which too much waits, and resumes the others."""
        for topic in self._topics:
            at = topic, number
            # By input: while one waits for another, that other must be read.
            if is_overfull(topic):
                if at not in self._paused:
                    self._consumer.pause([TopicPartition(*at)])
                    self._paused.add(at)
            elif at in self._paused and at not in self._rewinds:
                self._resume(at)

    def _all_inputs(self, numbers: Iterable[int]) -> list[tuple[str, int]]:
        return [(topic, number) for topic in self._topics for number in numbers]

    def _go_to(self, at: tuple[str, int], to: TopicPartition) -> None:
        if at not in self._assigned:
            self._consumer.incremental_assign([to])
            self._assigned.add(at)
            if to.offset == OFFSET_BEGINNING:
                return
        # Also after an assignment: the client asks about the leader epoch at a seek alone.
        self._consumer.seek(to)

    def _resume(self, at: tuple[str, int]) -> None:
        self._consumer.resume([TopicPartition(*at)])
        self._paused.discard(at)
