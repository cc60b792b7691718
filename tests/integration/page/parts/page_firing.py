"""Simulated players of two CDNs, their truth, and what finds it: gauges, the alerting slot and the service `notifications`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from confluent_kafka import Producer

from deploy.local.ports import free_port
from shared import codec
from shared.partitioning import partition_of
from shared.schemas.live import BUCKET_MS
from shared.topics import LIVE
from tests.integration.alerts.notifying import notifications
from tests.integration.page.parts.page_alerts import CUSTOMER
from tests.integration.parts.brokers import broker_with_topics, topics_of
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import Slot, wait_until
from tests.unit.alerts.live import live, slice_of

#: Buckets of 5 s that the players watch.
BUCKETS: Final = 180
MINUTE: Final = 60_000 // BUCKET_MS


@dataclass(frozen=True)
class Player:
    """One that plays all the time; in these buckets it waits for data."""

    cdn: str
    waits: Sequence[range] = ()

    def is_waiting(self, bucket: int) -> bool:
        return any(bucket in one for one in self.waits)


#: Of fastly 3 % wait for two and a half minutes, which is no five, and later to the end. Of akamai a tenth always waits.
PLAYERS: Final = (
    *[Player("fastly", [range(20, 50), range(100, BUCKETS)])] * 3,
    *[Player("fastly")] * 97,
    *[Player("akamai", [range(BUCKETS)])] * 10,
    *[Player("akamai")] * 90,
)


def waiting_share(cdn: str, until: int, buckets: int) -> float:
    """Of the viewers of a CDN, the share that waits, on average over the buckets before `until`."""
    of_cdn = [player for player in PLAYERS if player.cdn == cdn]
    waits = sum(player.is_waiting(bucket) for player in of_cdn for bucket in range(until - buckets, until))
    return waits / (len(of_cdn) * buckets)


def first_above(cdn: str, limit: float, seconds: int) -> tuple[int, float]:
    """After how many buckets each minute of so many seconds was above the limit for the first time; the last minute's share."""
    ends = seconds * 1_000 // BUCKET_MS - MINUTE + 1
    above = [waiting_share(cdn, until, MINUTE) > limit for until in range(MINUTE, BUCKETS)]
    until = MINUTE + next(last for last in range(ends - 1, len(above)) if all(above[last - ends + 1 : last + 1]))
    return until, waiting_share(cdn, until, MINUTE)


def watch(bootstrap: str, begin_ms: int) -> None:
    """The players' gauges, as two partitions of the processor write them."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    key = CUSTOMER.encode()
    for bucket in range(BUCKETS):
        for partition in range(2):
            mine = PLAYERS[partition::2]
            slices = {}
            for cdn in ("fastly", "akamai"):
                waits = [player.is_waiting(bucket) for player in mine if player.cdn == cdn]
                slices[f"cdn={cdn}"] = slice_of(viewers_now=len(waits), rebuffering_now=sum(waits))
            whole = sum(player.is_waiting(bucket) for player in mine)
            at_ms = begin_ms + bucket * BUCKET_MS
            one = live(at_ms, partition, CUSTOMER, slices, viewers_now=len(mine), rebuffering_now=whole)
            producer.produce(LIVE.name, codec.LIVE.encode(one), key, partition_of(key, PARTITIONS))
    assert producer.flush(60) == 0


@contextmanager
def alerting(dsn: str, folder: Path) -> Iterator[str]:
    """What judges the rules of a database at work, over a broker of its own; where that is."""
    with broker_with_topics(folder / "broker", topics_of("alerts")) as broker:
        child = notifications(broker.bootstrap, dsn, free_port(), folder)
        slot = Slot(broker.bootstrap, folder, 0, PROCESSOR_APPLICATION="alerts")
        child.start()
        slot.start()
        try:
            unpublished = "SELECT FROM alerts.environments WHERE version > published"
            wait_until(lambda: count(dsn, unpublished) == 0, "the rules are published")
            wait_until(slot.is_ready, "the slot works")
            yield broker.bootstrap
        finally:
            slot.end()
            child.kill()


def count(dsn: str, statement: str) -> int:
    """How many rows a statement has."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(statement.encode()).rowcount
