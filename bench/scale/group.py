"""The group at its full size, simulated: members that only join, are assigned partitions and send the group's heartbeats.

They are clients with the settings of slots, in one process, without cores, stores and producers: so a hundred of them fit.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from deploy.local.broker import Broker
from deploy.local.process import wait_until
from services.processor.catalogue import APPLICATIONS
from services.processor.runtime.kafka.clients import group_consumer
from services.processor.settings import ProcessorSettings
from shared import topics

_SETTLED_SECONDS_MAX: Final = 120.0
_TURN_SECONDS: Final = 0.02
#: What the client may hold of what it has read: the members read almost nothing.
_FETCH_KBYTES: Final = 1_024


class Settled(NamedTuple):
    """Seconds until all partitions were assigned: to all members at their start, after one more came, after one left."""

    members: int
    partitions: int
    start_seconds: float
    join_seconds: float
    leave_seconds: float
    #: Of the broker while nothing changed, cores.
    broker: float


class Members:
    """Bare members of one group on topic `beacons`, polled by a thread as slots poll theirs."""

    def __init__(self, broker: Broker, partitions: int) -> None:
        self._settings = ProcessorSettings(kafka_bootstrap=broker.bootstrap)
        self._application = APPLICATIONS["video_views"]({})
        self._partitions = partitions
        self._members: list[Consumer] = []
        self._held: dict[Consumer, set[int]] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="members", daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Polls them until it is left."""
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()
            for member in self._members:
                member.close()

    def add(self, count: int) -> float:
        """More members come; the seconds until all have as many partitions as any, or one less, and none is nobody's."""
        began = time.monotonic()
        for _ in range(count):
            member = group_consumer(
                self._settings,
                self._application,
                slot=f"simulated/{len(self._members)}",
                lookup_url=None,
                session_ms=self._settings.session_ms,
                poll_interval_ms_max=self._settings.poll_interval_ms_max,
                fetch_kbytes_max=_FETCH_KBYTES,
            )
            with self._lock:
                self._members.append(member)
                self._held[member] = set()
            member.subscribe([topics.BEACONS.name], on_assign=self._on_assign, on_revoke=self._on_revoke)
        return self._settled_after(began)

    def remove(self) -> float:
        """One member leaves; the seconds until the others have its partitions."""
        began = time.monotonic()
        with self._lock:
            member = self._members.pop()
        member.unsubscribe()
        deadline = began + _SETTLED_SECONDS_MAX
        while self._held[member] and time.monotonic() < deadline:
            member.poll(_TURN_SECONDS)
        member.close()
        with self._lock:
            del self._held[member]
        return self._settled_after(began)

    def _settled_after(self, began: float) -> float:
        what = f"{len(self._members)} members have {self._partitions} partitions"
        wait_until(self._is_settled, _SETTLED_SECONDS_MAX, what)
        return time.monotonic() - began

    @property
    def sizes(self) -> list[int]:
        """How many partitions each member has."""
        with self._lock:
            return [len(held) for held in self._held.values()]

    def _is_settled(self) -> bool:
        sizes = self.sizes
        return sum(sizes) == self._partitions and max(sizes) - min(sizes) <= 1

    def _poll(self) -> None:
        while not self._over.wait(_TURN_SECONDS):
            # Who is being removed is polled, and closed, by `remove`.
            with self._lock:
                for member in self._members:
                    member.poll(0)

    def _on_assign(self, member: Consumer, assigned: list[TopicPartition]) -> None:
        member.incremental_assign([TopicPartition(one.topic, one.partition, 0) for one in assigned])
        self._held[member] |= {one.partition for one in assigned}

    def _on_revoke(self, member: Consumer, revoked: list[TopicPartition]) -> None:
        member.incremental_unassign(revoked)
        self._held[member] -= {one.partition for one in revoked}
