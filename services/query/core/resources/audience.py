"""How many views are open at a time: the steps of a curve, and what they are counted by. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import msgspec

from services.query.core.calendar import DAY_MS, WIDTHS_MS, Range, fitting
from shared.measures import COUNTED_MS

#: A view that was watched in the range may end, and so count, this much later.
_LATER_MS: Final = DAY_MS
#: What `Steps.began` and `Steps.ended` read, besides the time at which a view counts.
BEGAN_FIELD: Final = "view_start_ms"

Row = Mapping[str, Any]


class Audience(msgspec.Struct, frozen=True):
    """How many views were open at a moment: begun, and not ended."""

    at_ms: int
    views: int


@dataclass(frozen=True)
class Steps:
    """The moments of a curve: from the first ms of a range on, up to its end or the present."""

    range: Range
    step_ms: int
    until_ms: int

    @property
    def moments_ms(self) -> list[int]:
        """Every moment; none of a range in the future."""
        return list(range(self.range.from_ms, self.until_ms, self.step_ms))

    @property
    def began(self) -> str:
        """The step from which on a row of relation `views` is open.

        A view counts at a moment if it began by then and ends later: so both are put at the next step.
        """
        return self._step_of(BEGAN_FIELD)

    @property
    def ended(self) -> str:
        """The step from which on it is open no longer."""
        # A clock that was set back may put an end before its beginning: such a view was never open.
        return self._step_of(f"greatest({BEGAN_FIELD}, {COUNTED_MS})")

    @property
    def touches(self) -> str:
        """Whether it was open at some time of the curve. One that ended when it began, or before, never was."""
        is_open = f"{COUNTED_MS} > greatest({BEGAN_FIELD}, {self.range.from_ms:d})"
        return f"{BEGAN_FIELD} < {self.until_ms:d} AND {is_open}"

    def counted(self, changes: Sequence[Row]) -> list[int]:
        """The views at every moment, from the changes at some steps."""
        by_step = {int(row["step"]): int(row["change"]) for row in changes}
        return list(accumulate(by_step.get(step, 0) for step in range(len(self.moments_ms))))

    def _step_of(self, at: str) -> str:
        step, first = self.step_ms, self.range.from_ms
        return f"CASE WHEN {at} <= {first:d} THEN 0 ELSE ({at} - {first:d} + {step - 1:d}) // {step:d} END"


def steps_of(within: Range, now_ms: int) -> Steps:
    """The steps of a range, as fine as some hundred moments allow."""
    return Steps(within, WIDTHS_MS.get(fitting(within), DAY_MS), min(within.to_ms, now_ms))


def read_for(within: Range, now_ms: int) -> Range:
    """The range in which views count that were open in another one."""
    return Range(within.from_ms, min(within.to_ms + _LATER_MS, max(now_ms, within.to_ms)))


def peak_of(curve: Sequence[Audience]) -> Audience | None:
    """The first of the moments with the most views; None without a moment."""
    return max(curve, key=lambda one: one.views, default=None)
