"""What stands in topic `beacons`: Kafka may have a record twice that was sent once.

A broker that has lost the end of its log has lost what it knew of producers too. The client then begins another epoch and sends
again what was not acknowledged, which may be there already. Such a record is a duplicate like a player's own, and counts as one.
"""

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from shared import topics
from shared.partitioning import view_key
from tests.chaos.feed import HOSTILE, PARTITIONS, Truth

READ_SECONDS_MAX: Final = 300.0


@dataclass
class Stored:
    """Records in the topic: beacons by key, and those that are no beacons."""

    beacons: Counter[bytes] = field(default_factory=Counter)
    hostile: int = 0

    def less(self, sent: Counter[bytes], hostile: int) -> "Stored":
        """What stands beyond what was sent; negative where something is missing."""
        beacons = Counter(self.beacons)
        beacons.subtract(sent)
        return Stored(Counter({key: count for key, count in beacons.items() if count}), self.hostile - hostile)


def stored(bootstrap: str) -> Stored:
    """Reads the topic from its beginning to its present end; raises AssertionError when that takes too long."""
    config = {"bootstrap.servers": bootstrap, "group.id": "chaos-inputs", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(config)
    try:
        places = [TopicPartition(topics.BEACONS.name, at, OFFSET_BEGINNING) for at in range(PARTITIONS)]
        left = sum(consumer.get_watermark_offsets(place, timeout=30.0)[1] for place in places)
        consumer.assign(places)
        found, deadline = Stored(), time.monotonic() + READ_SECONDS_MAX
        while left > 0:
            assert time.monotonic() < deadline, f"{left} records of topic beacons are not read"
            for message in consumer.consume(10_000, 1.0):
                assert message.error() is None, message.error()
                left -= 1
                if message.value() in HOSTILE:
                    found.hostile += 1
                else:
                    found.beacons[message.key() or b""] += 1
        return found
    finally:
        consumer.close()


def with_doubled(truth: Truth, doubled: Stored) -> Truth:
    """What is true when these records came once more than they were sent."""
    rows = dict(truth.rows)
    for key, row in truth.rows.items():
        more = doubled.beacons[view_key(*key)]
        if more and "duplicate_count" in row:
            rows[key] = row | {"duplicate_count": row["duplicate_count"] + more}
    return replace(
        truth,
        rows=rows,
        copies=truth.copies + doubled.beacons.total(),
        rejected=truth.rejected + doubled.hostile,
        doubled=doubled.beacons.total() + doubled.hostile,
    )
