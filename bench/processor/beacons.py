"""The input: concurrent views, one beacon of each in turn, and the row that every view must become.

Between two beacons of a view there is a record of every other concurrent view. So few commits have a view twice: state that is
written once per commit is written about once per beacon. A duplicate has its own turn, after its original and before the next
beacon. Some views never end: no row may be written for them.
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Producer

from shared.partitioning import partition_of, view_key
from shared.schemas.beacon import SCHEMA_VERSION

BEACONS_A_VIEW: Final = 25
DUPLICATE_SHARE: Final = 0.02
NEVER_ENDED_SHARE: Final = 0.02
CUSTOMER: Final = "acme"
_SEED: Final = 7
_START_MS: Final = 1_795_000_000_000
_BEAT_MS: Final = 10_000
_TURNS_TO_BEGIN: Final = 5
_PRODUCE_SECONDS_MAX: Final = 300.0

_BEACON: Final = (
    f'{{"schema_version":{SCHEMA_VERSION},"source":"mux","customer_id":"{CUSTOMER}","view_id":"%s","event":"%s",'
    '"source_event":"%s","recv_time_ms":%d,"client_time_ms":%d,"seq":%d,"playhead_ms":%d,"attrs":{"view_max_playhead_position":%d,'
    '"view_playing_time_ms_cumulative":%d},"country":"DE","batch_id":"%s-%d"}'
)
#: (event, what the client calls it); at these sequence numbers, else a heartbeat.
_EVENTS: Final = {
    1: ("viewstart", "viewstart"),
    2: ("play", "play"),
    3: ("playing", "playing"),
    9: ("rebufferstart", "rebufferstart"),
    10: ("rebufferend", "rebufferend"),
    16: ("pause", "pause"),
    17: ("playing", "playing"),
}
_PLAYING: Final = frozenset({"playing", "rebufferend"})
_NOT_PLAYING: Final = frozenset({"rebufferstart", "pause", "viewend"})


@dataclass(frozen=True)
class Truth:
    """What the row of a view must say; times in ms."""

    count: int
    duplicates: int
    playing_ms: int
    max_playhead_ms: int


@dataclass(frozen=True)
class Loaded:
    """What was put into the topic. `views` are the keys of the views that end, each with its truth."""

    beacons: int
    value_bytes: int
    views: Mapping[bytes, Any]
    never_ended: int


class View:
    """One player."""

    def __init__(self, number: int, partitions: int, rng: random.Random) -> None:
        self._name = f"{number:032x}"
        self.key = view_key(CUSTOMER, self._name)
        self.partition = partition_of.__wrapped__(self.key, partitions)
        self.ends = rng.random() >= NEVER_ENDED_SHARE
        self._rng = rng
        self._time_ms = _START_MS + number
        self._playing_ms = self._playhead_ms = self._max_playhead_ms = self._duplicates = 0

    @property
    def truth(self) -> Truth:
        """What its row must hold, once `beacons` has given all of them."""
        return Truth(BEACONS_A_VIEW, self._duplicates, self._playing_ms, self._max_playhead_ms)

    def beacons(self) -> Iterator[bytes]:
        """What it sends, in order, duplicates among it."""
        is_playing = False
        for seq in range(1, BEACONS_A_VIEW + 1):
            event, short_event = _EVENTS.get(seq, ("heartbeat", "hb"))
            if seq == BEACONS_A_VIEW and self.ends:
                event = short_event = "viewend"
            elapsed_ms = _BEAT_MS + self._rng.randrange(-500, 500)
            self._time_ms += elapsed_ms
            if is_playing:
                self._playing_ms += elapsed_ms
                self._playhead_ms += elapsed_ms
            # Who seeks back has seen more than where he is.
            reported_ms = self._playhead_ms // 2 if seq == 20 else self._playhead_ms
            self._max_playhead_ms = max(self._max_playhead_ms, reported_ms)
            is_playing = event in _PLAYING or (is_playing and event not in _NOT_PLAYING)
            beacon = (
                _BEACON
                % (
                    self._name,
                    event,
                    short_event,
                    self._time_ms + 80,
                    self._time_ms,
                    seq,
                    reported_ms,
                    self._max_playhead_ms,
                    self._playing_ms,
                    self._name[-8:],
                    seq,
                )
            ).encode()
            yield beacon
            if event != "viewend" and self._rng.random() < DUPLICATE_SHARE:
                self._duplicates += 1
                yield beacon


def turns(views: Sequence[View], in_flight: int) -> Iterator[tuple[View, bytes]]:
    """The beacons of all views in the order of the topic: of those in flight, one beacon each in turn."""
    waiting = iter([(view, view.beacons()) for view in views])
    active: list[tuple[View, Iterator[bytes]]] = []
    # Not all begin with the first turn, so that they do not all end with one.
    room = 0
    while True:
        room = min(in_flight, room + max(1, in_flight // _TURNS_TO_BEGIN))
        active.extend(next_one for _, next_one in zip(range(room - len(active)), waiting, strict=False))
        if not active:
            return
        going = []
        for view, beacons_left in active:
            value = next(beacons_left, None)
            if value is not None:
                going.append((view, beacons_left))
                yield view, value
        active = going


def make_views(views: int, partitions: int) -> list[View]:
    """Players, the same ones every time."""
    rng = random.Random(_SEED)
    return [View(number, partitions, rng) for number in range(views)]


def load(bootstrap: str, topic: str, partitions: int, *, views: int, in_flight: int) -> Loaded:
    """Fills the topic. Raises `TimeoutError` when the broker does not take it in time."""
    to_kafka = producer(bootstrap)
    made = make_views(views, partitions)
    beacons = size_bytes = 0
    for view, value in turns(made, in_flight):
        produce(to_kafka, topic, value, view.key, view.partition)
        beacons += 1
        size_bytes += len(value)
    if to_kafka.flush(_PRODUCE_SECONDS_MAX):
        raise TimeoutError(f"the broker did not take {beacons} beacons in {_PRODUCE_SECONDS_MAX} s")
    ended = {view.key: view.truth for view in made if view.ends}
    return Loaded(beacons, size_bytes, ended, len(made) - len(ended))


def producer(bootstrap: str) -> Producer:
    """For loads: large batches."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.codec": "lz4",
            "linger.ms": 50,
            "batch.num.messages": 20_000,
            "queue.buffering.max.messages": 500_000,
        }
    )


def produce(to_kafka: Producer, topic: str, value: bytes, key: bytes, partition: int) -> None:
    """Waits while the producer's queue is full."""
    deadline = time.monotonic() + _PRODUCE_SECONDS_MAX
    while True:
        try:
            to_kafka.produce(topic, value, key, partition)
        except BufferError:
            if time.monotonic() > deadline:
                raise
            to_kafka.poll(0.05)
        else:
            return
