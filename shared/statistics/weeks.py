"""Hours of the week, and which of them tell what is usual in one. Hours are UTC's; hour 0 is Monday's first."""

from collections.abc import Callable
from typing import Final, Literal

Season = Literal["hour_of_week", "hour_of_day"]

HOUR_MS: Final = 3_600_000
HOURS_OF_DAY: Final = 24
HOURS_OF_WEEK: Final = 7 * HOURS_OF_DAY
#: 1970 began on a Thursday.
_FIRST_HOUR: Final = 3 * HOURS_OF_DAY


def hour_of_week(at_ms: int) -> int:
    """0 to 167, of a time in ms since 1970."""
    return (at_ms // HOUR_MS + _FIRST_HOUR) % HOURS_OF_WEEK


def hours_like(hour: int, known: Callable[[int], int], minimum: int) -> tuple[Season, list[int]] | None:
    """The hours of the week that tell what is usual in `hour`; None while too little is known.

    `known` is how much is known of an hour. With at least `minimum` it is that hour alone, else the same hour of all days,
    where these have as much together.
    """
    if known(hour) >= minimum:
        return "hour_of_week", [hour]
    same = list(range(hour % HOURS_OF_DAY, HOURS_OF_WEEK, HOURS_OF_DAY))
    return ("hour_of_day", same) if sum(map(known, same)) >= minimum else None
