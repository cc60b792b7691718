"""The feed: produces the beacons of many stories at once, at their own pace, and keeps what is true of them."""

import heapq
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Producer

from shared import codec, topics
from shared.partitioning import partition_of, view_key
from tests.chaos.stories import Send, Story, long_story, stories
from tests.integration.parts.feed import LINGER

#: Of an installation as users have it by default.
PROFILE: Final[topics.ProfileName] = "laptop"
PARTITIONS: Final = topics.BEACONS.partitions(topics.PROFILES[PROFILE])
FLUSH_SECONDS_MAX: Final = 60.0
#: How much faster the beacons of a hot key come.
_HOT_PACE: Final = 20
HOSTILE: Final = (
    b"",
    b"{garbage",
    b"null",
    b"[" * 100_000,
    b'{"schema_version": 999}',
    b'{"schema_version": 1, "source": "mux", "customer_id": 7}',
    bytes(range(256)) * 100,
)


@dataclass(frozen=True)
class Truth:
    """What must be observed once everything sent is folded."""

    #: By (customer, view id): the fields of the newest row.
    rows: dict[tuple[str, str], dict[str, Any]]
    #: Distinct beacons, copies of them, and distinct ones of keys that never became a view.
    beacons: int
    copies: int
    dropped: int
    #: Records that are no beacons.
    rejected: int = 0
    #: Of all these, records that Kafka has once more than they were sent.
    doubled: int = 0


class Feed(threading.Thread):
    """Begins `views_per_second` views for `seconds`, then brings all of them to their end."""

    def __init__(
        self,
        bootstrap: str,
        *,
        seconds: float,
        views_per_second: float,
        seed: int,
        long_views: int = 0,
        hostile_share: float = 0.0,
    ) -> None:
        """`long_views` last as long as the feed, and the first of them has a beacon every 20 ms.

        `hostile_share` is the number of hostile records a beacon.
        """
        super().__init__(name="feed", daemon=True)
        # That the broker is away, when it is killed on purpose, is no news.
        config = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0}
        self._producer = Producer({**config, **LINGER})
        self._stories = stories(seed)
        self._chance = random.Random(seed)
        self._seconds = seconds
        self._views_per_second = views_per_second
        self._hostile_share = hostile_share
        self._long = [
            long_story(seed, number, seconds, _HOT_PACE if number == 0 else 1) for number in range(long_views)
        ]
        self._enough = threading.Event()
        self._begun: list[Story] = []
        self._beacons = self._copies = self._hostile = 0
        self.failure: BaseException | None = None

    @property
    def views(self) -> int:
        """Views begun so far."""
        return len(self._begun)

    def truth(self) -> Truth:
        """What is true of all that was sent; ask once the feed has ended."""
        return Truth(
            rows={story.key: story.row for story in self._begun if story.row},
            beacons=self._beacons,
            copies=self._copies,
            dropped=sum(story.beacons for story in self._begun if not story.row),
            rejected=self._hostile,
        )

    def sent(self) -> Counter[bytes]:
        """How many records of each view were sent, copies among them; ask once the feed has ended."""
        return Counter({view_key(*story.key): len(story.sends) for story in self._begun})

    def check(self) -> None:
        """Raises what ended the feed, if anything did."""
        if self.failure is not None:
            raise self.failure

    def stop_beginning(self) -> None:
        """No more views are begun; those begun are brought to their end."""
        self._enough.set()

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self.failure = error
            raise

    def _run(self) -> None:
        now = time.monotonic()
        end, begins_at = now + self._seconds, now
        # (due, which story, which of its sends)
        due: list[tuple[float, int, int]] = [(now, number, 0) for number in range(len(self._long))]
        self._begun += self._long
        while due or not self._is_over(now, end):
            now = time.monotonic()
            while begins_at <= now and not self._is_over(now, end):
                story = next(self._stories)
                heapq.heappush(due, (now, len(self._begun), 0))
                self._begun.append(story)
                begins_at += self._chance.expovariate(self._views_per_second)
            while due and due[0][0] <= now:
                due_at, number, at = heapq.heappop(due)
                sends = self._begun[number].sends
                self._send(sends[at])
                if at + 1 < len(sends):
                    # By when it was due: a feed that is held up does not make the longest views outlast the run.
                    heapq.heappush(due, (due_at + sends[at + 1].after_ms / 1000, number, at + 1))
            self._producer.poll(0.005)
        left = self._producer.flush(FLUSH_SECONDS_MAX)
        assert left == 0, f"{left} beacons were not acknowledged in {FLUSH_SECONDS_MAX} s"

    def _is_over(self, now: float, end: float) -> bool:
        return now >= end or self._enough.is_set()

    def _send(self, send: Send) -> None:
        beacon = send.beacon
        key = view_key(beacon.customer_id, beacon.view_id)
        self._producer.produce(
            topics.BEACONS.name,
            codec.BEACON.encode(beacon),
            key,
            partition_of(key, PARTITIONS),
            on_delivery=self._delivered,
        )
        self._beacons += not send.is_copy
        self._copies += send.is_copy
        if self._hostile_share and self._chance.random() < self._hostile_share:
            self._send_hostile(key)

    def _send_hostile(self, key: bytes) -> None:
        """What no collector stores: under the key of a view that goes on, or under one of its own."""
        value = self._chance.choice(HOSTILE)
        key = self._chance.choice([key, b"acme:hostile", b"\xff\xfe", b""])
        self._producer.produce(
            topics.BEACONS.name, value, key, partition_of(key, PARTITIONS), on_delivery=self._delivered
        )
        self._hostile += 1

    @staticmethod
    def _delivered(error: object, _message: object) -> None:
        assert error is None, error
