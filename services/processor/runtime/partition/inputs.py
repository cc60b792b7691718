"""Inputs: the records that a partition has read and not yet folded, and the partition's clock.

The clock advances by this machine's time only while all records that the inputs' leaders have are known to be folded.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from services.processor.engine.application.application import Application
from services.processor.engine.core.core import Core
from services.processor.engine.inbox import Inbox
from services.processor.engine.record import Record
from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition.caught_up import CaughtUp
from services.processor.runtime.telemetry import counts

#: Records folded at once, after which the loop looks at its clock: some milliseconds, or one record that takes longer.
SLICE_RECORDS: Final = 500
SLICE_SECONDS: Final = 0.02
#: Records between two looks at the clock within a slice; fewer where each takes long, which a client may bring about.
_CHUNK_RECORDS: Final = 50


class Inputs:
    """All inputs of one partition. `ends` are their confirmed ends, as far as they are known; `now` is a monotonic clock (s)."""

    def __init__(self, application: Application, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.topics = [topic.name for topic in application.inputs]
        self._application = application
        self._silence_ms = 0 if application.event_time is None else application.event_time.silence_ms
        self._inbox = Inbox(application)
        #: The clock, and the latest monotonic time of this machine at which it had this value.
        self._anchor = (0, 0.0)
        self._caught_up = CaughtUp(self.topics)
        self._chunk_records = _CHUNK_RECORDS

    # Input.

    def start(self, core: Core, *, time_goes_on: bool = False) -> None:
        """Everything is read again, from the core's position. `time_goes_on`: the clock does not wait for that."""
        self._inbox.start(self.folded(core))
        now = self._now()
        if not time_goes_on:
            self._anchor = (core.clock_ms, now)
        self._caught_up.restart(now)

    def accept(self, topic: str, records: list[Record], position: int) -> None:
        """Takes records read from an input up to (not including) offset `position`."""
        self._inbox.add(topic, records, position, self._now())

    def confirm(self, ends: Mapping[str, End]) -> None:
        """The leaders have reported their ends."""
        for topic, end in ends.items():
            self._inbox.confirm(topic, end.offset, end.asked_at)

    # What goes into the core.

    @property
    def has_ready(self) -> bool:
        """Whether there are records that can be folded at once."""
        return bool(self._inbox.ready(self._now()))

    def fold_slice(self, core: Core) -> bool:
        """Folds the next records, at most one slice. False when there is no record, or the core did not take all of them."""
        unwaited = self._inbox.unwaited
        try:
            ready = self._inbox.ready(self._now())[:SLICE_RECORDS]
            if not ready:
                return False
            folded, is_taken = self._fold(core, ready)
        finally:
            counts.unwaited(self._application.name, self._inbox.unwaited - unwaited)
        self._inbox.remove_folded(folded)
        self._anchor = (core.clock_ms, self._now())
        return is_taken

    def _fold(self, core: Core, records: Sequence[Record]) -> tuple[int, bool]:
        """How many of the records were folded within a slice's time, and whether the core took all that it was given."""
        ends_at = self._now() + SLICE_SECONDS
        folded = 0
        while folded < len(records):
            given = records[folded : folded + self._chunk_records]
            began_at = self._now()
            taken = core.fold(given)
            folded += taken
            if taken < len(given):
                return folded, False
            now = self._now()
            fitting = int(len(given) * SLICE_SECONDS / max(now - began_at, 1e-9))
            self._chunk_records = max(1, min(_CHUNK_RECORDS, fitting))
            if now >= ends_at:
                break
        return folded, True

    def run_clock(self, core: Core) -> None:
        """The clock runs on only while everything that the leaders have is known to be folded, in event time after a silence."""
        read_at = self._inbox.caught_up_at
        clock_ms, stood_at = self._anchor
        if read_at is not None and read_at > stood_at:
            core.advance_to(clock_ms + max(0, int((read_at - stood_at) * 1000) - self._silence_ms))

    # What others ask.

    @property
    def is_empty(self) -> bool:
        """Whether no record waits to be folded."""
        return self._inbox.is_empty

    def waiting(self, topic: str) -> tuple[int, int]:
        """Records of an input that wait to be folded, and the bytes of their values."""
        return self._inbox.waiting_records(topic), self._inbox.waiting_bytes(topic)

    def folded(self, core: Core) -> dict[str, int]:
        """The next offset to fold of each input; 0 before its first."""
        return {topic: core.next_offset(topic) or 0 for topic in self.topics}

    def lag_records(self, core: Core, ends: Mapping[str, End]) -> int | None:
        """Records not yet folded; None until the ends of all inputs are known."""
        if len(ends) < len(self.topics):
            return None
        folded = self.folded(core)
        return sum(max(0, end.offset - folded[topic]) for topic, end in ends.items())

    def has_caught_up(self, core: Core, ends: Mapping[str, End]) -> bool:
        """Whether the core has folded all that the leaders had when it was taken or rolled back."""
        return self._caught_up.observe(ends, self.folded(core), read_at=self._inbox.caught_up_at)
