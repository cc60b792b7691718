"""The delays of one play's requests: which one is usual, and which show that the clock was set back.

Written from the words of `docs/view.md` (Time, gaps and clocks; Order by time and clocks).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracle.rows.reading import Step


@dataclass(frozen=True, slots=True)
class Delay:
    """Of a beacon: corrected time, receive time, delay (or what it is above the usual one), whether the time before counts."""

    at_ms: int
    recv_ms: int
    ms: int
    counting: bool = False


def _is_level(delays: Sequence[Delay], least_ms: int, count: int, ms: int) -> bool:
    """Whether so many of these delays or more, over so long or longer, are those of one clock."""
    first, last = delays[0], delays[-1]
    over_ms = last.at_ms - first.at_ms
    spread_ms = max(one.ms for one in delays) - least_ms
    return len(delays) >= count and min(over_ms, last.recv_ms - first.recv_ms) >= ms and 3 * spread_ms <= over_ms


def sends(one: Step) -> bool:
    """Whether its client gives send times."""
    return one.beacon.get("sent_time_ms") is not None


def trusts_first(one: Step) -> bool:
    """Whether the delay of its view's first beacon is the usual one."""
    return one.source == "mux" and sends(one)


def runs_back(one: Step, before: Sequence[Step]) -> bool:
    """Whether a beacon was received so long before one of those before it in the order, that the order is wrong."""

    def is_before(others: Sequence[Step], by_ms: int) -> bool:
        if not others:
            return False
        latest = max(others, key=lambda other: other.at_ms + other.offset_ms)
        is_sent = one.at_ms + one.offset_ms < latest.at_ms + latest.offset_ms - by_ms
        return is_sent and one.recv_ms < latest.recv_ms - by_ms

    if not before:
        return False
    earlier = before[::-1]
    ends = [other for other in before if other.name in ("ended", "viewend")]
    was, here = earlier[0].playhead_ms, one.playhead_ms
    goes_back = was is not None and here is not None and here < was and not one.is_seek
    return is_before(earlier, 30_000) or is_before(ends, 10_000) or (goes_back and is_before(earlier, 10_000))


class Delays:
    """What the delays of a play show, taken in its order."""

    def __init__(self, before_ms: int | None) -> None:
        self._before = before_ms
        self._first: int | None = None
        self._lows: list[Delay] = []
        self._least = 0
        self._known = False
        self.is_sure = False
        self._early: Delay | None = None
        self._highs: list[Delay] = []

    def usual(self, one: Step) -> int:
        """The delay of an ordinary request, from corrected time to the server's."""
        return (self._first or 0) if trusts_first(one) or not self._lows else self._least

    def knows(self, one: Step) -> bool:
        """Whether the usual delay is known."""
        return sends(one) or self._known

    def after_ms(self, shift_ms: int) -> int | None:
        """The usual delay after the play, by its clock then; that of before where the play does not show it."""
        return self._least + shift_ms if self._known else self._before

    def take(self, one: Step, at_ms: int, *, counting: bool, is_ahead: bool) -> tuple[int, int] | None:
        """Notes a delay. By how much the clock was set back, and how much of that is a gap, where it shows that."""
        delay = one.at_ms + one.offset_ms - at_ms
        self._first = delay if self._first is None else self._first
        if not trusts_first(one):
            self._note(Delay(at_ms, one.recv_ms, delay), is_ahead=is_ahead)
        late = delay - self.usual(one)
        if late <= 30_000 or not (sends(one) or self.is_sure):
            self._highs = []
            return None
        if any(abs(late - high.ms) > 10_000 for high in self._highs):
            self._highs = []
        self._highs.append(Delay(at_ms, one.recv_ms, late, counting))
        if not _is_level(self._highs, min(high.ms for high in self._highs), 3, 10_000):
            return None
        missing = min(high.ms for high in self._highs)
        gap = missing if self._highs[0].counting else 0
        self._highs = []
        return missing, gap

    def _restart(self, low: Delay) -> None:
        """The usual delay is that of this beacon, and not known yet."""
        self._lows, self._least, self._early = [low], low.ms, None
        self._known = self.is_sure = False

    def _note(self, own: Delay, *, is_ahead: bool) -> None:
        """Notes a delay that may be the usual one."""
        if self._lows and is_ahead and own.ms < self._least:
            # The request at which the clock stepped was slow: its corrected time is too late.
            return
        if self._lows and self._is_early(own):
            if self._early is None or self._early.recv_ms == own.recv_ms:
                self._early = own
                return
            # Nothing showed a step: the requests before these were the slow ones.
            self._restart(self._early)
        self._early = None
        if not self._lows or self._is_early(own):
            first = not self._lows
            self._restart(own)
            self._known = first and self._before is not None and abs(own.ms - self._before) <= 10_000
        elif own.ms <= self._least + 10_000 and not self.is_sure:
            self._lows.append(own)
            self._least = min(self._least, own.ms)
            self._known = self._known or _is_level(self._lows, self._least, 2, 2_000)
            self.is_sure = _is_level(self._lows, self._least, 3, 10_000)
        self._least = min(self._least, own.ms)

    def _is_early(self, own: Delay) -> bool:
        return own.ms < max(low.ms for low in self._lows) - 10_000
