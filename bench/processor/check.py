"""Checks the rows: one row of every ended view, with the right numbers, and no row of views that did not end."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from bench.processor.beacons import Truth
from bench.processor.captured import comparable
from bench.processor.reduced import STATES

_SECONDS_MAX: Final = 600.0
#: Wrong rows that are printed.
_SHOWN: Final = 3


@dataclass(frozen=True)
class Checked:
    """How many views were found so. All but `right` must be 0."""

    right: int
    missing: int
    doubled: int
    wrong: int

    @property
    def is_good(self) -> bool:
        return self.right > 0 and not (self.missing or self.doubled or self.wrong)


def check(bootstrap: str, topic: str, truth: Mapping[bytes, Any], *, fold: str) -> Checked:
    """Reads all committed rows of a topic and compares them with the truth."""
    return compare(read_committed(bootstrap, topic), truth, fold=fold)


def compare(rows: Sequence[tuple[bytes, bytes]], truth: Mapping[bytes, Any], *, fold: str) -> Checked:
    """Compares rows (key, JSON) with what each view that ended must have become.

    `fold` is `reduced`, `full`, or `captured`, where the truth is the whole row.
    """
    to_truth = _TO_TRUTH[fold]
    row_counts = Counter(key for key, _ in rows)
    wrong = [(key, value) for key, value in rows if key not in truth or to_truth(json.loads(value)) != truth[key]]
    for key, value in wrong[:_SHOWN]:
        print(f"wrong: {key!r}: {value!r}; right: {truth.get(key)}")
    missing = sum(key not in row_counts for key in truth)
    doubled = sum(count > 1 for count in row_counts.values())
    right = sum(key in truth for key in row_counts) - len({key for key, _ in wrong if key in truth})
    return Checked(right, missing, doubled, len(wrong))


def count_committed(bootstrap: str, topic: str) -> int:
    """How many committed records a topic has."""
    return len(read_committed(bootstrap, topic))


def read_committed(bootstrap: str, topic: str) -> list[tuple[bytes, bytes]]:
    """Key and value of every committed record of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench.check",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 5,
        }
    )
    partitions = consumer.list_topics(topic, timeout=_SECONDS_MAX).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    rows: list[tuple[bytes, bytes]] = []
    at_end: set[int] = set()
    deadline = time.monotonic() + _SECONDS_MAX
    try:
        while len(at_end) < len(partitions):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} could not be read in {_SECONDS_MAX} s")
            for message in consumer.consume(5_000, 0.2):
                error = message.error()
                if error is None:
                    rows.append((message.key() or b"", message.value() or b""))
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition() or 0)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return rows


def _reduced(row: dict[str, Any]) -> Truth | None:
    if row["state"] != STATES["viewend"]:
        return None
    return Truth(row["count"], row["duplicates"], row["playing_ms"], row["max_playhead_ms"])


def _full(row: dict[str, Any]) -> Truth | None:
    if row["revision"] != 1 or row["end_reason"] != "clean":
        return None
    return Truth(
        row["beacon_count"], row.get("duplicate_count", 0), row.get("playing_ms", 0), row.get("max_playhead_ms", 0)
    )


_TO_TRUTH: Final[Mapping[str, Callable[[dict[str, Any]], Any]]] = {
    "reduced": _reduced,
    "full": _full,
    "captured": comparable,
}
