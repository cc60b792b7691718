"""Thresholds from which figures are good or bad, in the direction of their metric."""

import pytest

from services.accounts.core.thresholds import DEFAULTS, METRICS, Metric, Threshold, ThresholdWrong, checked, effective
from services.query.core.metrics import METRICS as OF_VIEWS

#: Figures of viewers of this moment, which are no metrics of views.
LIVE = {"live_rebuffering_fraction", "live_bitrate_bps"}


def test_each_metric_that_can_be_worse_can_be_judged_and_no_other() -> None:
    assert set(METRICS) - LIVE == {one.name for one in OF_VIEWS.values() if one.worse is not None}
    # Percentiles, means and shares that have no threshold as installed are among them.
    assert {"startup_ms_p99", "live_latency_ms_p75", "request_latency_ms", "view_dropped_fraction"} <= set(METRICS)


def test_what_is_neither_good_nor_bad_for_viewers_is_so_on_purpose() -> None:
    """A new metric is one of these, or has a direction in `shared.directions`."""
    neither = {one.name for one in OF_VIEWS.values() if one.worse is None and one.field != "watch_ms"}
    assert neither == {"views", "viewers", "started", "watch_ms", "playing_ms", "seek_count", "downscale_fraction"}


def test_thresholds_as_installed_are_ones_that_may_be_chosen() -> None:
    for metric, threshold in DEFAULTS.items():
        assert checked(metric, threshold) == threshold
        assert threshold.n >= 10, "one failure of two views is no pattern"
    found = effective([], "acme")
    assert found["experience_score"] == (Threshold(80, 60, 30), "default")
    # What is good of a bitrate nobody can say for all.
    assert found["bitrate_bps"] == (None, "default")
    assert {name for name, (threshold, _) in found.items() if threshold is not None} == set(DEFAULTS)
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
        ("startup_ms_p99", 4_000, 9_000, True),
        ("startup_ms_p99", 9_000, 4_000, False),
        ("rebuffer_ratio", 0.02, 1.1, False),
        ("upscale_fraction", 0.5, 1.5, True),
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
