"""How many players there are at each second of a load test. Pure: a shape is a function of time."""

import math
from collections.abc import Mapping
from typing import Final, Literal, get_args

ShapeName = Literal["kickoff", "ads", "soak", "ramp"]
SHAPES: Final[tuple[ShapeName, ...]] = get_args(ShapeName)

MEANING: Final[Mapping[ShapeName, str]] = {
    "kickoff": "a tenth of the viewers wait; all come within seconds, stay, and a quarter is left at the end",
    "ads": "in every fifth of the run two thirds leave for an ad break, and come back at once",
    "soak": "the same number all the time",
    "ramp": "more and more, in ten steps, to find where it saturates",
}
#: Of the run: when a match begins, and when it is over.
_KICKOFF: Final = 0.25
_FINAL_WHISTLE: Final = 0.8


def players_at(shape: ShapeName, second: float, *, viewers: int, seconds: int) -> int | None:
    """How many play at this second of the run; None when it is over."""
    if second >= seconds:
        return None
    part = second / seconds
    match shape:
        case "kickoff":
            share = 0.1 if part < _KICKOFF else 1.0 if part < _FINAL_WHISTLE else 0.25
        case "ads":
            # The last third of each fifth is the break.
            share = 1.0 if (part * 5) % 1 < 2 / 3 else 1 / 3
        case "soak":
            share = 1.0
        case "ramp":
            share = (math.floor(part * 10) + 1) / 10
    return max(1, round(viewers * share))
