"""EventTimes: the event time of each record, for an application whose clock is event time."""

from services.processor.engine.application.application import EventTime
from services.processor.engine.record import Record
from services.processor.engine.state.failures import FoldFailed
from shared.codec import Undecodable


class EventTimes:
    """The event time of the present record, or why it has none. Times in ms since 1970."""

    def __init__(self, rules: EventTime) -> None:
        self._rules = rules
        self._event_ms = 0
        self._undecodable = ""

    def of(self, record: Record, clock_ms: int) -> int:
        """Where the clock is to be for the record; it stays at `clock_ms` for one that cannot be folded.

        Raises `FoldFailed` when the application raises on it.
        """
        self._undecodable = ""
        try:
            self._event_ms = self._rules.of(record)
        except Undecodable as error:
            self._undecodable = str(error)
        except Exception as error:
            raise FoldFailed(record, error) from error
        else:
            ahead_ms = self._event_ms - record.timestamp_ms
            if ahead_ms <= self._rules.ahead_ms_max:
                # Never ahead of the broker's time, so that a client whose clock is ahead makes no other record late.
                return min(self._event_ms, record.timestamp_ms)
            self._undecodable = f"its time is {ahead_ms} ms ahead of its append time"
        return clock_ms

    def is_late(self, clock_ms: int) -> bool:
        """Whether this record is older than the clock by more than the grace; raises `Undecodable` for one without a time."""
        if self._undecodable:
            raise Undecodable(self._undecodable)
        return self._event_ms + self._rules.grace_ms < clock_ms
