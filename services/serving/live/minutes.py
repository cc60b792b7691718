"""Records of topics `live`, `received` and `rejected` that wait for their minute to close, and what they add to it. Pure."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from shared.codec import LIVE, RECEIVED
from shared.schemas.live import BUCKET_MS, SLICE_VALUE_CHARS_MAX, Live, LiveSlice
from shared.schemas.live_minute import (
    COUNT,
    MINUTE_MS,
    RECEIVED_FIELDS,
    REJECTED,
    STEPS,
    WHOLE,
    LiveSteps,
    add_figures,
    figures_of,
)
from shared.schemas.received import COLLECTOR, RELEASE, Received, ReceivedCount

#: If a partition has no record of a step, its last gauges count for so long: views do not end because their partition moves.
CARRY_MS: Final = 30_000


class Place(NamedTuple):
    """A partition of one of the topics."""

    topic: str
    partition: int


class Refusal(NamedTuple):
    """A record of topic `rejected`."""

    customer_id: str
    reason: str


class Intake(NamedTuple):
    """A record of topic `received`."""

    value: bytes


class Waiting(NamedTuple):
    """A record that waits: what it is, and when it was, ms since 1970. None: it counts nowhere, only its place is passed."""

    offset: int
    at_ms: int
    record: bytes | Refusal | Intake | None


#: (customer, dimension, minute since 1970) → steps
Minutes = dict[tuple[str, str, int], LiveSteps]


class Queues:
    """What was read and not landed, by partition, in the order of offsets."""

    def __init__(self) -> None:
        self._queues: dict[Place, deque[Waiting]] = {}
        self.size_bytes = 0

    def put(self, place: Place, one: Waiting) -> None:
        """Adds a record."""
        self._queues.setdefault(place, deque()).append(one)
        self.size_bytes += _size_of(one)

    def take_until(self, until_minute: int | None) -> dict[Place, list[Waiting]]:
        """Removes from each partition what comes first and is of minutes up to this one; of all minutes, if it is None.

        A position is an offset, so a record of a later minute holds back what follows it in its partition.
        """
        found: dict[Place, list[Waiting]] = {}
        for place, queue in self._queues.items():
            taken = []
            while queue and (until_minute is None or queue[0].at_ms // MINUTE_MS <= until_minute):
                one = queue.popleft()
                self.size_bytes -= _size_of(one)
                taken.append(one)
            if taken:
                found[place] = taken
        return found

    def has(self, until_minute: int) -> bool:
        """Whether any partition has something to land of minutes up to this one."""
        return any(queue and queue[0].at_ms // MINUTE_MS <= until_minute for queue in self._queues.values())


class Counting:
    """Adds records to minutes, and remembers each customer's last record of each partition, to carry its gauges."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], tuple[int, bytes]] = {}

    def see(self, record: bytes) -> None:
        """Remembers a record that was landed before. Raises `Undecodable`."""
        self._remember(LIVE.decode(record), record)

    def count(self, waiting: Iterable[Waiting], into: Minutes) -> None:
        """Adds records of one partition, in their order. Raises `Undecodable`."""
        for one in waiting:
            if isinstance(one.record, Refusal):
                steps = into.setdefault((one.record.customer_id, REJECTED, one.at_ms // MINUTE_MS), LiveSteps())
                add_figures(steps, one.record.reason, one.at_ms % MINUTE_MS // BUCKET_MS, {COUNT: 1})
            elif isinstance(one.record, Intake):
                _add_received(into, RECEIVED.decode(one.record.value), one.at_ms)
            elif one.record is not None:
                live = LIVE.decode(one.record)
                self._carry(live, into)
                self._remember(live, one.record)
                _add(into, live, live.bucket_ms, gauges_only=False)

    def _remember(self, live: Live, record: bytes) -> None:
        key = live.partition, live.customer_id
        if live.open_now or live.viewers_now:
            self._last[key] = live.bucket_ms, record
        else:
            self._last.pop(key, None)

    def _carry(self, live: Live, into: Minutes) -> None:
        """The gauges of steps that the partition has left out since its last record of the customer."""
        last_ms, record = self._last.get((live.partition, live.customer_id), (live.bucket_ms, b""))
        left_out = range(last_ms + BUCKET_MS, min(live.bucket_ms, last_ms + CARRY_MS), BUCKET_MS)
        if left_out:
            before = LIVE.decode(record)
            for bucket_ms in left_out:
                _add(into, before, bucket_ms, gauges_only=True)


def _add(into: Minutes, live: Live, bucket_ms: int, *, gauges_only: bool) -> None:
    minute, step = bucket_ms // MINUTE_MS, bucket_ms % MINUTE_MS // BUCKET_MS
    whole = into.setdefault((live.customer_id, WHOLE, minute), LiveSteps())
    whole.heard = whole.heard or [0] * STEPS
    whole.heard[step] += 1
    for dimension, value, record in _parts(live):
        figures = figures_of(record, gauges_only=gauges_only)
        if figures:
            steps = into.setdefault((live.customer_id, dimension, minute), LiveSteps())
            # Postgres has no text with a zero character.
            add_figures(steps, value.replace("\0", " "), step, figures)


def _add_received(into: Minutes, received: Received, at_ms: int) -> None:
    """What a collector received of a customer: of which partitions anything is known it does not say."""
    minute, step = at_ms // MINUTE_MS, at_ms % MINUTE_MS // BUCKET_MS
    whole: list[tuple[str, str, Received | ReceivedCount]] = [(WHOLE, "", received)]
    whole.append((COLLECTOR, received.collector[:SLICE_VALUE_CHARS_MAX], received))
    for dimension, value, counted in [*whole, *((RELEASE, name, one) for name, one in received.releases.items())]:
        figures = {name: figure for name in RECEIVED_FIELDS if (figure := getattr(counted, name))}
        if figures:
            steps = into.setdefault((received.customer_id, dimension, minute), LiveSteps())
            if dimension == WHOLE:
                steps.heard = steps.heard or [0] * STEPS
            add_figures(steps, value.replace("\0", " "), step, figures)


def _parts(live: Live) -> Iterator[tuple[str, str, Live | LiveSlice]]:
    yield WHOLE, "", live
    for name, one in live.slices.items():
        dimension, _, value = name.partition("=")
        yield dimension, value, one


def _size_of(one: Waiting) -> int:
    if isinstance(one.record, Intake):
        return 100 + len(one.record.value)
    return 100 + (len(one.record) if isinstance(one.record, bytes) else 0)
