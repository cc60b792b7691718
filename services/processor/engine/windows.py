"""Windows: which window of time a record belongs to and when the window closes; arithmetic only.

A window is closed once the clock has passed its end by the grace. For a record that is not late (`Context.is_late`, with the same
grace) every window of its time is open, in both kinds. Use `closes_ms` as the deadline of the row that holds the window. `fire`
then runs with the clock at exactly that time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Window(NamedTuple):
    """The times from `first_ms` to `last_ms`, both within, ms since 1970."""

    first_ms: int
    last_ms: int


@dataclass(frozen=True)
class Tumbling:
    """Windows of `size_ms`, one after the other from 1970 on: every time is in exactly one."""

    size_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        if self.size_ms < 1 or self.grace_ms < 0:
            raise ValueError(f"not a window: {self}")

    def window_of(self, at_ms: int) -> Window:
        """The window that holds the time `at_ms`."""
        first_ms = at_ms - at_ms % self.size_ms
        return Window(first_ms, first_ms + self.size_ms - 1)

    def closes_ms(self, window: Window) -> int:
        """The clock time from which on the window is closed."""
        return window.last_ms + self.grace_ms + 1

    def is_closed(self, window: Window, clock_ms: int) -> bool:
        """Whether no record that is not late can fall into the window any more."""
        return clock_ms >= self.closes_ms(window)


@dataclass(frozen=True)
class Sessions:
    """Windows that last while records come: two times of a key not more than `gap_ms` apart are in one session."""

    gap_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        if self.gap_ms < 0 or self.grace_ms < 0:
            raise ValueError(f"not a session: {self}")

    def window_of(self, at_ms: int) -> Window:
        """The session that the time `at_ms` would be alone."""
        return Window(at_ms, at_ms)

    def merge(self, session: Window, others: Iterable[Window]) -> tuple[Window, list[Window]]:
        """The session grown by those of `others` that it touches, and these: one that came between two bridges them.

        `others` must be sessions of one key that do not touch each other; it is looked through once.
        """
        touched = [
            other
            for other in others
            if other.first_ms <= session.last_ms + self.gap_ms and session.first_ms <= other.last_ms + self.gap_ms
        ]
        grown = Window(
            min([session.first_ms, *(other.first_ms for other in touched)]),
            max([session.last_ms, *(other.last_ms for other in touched)]),
        )
        return grown, touched

    def closes_ms(self, session: Window) -> int:
        """The clock time from which on the session is closed."""
        return session.last_ms + self.gap_ms + self.grace_ms + 1

    def is_closed(self, session: Window, clock_ms: int) -> bool:
        """Whether no record that is not late can prolong or bridge the session any more."""
        return clock_ms >= self.closes_ms(session)
