"""Corrections: commands by which an operator changes the position of an application's partitions.

The position of a partition is the last `meta` row of its changelog. A correction writes the next one in a transaction of the
partition's own producer id. So it fences the slot that works the partition: that slot takes it over again, from the new position.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from services.processor.engine.application.application import Application
from services.processor.engine.state.meta import META_KEY, Meta, encode_meta
from services.processor.runtime.kafka.clients import partition_producer
from services.processor.runtime.kafka.metas import last_meta
from services.processor.runtime.kafka.reading import ReadingFailed
from services.processor.runtime.kafka.topic_ids import TopicIds, replaced
from shared.settings import Settings

TRANSACTION_SECONDS_MAX: Final = 30.0


class NothingToCorrect(RuntimeError):
    """What the command is for is not the case; the text says why."""


class Position(msgspec.Struct, frozen=True):
    """A partition's position, for operators."""

    partition: int
    #: The partition's clock, ms since 1970; null before its first commit.
    clock_ms: int | None
    #: The next offset of each input.
    next_offsets: dict[str, int]


def positions(settings: Settings, application: Application) -> list[Position]:
    """The position of every partition. Raises `ReadingFailed`, `KafkaException`, `NewerFormat`."""
    numbers = range(application.partitions(settings.profile))
    return [_position(number, last_meta(settings, application, number)) for number in numbers]


def begin_topic(settings: Settings, application: Application, topic: str) -> list[Position]:
    """Lets partitions that were folded from a former topic of this name begin with the new one; returns their new positions.

    Their rows stay. Raises `NothingToCorrect` when the topic is the one that they were folded from, and as `positions` does.
    """
    if topic not in {one.name for one in application.inputs}:
        raise NothingToCorrect(f"{topic} is not an input of {application.name}")
    present = TopicIds(settings, application).now()
    if present is None:
        raise ReadingFailed("no broker gives the ids of the topics")

    def begun(meta: Meta) -> Meta | None:
        if topic not in replaced(meta.topic_ids, present):
            return None
        begins = _reading_from(meta, topic, None)
        return msgspec.structs.replace(begins, topic_ids=meta.topic_ids | {topic: present[topic]})

    changed = _correct(settings, application, range(application.partitions(settings.profile)), begun)
    if not changed:
        raise NothingToCorrect(f"every partition was folded from the present topic {topic}, id {present[topic]}")
    return changed


def begin_at(settings: Settings, application: Application, topic: str, partition: int, offset: int) -> list[Position]:
    """Lets a partition continue from an earlier `offset` of an input, whose log was cut off there; returns its new position.

    Raises `NothingToCorrect` when the partition is not beyond that offset, and as `positions` does.
    """
    numbers = range(application.partitions(settings.profile))
    if topic not in {one.name for one in application.inputs} or partition not in numbers:
        raise NothingToCorrect(f"{topic}/{partition} is not an input of {application.name}")

    def begun(meta: Meta) -> Meta | None:
        return _reading_from(meta, topic, offset) if meta.next_offsets.get(topic, 0) > offset else None

    changed = _correct(settings, application, [partition], begun)
    if not changed:
        raise NothingToCorrect(f"partition {partition} is not beyond offset {offset}: to go forward would lose records")
    return changed


def _reading_from(meta: Meta, topic: str, offset: int | None) -> Meta:
    """`meta` with another next offset of an input; None: its beginning."""
    others = {name: next_offset for name, next_offset in meta.next_offsets.items() if name != topic}
    return msgspec.structs.replace(
        meta,
        next_offsets=others if offset is None else others | {topic: offset},
        # That of the records which are not there any more.
        leader_epochs={name: epoch for name, epoch in meta.leader_epochs.items() if name != topic},
        # Places of failures are sums of offsets, which begin again.
        failing={},
        version_at=None,
    )


def set_clocks_back(
    settings: Settings, application: Application, clock_ms: int, partitions: Iterable[int] | None = None
) -> list[Position]:
    """Sets the clocks of partitions (all by default) that are after `clock_ms` (ms since 1970) back to it.

    Returns their new positions. Raises `NothingToCorrect` when none is after it, and as `positions` does.
    """

    def set_back(meta: Meta) -> Meta | None:
        return msgspec.structs.replace(meta, clock_ms=clock_ms) if meta.clock_ms > clock_ms else None

    numbers = range(application.partitions(settings.profile))
    wanted = numbers if partitions is None else sorted(set(partitions))
    unknown = [number for number in wanted if number not in numbers]
    if unknown:
        raise NothingToCorrect(f"{application.name} has no partitions {unknown}: it has {len(numbers)}")
    changed = _correct(settings, application, wanted, set_back)
    if not changed:
        raise NothingToCorrect("no clock is after that time")
    return changed


def _correct(
    settings: Settings, application: Application, partitions: Iterable[int], change: Callable[[Meta], Meta | None]
) -> list[Position]:
    changed = []
    for partition in partitions:
        before = last_meta(settings, application, partition)
        if before is None or change(before) is None:
            # Not fenced: the slot that works it is left alone.
            continue
        producer = partition_producer(settings, application, partition)
        # After this no other process commits: the last `meta` row stays the last one.
        producer.init_transactions(TRANSACTION_SECONDS_MAX)
        before = last_meta(settings, application, partition)
        after = None if before is None else change(before)
        if after is None:
            continue
        meta = msgspec.structs.replace(after, commit_number=after.commit_number + 1)
        producer.begin_transaction()
        producer.produce(application.changelog.name, encode_meta(meta), META_KEY, partition)
        producer.commit_transaction(TRANSACTION_SECONDS_MAX)
        changed.append(_position(partition, meta))
    return changed


def _position(partition: int, meta: Meta | None) -> Position:
    return Position(partition, None if meta is None else meta.clock_ms, {} if meta is None else meta.next_offsets)
