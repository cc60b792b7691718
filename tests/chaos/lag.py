"""Commit lag: how long after its append each beacon was folded and committed, by Kafka's own times alone."""

import bisect
from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from services.processor.engine.state.meta import META_KEY, decode_meta
from shared import topics
from shared.topics import Topic
from tests.chaos.feed import PARTITIONS


@dataclass(frozen=True)
class Lag:
    """One beacon: its append time (ms since 1970), its partition, and the append time of its commit's meta row later, ms.

    The commit marker follows the meta row by the few milliseconds that a commit takes.
    """

    append_ms: int
    partition: int
    lag_ms: int


@dataclass(frozen=True)
class Summary:
    """Percentiles of lags, ms."""

    beacons: int
    p50_ms: int
    p99_ms: int
    max_ms: int


def commit_lags(bootstrap: str) -> list[Lag]:
    """The lag of every beacon in Kafka; fails when one is not committed."""
    appended = _read(bootstrap, topics.BEACONS)
    metas: dict[int, tuple[list[int], list[int]]] = {number: ([], []) for number in range(PARTITIONS)}
    for partition, _, at_ms, key, value in _read(bootstrap, topics.VIDEO_VIEWS_CHANGELOG):
        if key == META_KEY and value is not None:
            next_offset = decode_meta(value).next_offsets.get(topics.BEACONS.name, 0)
            metas[partition][0].append(next_offset)
            metas[partition][1].append(at_ms)
    lags = []
    for partition, offset, append_ms, _, _ in appended:
        next_offsets, times = metas[partition]
        # The first commit that goes on behind this beacon has folded it.
        at = bisect.bisect_right(next_offsets, offset)
        assert at < len(times), f"beacon {partition}/{offset} is not committed"
        lags.append(Lag(append_ms, partition, times[at] - append_ms))
    return lags


def summary(lags: Iterable[Lag]) -> Summary:
    """Percentiles over these beacons; there must be some."""
    ordered = sorted(lag.lag_ms for lag in lags)
    assert ordered, "no beacons"
    return Summary(
        len(ordered), ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], ordered[-1]
    )


_Read = tuple[int, int, int, bytes | None, bytes | None]


def _read(bootstrap: str, topic: Topic) -> list[_Read]:
    """(partition, offset, append time, key, value) of every committed record, each partition in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "commit-lags",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    records: list[_Read] = []
    try:
        consumer.assign([TopicPartition(topic.name, number, 0) for number in range(PARTITIONS)])
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            messages = consumer.consume(5_000, 10.0)
            assert messages, f"{topic.name} cannot be read to its end"
            for message in messages:
                partition = message.partition() or 0
                if message.error() is not None:
                    # The client reports the end of a partition as an error; nothing is produced any more, so once is enough.
                    ended.add(partition)
                    continue
                key, value = message.key(), message.value()
                records.append((partition, message.offset() or 0, message.timestamp()[1], key, value))
    finally:
        consumer.close()
    return records
