"""Quality figures of customers from sums of hourly rollups: ratios of sums, quantiles of summed histograms. Pure.

Definitions are those of `docs/view.md`; a figure without a base (no views, no watch time) is None.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.statistics.histogram import quantile

#: Start-up times by bucket of their histogram.
Startups = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class RollupSum:
    """One customer's rollups, summed over the requested hours. Times in ms, the integral in bps x ms."""

    customer_id: str
    views: int
    started: int
    startup_failures: int
    playback_failures: int
    exits_before_start: int
    #: Sums of any size: only their ratios are shown.
    watch_ms: float
    playing_ms: float
    rebuffer_ms: float
    bitrate_integral: float
    bitrate_time_ms: float


@dataclass(frozen=True, slots=True)
class Quality:
    """One row of the page's table. Fractions are 0..1."""

    customer_id: str
    views: int
    startup_ms_median: int | None
    startup_ms_p95: int | None
    #: More than one: the median and p95 mix start-up times that are measured from different moments.
    startup_sources: list[str]
    #: Where there is more than one: the same figures of each client alone.
    by_source: dict[str, "Quality"]
    #: Rebuffering / watch time, which includes start-up and seeks (Mux, rebuffer percentage). The page shows this one.
    rebuffer_fraction: float | None
    #: Rebuffering / (rebuffering + playing) (CTA-2066, rebuffering ratio).
    rebuffer_ratio: float | None
    failure_fraction: float | None
    startup_failure_fraction: float | None
    exit_before_start_fraction: float | None
    bitrate_bps: int | None


def qualities(
    sums: Iterable[RollupSum],
    startups: Mapping[str, Startups],
    sources: Mapping[str, Sequence[str]],
    by_source: Mapping[str, Mapping[str, tuple[RollupSum, Startups]]],
) -> list[Quality]:
    """The quality of each customer; `startups` counts its startup times, `sources` names their clients, `by_source` splits both."""
    found = []
    for customer in sums:
        parts = by_source.get(customer.customer_id, {})
        split = {source: _quality(part, counts, [source], {}) for source, (part, counts) in sorted(parts.items())}
        counts = startups.get(customer.customer_id, {})
        found.append(_quality(customer, counts, sources.get(customer.customer_id, ()), split))
    return found


def _quality(customer: RollupSum, startups: Startups, sources: Sequence[str], by_source: dict[str, Quality]) -> Quality:
    median, p95 = quantile(startups, 0.5), quantile(startups, 0.95)
    bitrate = _fraction(customer.bitrate_integral, customer.bitrate_time_ms)
    return Quality(
        customer_id=customer.customer_id,
        views=customer.views,
        startup_ms_median=None if median is None else round(median),
        startup_ms_p95=None if p95 is None else round(p95),
        startup_sources=list(sources),
        by_source=by_source,
        rebuffer_fraction=_fraction(customer.rebuffer_ms, customer.watch_ms),
        rebuffer_ratio=_fraction(customer.rebuffer_ms, customer.rebuffer_ms + customer.playing_ms),
        failure_fraction=_fraction(customer.playback_failures, customer.views),
        startup_failure_fraction=_fraction(customer.startup_failures, customer.views),
        exit_before_start_fraction=_fraction(customer.exits_before_start, customer.views),
        bitrate_bps=None if bitrate is None else round(bitrate),
    )


def _fraction(part: float, whole: float) -> float | None:
    return part / whole if whole else None
