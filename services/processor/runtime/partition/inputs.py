"""Inputs: the records that a partition has read and not yet folded, and the partition's clock.

The clock advances by this machine's time only while all records that the inputs' leaders have are known to be folded.
"""

import time
from collections.abc import Mapping
from typing import Final

from services.processor.engine.application.application import Application
from services.processor.engine.core.core import Core
from services.processor.engine.inbox import Inbox
from services.processor.engine.record import Record
from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition.caught_up import CaughtUp
from services.processor.runtime.telemetry import counts

#: Records folded at once: a few milliseconds, after which the loop looks at its clock.
SLICE_RECORDS: Final = 500


class Inputs:
    """All inputs of one partition. `ends` are their confirmed ends, as far as they are known."""

    def __init__(self, application: Application) -> None:
        self.topics = [topic.name for topic in application.inputs]
        self._application = application
        self._inbox = Inbox(application)
        #: The clock, and the latest monotonic time of this machine at which it had this value.
        self._anchor = (0, 0.0)
        self._caught_up = CaughtUp(self.topics)

    # Input.

    def start(self, core: Core, *, time_goes_on: bool = False) -> None:
        """Everything is read again, from the core's position. `time_goes_on`: the clock does not wait for that."""
        self._inbox.start(self.folded(core))
        now = time.monotonic()
        if not time_goes_on:
            self._anchor = (core.clock_ms, now)
        self._caught_up.restart(now)

    def accept(self, topic: str, records: list[Record], position: int) -> None:
        """Takes records read from an input up to (not including) offset `position`."""
        self._inbox.add(topic, records, position, time.monotonic())

    def confirm(self, ends: Mapping[str, End]) -> None:
        """The leaders have reported their ends."""
        for topic, end in ends.items():
            self._inbox.confirm(topic, end.offset, end.asked_at)

    # What goes into the core.

    @property
    def has_ready(self) -> bool:
        """Whether there are records that can be folded at once."""
        return bool(self._inbox.ready(time.monotonic()))

    def fold_slice(self, core: Core) -> bool:
        """Folds the next records, at most one slice. False when there is no record, or the core did not take all of them."""
        unwaited = self._inbox.unwaited
        try:
            ready = self._inbox.ready(time.monotonic())[:SLICE_RECORDS]
            if not ready:
                return False
            folded = core.fold(ready)
        finally:
            counts.unwaited(self._application.name, self._inbox.unwaited - unwaited)
        self._inbox.remove_folded(folded)
        self._anchor = (core.clock_ms, time.monotonic())
        return folded == len(ready)

    def run_clock(self, core: Core) -> None:
        """The clock runs on only while everything that the leaders have is known to be folded."""
        read_at = self._inbox.caught_up_at
        clock_ms, stood_at = self._anchor
        if read_at is not None and read_at > stood_at:
            core.advance_to(clock_ms + int((read_at - stood_at) * 1000))

    # What others ask.

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
