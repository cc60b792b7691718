"""Thresholds from which figures are good or bad, in the direction of their metric."""

import pytest

from services.accounts.core.thresholds import DEFAULTS, METRICS, Metric, Threshold, ThresholdWrong, checked, effective
from services.query.core.metrics import METRICS as OF_VIEWS
from shared.directions import WORSE_WHEN_LOWER, worse_when

#: Figures of viewers of this moment, which are no metrics of views.
LIVE = {"live_rebuffering_fraction", "live_bitrate_bps"}


def test_each_judged_metric_is_in_the_catalogue_and_can_be_worse() -> None:
    assert set(METRICS) - LIVE <= OF_VIEWS.keys()
    for name in set(METRICS) - LIVE:
        assert OF_VIEWS[name].worse == worse_when(name), name
    # All that are worse when they are lower can be judged, and each name there is one.
    assert set(METRICS) >= WORSE_WHEN_LOWER
    assert {one.name for one in OF_VIEWS.values() if one.worse == "lower"} == WORSE_WHEN_LOWER - LIVE


def test_thresholds_as_installed_are_ones_that_may_be_chosen() -> None:
    for metric, threshold in DEFAULTS.items():
        assert checked(metric, threshold) == threshold
        assert threshold.n >= 10, "one failure of two views is no pattern"
    found = effective([], "acme")
    assert found["experience_score"] == (Threshold(80, 60, 30), "default")
    # What is good of a bitrate nobody can say for all.
    assert found["bitrate_bps"] == (None, "default")
    chosen = effective([("", "bitrate_bps", Threshold(4e6, 1e6, 10))], "acme")
    assert chosen["bitrate_bps"] == (Threshold(4e6, 1e6, 10), "organisation")


@pytest.mark.parametrize(
    ("metric", "good", "bad", "is_right"),
    [
        ("rebuffer_fraction", 0.01, 0.02, True),
        ("rebuffer_fraction", 0.02, 0.01, False),
        ("rebuffer_fraction", 0.02, 1.1, False),
        ("bitrate_bps", 4e6, 1e6, True),
        ("bitrate_bps", 1e6, 4e6, False),
        ("bitrate_bps", 2e6, 2e6, True),
        ("live_bitrate_bps", 1e6, 4e6, False),
        ("experience_score", 100, 60, True),
        ("experience_score", 101, 60, False),
        ("spi_good_fraction", 1.0, 0.8, True),
        ("spi_good_fraction", 1.1, 0.8, False),
        ("spi_good_fraction", 0.8, 0.9, False),
    ],
)
def test_good_and_bad_stand_as_the_metric_is_worse(metric: Metric, good: float, bad: float, *, is_right: bool) -> None:
    threshold = Threshold(good, bad, 1)
    if is_right:
        assert checked(metric, threshold) == threshold
        return
    with pytest.raises(ThresholdWrong):
        checked(metric, threshold)
