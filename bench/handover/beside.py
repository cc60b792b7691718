"""One hand-over under load: how long a partition of the leaving instance makes no progress, and how far readers fall behind.

Both systems fold the same topic (`bench.processor.reduced`, commits every 100 ms, sessions of 6 s, two instances) and have the same
open views. The standstill is measured by the group's committed offsets: the longest time without an advance in a partition of the
instance that left, while beacons arrive in it.
"""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.handover.groups import SYSTEMS, Group, members, partitions_of
from bench.processor.beacons import Truth, View, turns
from bench.processor.check import Checked, check, count_committed
from bench.processor.topics_of_runs import PARTITIONS, TopicsOfRuns
from deploy.local.process import ProcessDied, wait_until

Way = Literal["kill", "term"]
WAYS: Final[tuple[Way, ...]] = ("kill", "term")
_DRAIN_SECONDS_MAX: Final = 600.0
_RECOVER_SECONDS_MAX: Final = 180.0
#: How long beacons flow before the instance goes, and after every partition goes on.
_STEADY_SECONDS: Final = 5.0
_SAMPLE_SECONDS: Final = 0.03
_LOAD_IN_FLIGHT: Final = 400
_NEVER: Final = 1_000_000_000


@dataclass(frozen=True)
class Went:
    """One hand-over: the longest standstill of a partition in seconds, and the largest lag of one in records."""

    system: str
    standbys: int
    way: Way
    standstill_seconds: float
    lag_records: int


@dataclass
class Load:
    """Beacons at a steady rate, whole lives of views; `truth` grows with every load."""

    bootstrap: str
    rate: int
    begun: int = 0
    sent: int = 0
    truth: dict[bytes, Truth] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rng = random.Random(11)
        self._stop = threading.Event()

    def start(self) -> threading.Thread:
        """Begins on a thread of its own; `finish` ends it."""
        self._stop.clear()
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        return thread

    def finish(self, thread: threading.Thread) -> None:
        """No new views; returns when those in flight have ended."""
        self._stop.set()
        thread.join()

    def _views(self) -> Iterator[View]:
        while not self._stop.is_set():
            self.begun += 1
            yield View(2 * _NEVER + self.begun, PARTITIONS, self._rng)

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, "compression.codec": "lz4"})
        began, sent = time.monotonic(), 0
        views = self._views()
        while not self._stop.is_set():
            batch = [view for view, _ in zip(views, range(_LOAD_IN_FLIGHT), strict=False)]
            for view, value in turns(batch, _LOAD_IN_FLIGHT):
                time.sleep(max(0.0, began + sent / self.rate - time.monotonic()))
                producer.produce("beacons", value, view.key, view.partition)
                producer.poll(0)
                sent += 1
            self.truth.update({view.key: view.truth for view in batch if view.ends})
        producer.flush(60)
        self.sent += sent


def open_views(bootstrap: str, count: int) -> None:
    """The first beacon of so many views, none of which ever ends."""
    rng = random.Random(5)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "compression.codec": "lz4",
            "queue.buffering.max.messages": 500_000,
        }
    )
    for number in range(count):
        view = View(_NEVER + number, PARTITIONS, rng)
        while True:
            try:
                producer.produce("beacons", next(view.beacons()), view.key, view.partition)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(300):
        raise TimeoutError("the broker does not take the open views")


class Offsets:
    """A group's committed offsets and the topic's ends, sampled."""

    def __init__(self, bootstrap: str, group: str) -> None:
        config = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 0}
        self._asker = Consumer(config)
        self._at = [TopicPartition("beacons", partition) for partition in range(PARTITIONS)]

    def committed(self) -> dict[int, int] | None:
        """By partition; None while the group's coordinator does not answer."""
        try:
            return {at.partition: max(0, at.offset) for at in self._asker.committed(self._at, timeout=5)}
        except KafkaException:
            return None

    def ends(self) -> dict[int, int]:
        """By partition."""
        return {number: self._asker.get_watermark_offsets(at, timeout=10)[1] for number, at in enumerate(self._at)}

    def close(self) -> None:
        """Ends the client."""
        self._asker.close()


def hand_over(
    system: str, way: Way, standbys: int, *, load: Load, folder: Path, settle_seconds: float
) -> tuple[Went, Checked]:
    """Starts two instances on what the topic holds, lets one go under load, and checks every row of the load's views."""
    name = f"{system.split(maxsplit=1)[0].lower()}-{way}-{standbys}"
    topics = TopicsOfRuns(load.bootstrap)
    topics.create([f"{name}.rows"], [f"{name}.changelog"] if system == "Playhead" else [])
    group = SYSTEMS[system](name, load.bootstrap, folder / name, standbys=standbys)
    offsets = Offsets(load.bootstrap, name)
    try:
        for child in group.all:
            child.start()
        _wait_drained(offsets, group, lambda: members(load.bootstrap, name) == 2)
        time.sleep(settle_seconds)
        going = partitions_of(load.bootstrap, name, group.marker)
        thread = load.start()
        time.sleep(_STEADY_SECONDS)
        standstill, lag = _watch(offsets, group, way, going)
        load.finish(thread)
        _wait_drained(offsets, group, lambda: True)
        rows = f"{name}.rows"
        wait_until(
            lambda: count_committed(load.bootstrap, rows) >= len(load.truth), _RECOVER_SECONDS_MAX, rows, every=1.0
        )
        checked = check(load.bootstrap, rows, load.truth, fold="reduced")
    finally:
        for child in reversed(group.all):
            child.stop(60)
        offsets.close()
    return Went(system, standbys, way, standstill, lag), checked


def _wait_drained(offsets: Offsets, group: Group, also: Callable[[], bool]) -> None:
    def drained() -> bool:
        _check(group, including_first=False)
        return offsets.committed() == offsets.ends() and also()

    wait_until(drained, _DRAIN_SECONDS_MAX, f"{group.first.name} and the others have drained the topic", every=1.0)


def _check(group: Group, *, including_first: bool) -> None:
    for child in group.all if including_first else group.others:
        if not child.is_running:
            raise ProcessDied(child.obituary())


def _watch(offsets: Offsets, group: Group, way: Way, going: set[int]) -> tuple[float, int]:
    """Lets the first instance go; the longest standstill of its partitions and the largest lag of one, until all go on."""
    if not going:
        raise RuntimeError(f"{group.first.name} has no partitions: nothing would be handed over")
    if way == "kill":
        group.first.kill()
    else:
        group.first.signal(signal.SIGTERM)
    went = time.monotonic()
    position = offsets.committed() or {}
    advanced = dict.fromkeys(going, went)
    longest = dict.fromkeys(going, 0.0)
    seen: set[int] = set()
    lag, on_since = 0, None
    deadline = went + _RECOVER_SECONDS_MAX
    while on_since is None or time.monotonic() - on_since < _STEADY_SECONDS:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{sorted(going - seen)} stand still after {_RECOVER_SECONDS_MAX} s")
        _check(group, including_first=False)
        now, committed = time.monotonic(), offsets.committed()
        if committed is None:
            continue
        ends = offsets.ends()
        lag = max(lag, *(ends[partition] - committed[partition] for partition in going))
        for partition in going:
            longest[partition] = max(longest[partition], now - advanced[partition])
            if committed[partition] > position.get(partition, 0):
                advanced[partition] = now
                if not group.first.is_running:
                    seen.add(partition)
        position = committed
        if seen == going and on_since is None:
            on_since = now
        time.sleep(_SAMPLE_SECONDS)
    return max(longest.values()), lag
