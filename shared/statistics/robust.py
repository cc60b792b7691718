"""Deviations that single outliers do not move.

Source: B. Iglewicz and D. Hoaglin, How to Detect and Handle Outliers (1993): the modified z-score 0.6745 (x - median) / MAD.
"""

from collections.abc import Sequence
from statistics import median
from typing import Final

_NORMAL: Final = 0.6745


def deviation(values: Sequence[float]) -> float:
    """The standard deviation, estimated from the median distance from the median."""
    middle = median(values)
    return median(abs(one - middle) for one in values) / _NORMAL


def modified_score(value: float, past: Sequence[float], deviation_min: float) -> float:
    """How many deviations `value` is from the median of `past`; a deviation is at least `deviation_min`."""
    return (value - median(past)) / max(deviation(past), deviation_min)
