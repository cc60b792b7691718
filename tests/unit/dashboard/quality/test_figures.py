"""Ratios of sums and quantiles of histograms."""

import pytest

from services.dashboard.quality.figures import RollupSum, qualities
from shared.statistics.histogram import bucket_of


def rollup(**figures: int) -> RollupSum:
    zeros = dict.fromkeys(
        (
            "views",
            "started",
            "startup_failures",
            "playback_failures",
            "exits_before_start",
            "watch_ms",
            "playing_ms",
            "rebuffer_ms",
            "bitrate_integral",
            "bitrate_time_ms",
        ),
        0,
    )
    return RollupSum(customer_id="acme", **(zeros | figures))


def test_figures_are_ratios_of_sums() -> None:
    figures = rollup(
        views=200,
        startup_failures=2,
        playback_failures=10,
        exits_before_start=4,
        watch_ms=1_000_000,
        playing_ms=735_000,
        rebuffer_ms=15_000,
        bitrate_integral=3_000_000 * 500,
        bitrate_time_ms=500,
    )
    (quality,) = qualities([figures], {}, {}, {})
    assert quality.views == 200
    # Of the watch time as Mux counts, of stalls and playing as CTA-2066 does.
    assert quality.rebuffer_fraction == 0.015
    assert quality.rebuffer_ratio == 0.02
    assert quality.failure_fraction == 0.05
    assert quality.startup_failure_fraction == 0.01
    assert quality.exit_before_start_fraction == 0.02
    assert quality.bitrate_bps == 3_000_000


def test_what_has_no_base_is_unknown_and_not_zero() -> None:
    (quality,) = qualities([rollup()], {}, {}, {})
    assert quality.rebuffer_fraction is None
    assert quality.rebuffer_ratio is None
    assert quality.failure_fraction is None
    assert quality.bitrate_bps is None
    assert quality.startup_ms_median is None


def test_the_startup_has_its_median_and_95th_percentile() -> None:
    startups = {bucket_of(1_000): 18, bucket_of(5_000): 2}
    (quality,) = qualities([rollup(views=20)], {"acme": startups}, {"acme": ["mux"]}, {})
    assert (quality.startup_sources, quality.by_source) == (["mux"], {})
    assert quality.startup_ms_median == pytest.approx(1_000, rel=0.01)
    assert quality.startup_ms_p95 == pytest.approx(5_000, rel=0.01)


def test_a_median_of_several_clients_is_split_by_client() -> None:
    parts = {
        "mux": (rollup(views=18, watch_ms=900, rebuffer_ms=9), {bucket_of(10): 18}),
        "cmcd": (rollup(views=2, watch_ms=100), {bucket_of(500): 2}),
    }
    both = {bucket_of(10): 18, bucket_of(500): 2}
    (quality,) = qualities([rollup(views=20)], {"acme": both}, {"acme": ["cmcd", "mux"]}, {"acme": parts})
    assert quality.startup_sources == ["cmcd", "mux"]
    assert [
        (source, one.views, one.startup_ms_median, one.rebuffer_fraction) for source, one in quality.by_source.items()
    ] == [("cmcd", 2, 497, 0.0), ("mux", 18, 10, 0.01)]
