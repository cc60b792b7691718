"""The default figures from which a metric is good or bad. Pure.

A figure is judged relative to n, the views on which it rests: the page does that (`static/core/figures.js`).
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, get_args

#: Metrics that are judged; of each, more is worse. `live_rebuffering_fraction`: viewers of this moment that wait, of all.
Metric = Literal[
    "rebuffer_fraction",
    "playback_failure_fraction",
    "startup_failure_fraction",
    "exit_before_start_fraction",
    "startup_ms_p50",
    "startup_ms_p95",
    "live_rebuffering_fraction",
]
METRICS: Final[tuple[Metric, ...]] = get_args(Metric)
N_MAX: Final = 1_000_000
#: Whose a threshold is, the narrowest first.
Origin = Literal["customer", "organisation", "default"]


class Threshold(NamedTuple):
    """Up to `good` a figure is good, above `bad` it is bad; of fewer than `n` views it is neither."""

    good: float
    bad: float
    n: int


class ThresholdWrong(ValueError):
    """No threshold that the metric can have."""


#: Chosen here. Shares of views need no n of their own: their interval says how sure they are.
DEFAULTS: Final[Mapping[Metric, Threshold]] = {
    "rebuffer_fraction": Threshold(0.005, 0.02, 30),
    "playback_failure_fraction": Threshold(0.005, 0.02, 1),
    "startup_failure_fraction": Threshold(0.005, 0.02, 1),
    "exit_before_start_fraction": Threshold(0.03, 0.08, 1),
    "startup_ms_p50": Threshold(1_500, 3_000, 30),
    "startup_ms_p95": Threshold(4_000, 8_000, 100),
    "live_rebuffering_fraction": Threshold(0.02, 0.1, 10),
}


def checked(metric: Metric, threshold: Threshold) -> Threshold:
    """The same. Raises `ThresholdWrong`."""
    if threshold.good > threshold.bad:
        raise ThresholdWrong("good is at most bad")
    if metric.endswith("_fraction") and threshold.bad > 1:
        raise ThresholdWrong("a share is at most 1")
    return threshold


def effective(chosen: Iterable[tuple[str, str, Threshold]], customer_id: str) -> dict[Metric, tuple[Threshold, Origin]]:
    """The thresholds in force for a customer (empty: for all together), from rows of customer, metric and threshold."""
    by_place = {(customer, metric): threshold for customer, metric, threshold in chosen}
    found: dict[Metric, tuple[Threshold, Origin]] = {}
    for metric in METRICS:
        if customer_id and (own := by_place.get((customer_id, metric))):
            found[metric] = own, "customer"
        elif general := by_place.get(("", metric)):
            found[metric] = general, "organisation"
        else:
            found[metric] = DEFAULTS[metric], "default"
    return found
