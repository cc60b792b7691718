"""Inbox: chooses the next of a partition's buffered records. With several inputs, it is the record with the lowest time.

Each input's records stay in the order of their offsets. The first records of all inputs are compared, so an input without buffered
records holds the others back, as Kafka Streams' `max.task.idle.ms` does. This ends when a record arrives, or when the wait ends. It
also ends when the leader confirms that there was no record at a time when the others' first record was already buffered. Whether a
record is held back depends on what has been read. The order of the records does not, unless a wait ended, so a replay in other
batches gives the same order. Times named `at` or `now` are monotonic seconds.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from services.processor.engine.application.application import Application
from services.processor.engine.record import Record

#: Records that come out at once where several inputs are merged.
MERGED_MAX: Final = 1_000


class _Input:
    """One input topic's records that wait, and what is known of its end."""

    def __init__(self) -> None:
        #: Records, when they came, and the bytes of their values.
        self.batches: deque[tuple[list[Record], float, int]] = deque()
        #: The index of its next record in the first batch, and that record's time.
        self.index = 0
        self.next_ms = 0
        self.records = 0
        self.bytes = 0
        #: Up to where the input was read.
        self.position = 0
        self.end: tuple[int, float] | None = None

    @property
    def confirmed_at(self) -> float | None:
        """When the leader is known to have had nothing that was not read; None if that is not known."""
        return self.end[1] if self.end is not None and self.position >= self.end[0] else None


class Inbox:
    """The records of one partition that were read and not yet folded."""

    def __init__(self, application: Application) -> None:
        event_time = application.event_time
        self._time_of: Callable[[Record], int] = _append_ms if event_time is None else event_time.of
        self._wait_seconds = application.input_wait_ms_max / 1000
        self._inputs = {topic.name: _Input() for topic in application.inputs}
        self._ready: list[Record] = []
        self._waits_since: float | None = None
        #: Records that came out after a wait had run out: in a replay their order may be another.
        self.unwaited = 0

    # Input.

    def start(self, positions: dict[str, int]) -> None:
        """Forgets everything: reading goes on from these offsets."""
        for topic in self._inputs:
            self._inputs[topic] = _Input()
            self._inputs[topic].position = positions.get(topic, 0)
        self._ready, self._waits_since = [], None

    def add(self, topic: str, records: list[Record], position: int, now: float) -> None:
        """Takes in what was read of an input, in order, up to (not including) offset `position`."""
        source = self._inputs[topic]
        source.position = max(source.position, position)
        if not records:
            return
        size_bytes = sum([len(record.value) for record in records if record.value is not None])
        source.batches.append((records, now, size_bytes))
        source.records += len(records)
        source.bytes += size_bytes
        if len(source.batches) == 1:
            self._look_at_first(source)

    def confirm(self, topic: str, end: int, asked_at: float) -> None:
        """The leader said, when asked at `asked_at`, that the input ends before offset `end`."""
        self._inputs[topic].end = (end, asked_at)

    # What waits.

    @property
    def is_empty(self) -> bool:
        """Whether no record waits."""
        return not self._ready and not any(source.records for source in self._inputs.values())

    def waiting_records(self, topic: str) -> int:
        """Records of the input that wait for the others."""
        return self._inputs[topic].records

    def waiting_bytes(self, topic: str) -> int:
        """Bytes of their values."""
        return self._inputs[topic].bytes

    @property
    def caught_up_at(self) -> float | None:
        """When all there was is known to have been read and taken; None if that is not known."""
        if not self.is_empty:
            return None
        confirmed = [source.confirmed_at for source in self._inputs.values()]
        known = [at for at in confirmed if at is not None]
        return min(known) if len(known) == len(confirmed) else None

    # Output.

    def ready(self, now: float) -> Sequence[Record]:
        """The records whose turn it is, in order; they stay until `remove_folded`."""
        if not self._ready:
            if len(self._inputs) == 1:
                (source,) = self._inputs.values()
                self._ready = self._whole_batch(source)
            else:
                self._ready = self._merge(now)
        return self._ready

    def remove_folded(self, number: int) -> None:
        """The first `number` of the ready records were folded."""
        self._ready = self._ready[number:]

    @staticmethod
    def _whole_batch(source: _Input) -> list[Record]:
        if not source.batches:
            return []
        records, _, size_bytes = source.batches.popleft()
        source.records -= len(records)
        source.bytes -= size_bytes
        return records

    def _merge(self, now: float) -> list[Record]:
        merged: list[Record] = []
        while len(merged) < MERGED_MAX:
            waiting = [source for source in self._inputs.values() if source.records]
            if not waiting:
                break
            # Of equal times, the input declared first.
            first = min(waiting, key=_next_ms)
            if len(waiting) < len(self._inputs) and not self._may_go_on(first.batches[0][1], now):
                break
            merged.append(self._pop(first))
        return merged

    def _may_go_on(self, here_since: float, now: float) -> bool:
        """Whether the empty inputs are known to have had nothing when the next record was here, or were waited for."""
        for source in self._inputs.values():
            if source.records or (source.confirmed_at is not None and source.confirmed_at >= here_since):
                continue
            if self._waits_since is None:
                self._waits_since = now
            if now - self._waits_since < self._wait_seconds:
                return False
            self.unwaited += 1
            return True
        self._waits_since = None
        return True

    def _pop(self, source: _Input) -> Record:
        records = source.batches[0][0]
        record = records[source.index]
        source.index += 1
        source.records -= 1
        source.bytes -= len(record.value or b"")
        if source.index == len(records):
            source.batches.popleft()
            source.index = 0
        if source.records:
            self._look_at_first(source)
        return record

    def _look_at_first(self, source: _Input) -> None:
        if len(self._inputs) == 1:
            return
        record = source.batches[0][0][source.index]
        try:
            source.next_ms = self._time_of(record)
        except Exception:  # noqa: BLE001  (the core asks again, and names the error)
            # The core rejects it. Its order has no meaning, so it keeps the time of the record before it.
            return


def _next_ms(source: _Input) -> int:
    return source.next_ms


def _append_ms(record: Record) -> int:
    return record.timestamp_ms
