"""The metrics that can be asked for, each once: name, formula over measures, unit. Pure data; `docs/view.md` has their sources.

A metric is computed from *parts* (`core.parts`): aggregates over views.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from services.query.core.parts import PARTS, VIEWER, Part
from shared.directions import RANKS, WORSE, Worse

Unit = Literal["views", "viewers", "count", "fraction", "ms", "bps", "per_minute", "score"]
Kind = Literal["sum", "ratio", "percentile", "uniques", "mean"]


@dataclass(frozen=True)
class Metric:
    """One metric. Its value follows from its parts by `value`."""

    name: str
    title: str
    unit: Unit
    kind: Kind
    #: As `docs/view.md` writes it.
    formula: str
    #: Σ numerator / Σ denominator x scale; a metric without a denominator is its numerator.
    numerator: tuple[str, ...] = ()
    denominator: tuple[str, ...] = ()
    scale: float = 1.0
    #: Of a percentile: the field of a view, and the rank 0..1.
    field: str | None = None
    rank: float = 0.0
    #: The part that counts the views on which the figure rests.
    base: str = "views"
    #: Of what is worse when it is lower and is no share: the value of one view over its fields, null where it has none; at least 0.
    of_view: str | None = None

    @property
    def worse(self) -> Worse | None:
        """Which direction is worse for viewers; None: neither."""
        return WORSE.get(self.name)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it is computed from, its base included."""
        if self.kind == "uniques":
            own = [Part(self.name, f"count(DISTINCT {VIEWER})", ("viewer_user_id", "viewer_id"), is_additive=False)]
        elif self.field is not None:
            own = [Part(self.name, f"quantile_disc({self.field}, {self.rank})", (self.field,), is_additive=False)]
        else:
            own = [PARTS[name] for name in (*self.numerator, *self.denominator)]
        return tuple(dict.fromkeys((*own, self.base_part)))

    @property
    def base_part(self) -> Part:
        """The number of views on which it rests."""
        if self.field is not None:
            return Part(f"{self.field}_known", f"count({self.field})", (self.field,))
        return PARTS[self.base]

    def value(self, parts: Mapping[str, Any]) -> float | int | None:
        """The figure; None without a base. `parts` holds at least those of `parts`."""
        if self.kind in {"percentile", "uniques"}:
            found: float | int | None = parts[self.name]
            return found
        above = sum(parts[name] for name in self.numerator)
        if not self.denominator:
            return int(above)
        below = sum(parts[name] for name in self.denominator)
        return float(above) / float(below) * self.scale if below else None

    @property
    def sql(self) -> str:
        """The same over columns that have the parts' names."""
        if self.kind in {"percentile", "uniques"}:
            return self.name
        above = " + ".join(self.numerator)
        if not self.denominator:
            return above
        return f"({above})::double / nullif({' + '.join(self.denominator)}, 0)::double * {self.scale}"


def _sum(name: str, title: str, unit: Unit, formula: str) -> Metric:
    return Metric(name, title, unit, "sum", formula, numerator=(name,))


def _share(name: str, title: str, of: str, base: str = "views") -> Metric:
    formula = f"{of} / {'V' if base == 'views' else base}"
    return Metric(name, title, "fraction", "ratio", formula, (of,), (base,), base=base)


def _mean(name: str, title: str, field: str) -> Metric:
    above, below = f"{field}_sum", f"{field}_count"
    formula = f"mean of {field}"
    return Metric(name, title, "score", "mean", formula, (above,), (below,), base=below, of_view=field)


#: Fields of a view, in ms, that have percentiles of each of `RANKS`.
MEASURED: Final[Mapping[str, str]] = {
    "startup_ms": "video start-up time",
    "content_startup_ms": "content start-up time",
    "aggregate_startup_ms": "aggregate start-up time",
    "player_startup_ms": "player start-up time",
    "page_load_ms": "page load time",
    "rebuffer_ms": "rebuffer duration",
    "live_latency_ms_avg": "live latency",
    "watch_ms": "watch time of a view",
}
#: `watch_ms` alone is the sum.
_PERCENTILE_NAMES: Final = {"live_latency_ms_avg": "live_latency_ms", "watch_ms": "view_watch_ms"}


def _percentiles() -> list[Metric]:
    return [
        Metric(
            f"{_PERCENTILE_NAMES.get(field, field)}_p{rank}",
            f"{title}, {'median' if rank == 50 else f'p{rank}'}",
            "ms",
            "percentile",
            f"{'median' if rank == 50 else f'p{rank}'} of {field}",
            field=field,
            rank=rank / 100,
        )
        for field, title in MEASURED.items()
        for rank in RANKS
    ]


_ALL: Final = (
    _sum("views", "views", "views", "number of views, without those that were taken back"),
    Metric("viewers", "viewers", "viewers", "uniques", "distinct viewers that have an id"),
    _sum("started", "views with a first frame", "views", "views that played"),
    _share("exit_before_start_fraction", "exits before video start", "exits_before_start"),
    _share("startup_failure_fraction", "video start-up failures", "startup_failures"),
    _share("playback_failure_fraction", "playback failures", "playback_failures"),
    _share("view_dropped_fraction", "views dropped", "views_dropped"),
    _sum("exits_before_start", "exits before video start, number", "views", "Σ ebvs"),
    _sum("startup_failures", "video start-up failures, number", "views", "Σ startup_failed"),
    _sum("playback_failures", "playback failures, number", "views", "Σ playback_failed"),
    _sum("views_dropped", "views dropped, number", "views", "Σ view_dropped"),
    _sum("watch_ms", "watch time", "ms", "Σ watch_ms"),
    _sum("playing_ms", "playing time", "ms", "Σ playing_ms"),
    _sum("rebuffer_ms", "rebuffer duration", "ms", "Σ rebuffer_ms"),
    _sum("rebuffer_count", "rebuffer events", "count", "Σ rebuffer_count"),
    _sum("seek_count", "seeks", "count", "Σ seek_count"),
    Metric(
        "rebuffer_fraction",
        "rebuffer percentage",
        "fraction",
        "ratio",
        "Σ rebuffer_ms / Σ watch_ms",
        ("rebuffer_ms",),
        ("watch_ms",),
    ),
    Metric(
        "rebuffer_ratio",
        "rebuffering ratio",
        "fraction",
        "ratio",
        "Σ rebuffer_ms / Σ (rebuffer_ms + playing_ms)",
        ("rebuffer_ms",),
        ("rebuffer_ms", "playing_ms"),
    ),
    Metric(
        "rebuffers_per_minute",
        "rebuffer frequency",
        "per_minute",
        "ratio",
        "Σ rebuffer_count / (Σ watch_ms / 60,000)",
        ("rebuffer_count",),
        ("watch_ms",),
        scale=60_000.0,
    ),
    Metric(
        "seek_latency_ms",
        "seek latency",
        "ms",
        "ratio",
        "Σ seek_ms / Σ seek_count",
        ("seek_ms",),
        ("seek_count",),
    ),
    Metric(
        "bitrate_bps",
        "weighted average bitrate",
        "bps",
        "ratio",
        "Σ bitrate_integral / Σ bitrate_time_ms",
        ("bitrate_integral",),
        ("bitrate_time_ms",),
        of_view="avg_bitrate_bps",
    ),
    Metric(
        "upscale_fraction",
        "upscale percentage",
        "fraction",
        "ratio",
        "Σ upscale_integral / Σ scale_time_ms",
        ("upscale_integral",),
        ("scale_time_ms",),
        base="scale_time_ms_count",
    ),
    Metric(
        "downscale_fraction",
        "downscale percentage",
        "fraction",
        "ratio",
        "Σ downscale_integral / Σ scale_time_ms",
        ("downscale_integral",),
        ("scale_time_ms",),
        base="scale_time_ms_count",
    ),
    Metric(
        "request_latency_ms",
        "request latency",
        "ms",
        "ratio",
        "Σ ttfb_sum_ms / Σ (req_count - req_failed - req_canceled)",
        ("ttfb_sum_ms",),
        ("requests_answered",),
        base="ttfb_sum_ms_count",
    ),
    Metric(
        "request_throughput_bps",
        "request throughput",
        "bps",
        "ratio",
        "8,000 · Σ req_bytes / Σ req_time_ms",
        ("req_bytes",),
        ("req_time_ms",),
        scale=8_000.0,
        base="req_bytes_count",
        of_view="CASE WHEN req_time_ms > 0 THEN 8000 * (req_bytes / req_time_ms) END",
    ),
    _sum("dropped_frames", "dropped frames", "count", "Σ dropped_frames"),
    Metric(
        "dropped_frames_per_minute",
        "dropped frame frequency",
        "per_minute",
        "ratio",
        "Σ dropped_frames / (Σ playing_ms / 60,000), of views whose dropped frames are known",
        ("dropped_frames",),
        ("dropped_frames_time_ms",),
        scale=60_000.0,
        base="dropped_frames_count",
    ),
    _mean("experience_score", "experience", "score_view"),
    _mean("startup_score", "start-up score", "score_startup"),
    _mean("smoothness_score", "smoothness score", "score_smooth"),
    _mean("quality_score", "quality score", "score_quality"),
    _mean("success_score", "success score", "score_success"),
    Metric(
        "spi_good_fraction",
        "experience, good views",
        "fraction",
        "ratio",
        "spi_good / views where it is known",
        ("spi_good_views",),
        ("spi_known_views",),
        base="spi_known_views",
    ),
    *_percentiles(),
)

#: Every metric by name.
METRICS: Final[Mapping[str, Metric]] = {metric.name: metric for metric in _ALL}
