"""The default figures from which a metric is good or bad. Pure.

A figure is judged relative to n, the views on which it rests: the page does that (`static/core/figures/figures.js`).
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from shared.directions import WORSE

#: Every figure that can be worse can be judged.
METRICS: Final = tuple(WORSE)
if TYPE_CHECKING:
    Metric = str
else:
    Metric = Literal[METRICS]
N_MAX: Final = 1_000_000
#: Whose a threshold is, the narrowest first.
Origin = Literal["customer", "organisation", "default"]


class Threshold(NamedTuple):
    """Up to `good` a figure is good, above `bad` it is bad; of fewer than `n` views it is neither.

    Of a metric that is worse when it is lower: from `good` on it is good, below `bad` bad.
    """

    good: float
    bad: float
    n: int


class ThresholdWrong(ValueError):
    """No threshold that the metric can have."""


#: Chosen here. The interval of a share of views says how sure it is; one failure of two views is beyond it, and still no pattern.
#: Other metrics are not judged without a choice: what is good of a bitrate or a throughput depends on the videos and screens, of a
#: total on how long the range is, and parts of a score are no verdict.
DEFAULTS: Final[Mapping[Metric, Threshold]] = {
    "rebuffer_fraction": Threshold(0.005, 0.02, 30),
    "playback_failure_fraction": Threshold(0.005, 0.02, 20),
    "startup_failure_fraction": Threshold(0.005, 0.02, 20),
    "exit_before_start_fraction": Threshold(0.03, 0.08, 20),
    "startup_ms_p50": Threshold(1_500, 3_000, 30),
    "startup_ms_p95": Threshold(4_000, 8_000, 100),
    "experience_score": Threshold(80, 60, 30),
    "live_rebuffering_fraction": Threshold(0.02, 0.1, 10),
}


#: By the end of a metric's name, the largest figure that it can be.
_LARGEST: Final = {"_fraction": (1, "a share"), "_ratio": (1, "a share"), "_score": (100, "a score")}
#: A picture may be drawn more than twice as large as it is.
_UNBOUNDED: Final = "upscale_fraction"


def checked(metric: Metric, threshold: Threshold) -> Threshold:
    """The same. Raises `ThresholdWrong`."""
    if WORSE[metric] == "higher" and threshold.good > threshold.bad:
        raise ThresholdWrong("good is at most bad: more is worse")
    if WORSE[metric] == "lower" and threshold.good < threshold.bad:
        raise ThresholdWrong("good is at least bad: less is worse")
    for end, (largest, name) in _LARGEST.items():
        if metric.endswith(end) and metric != _UNBOUNDED and max(threshold.good, threshold.bad) > largest:
            raise ThresholdWrong(f"{name} is at most {largest}")
    return threshold


def effective(
    chosen: Iterable[tuple[str, str, Threshold]], customer_id: str
) -> dict[Metric, tuple[Threshold | None, Origin]]:
    """The thresholds in force for a customer (empty: for all together), from rows of customer, metric and threshold.

    None: the metric is not judged.
    """
    by_place = {(customer, metric): threshold for customer, metric, threshold in chosen}
    found: dict[Metric, tuple[Threshold | None, Origin]] = {}
    for metric in METRICS:
        if customer_id and (own := by_place.get((customer_id, metric))):
            found[metric] = own, "customer"
        elif general := by_place.get(("", metric)):
            found[metric] = general, "organisation"
        else:
            found[metric] = DEFAULTS.get(metric), "default"
    return found
