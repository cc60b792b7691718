"""Scores of a view, by published formulas.

Startup, smoothness, quality and success are those of Mux's public guides to viewer experience (wire formats as of 2026-04).
The overall score is our own: Mux does not publish its trade-off function. The verdict "good" follows Conviva's streaming
performance index: a view is good when it passes every threshold. Scores are 0..100; None where the view has no such score.
"""

import math
from dataclasses import dataclass
from typing import Final

import msgspec

#: Raised with any change of a formula, so that rows of two versions are never averaged unseen.
SCORE_VERSION: Final = 1
#: Who leaves sooner did not wait: no success score.
EXIT_MS_MIN: Final = 1_000


@dataclass(frozen=True)
class GoodRules:
    """What a good view is. Fractions 0..1."""

    startup_ms_max: int = 4_000
    rebuffer_share_max: float = 0.02
    bitrate_bps_min: int = 500_000
    #: An exit before the first frame after so long a wait is bad; a sooner one is neither.
    exit_wait_ms_min: int = 2_000


class Measures(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What scores are made of; fields as in the view's row."""

    startup_ms: int | None
    #: Whether anything played; its start-up time may be unknown all the same.
    has_started: bool
    watch_ms: int
    rebuffer_count: int
    rebuffer_ms: int
    playback_failed: bool
    ebvs: bool
    avg_bitrate_bps: int | None = None
    upscale_integral: float | None = None
    scale_time_ms: int | None = None
    max_upscale: float | None = None


class Scores(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The scores of one view; fields as in its row."""

    score_version: int = SCORE_VERSION
    score_startup: float | None = None
    score_smooth: float | None = None
    score_quality: float | None = None
    score_success: float | None = None
    score_view: float | None = None
    spi_good: bool | None = None


def startup_score(startup_ms: int) -> float:
    """`8 / (8 + s) * 100` with the startup time in seconds (Mux, startup time score)."""
    return 8 / (8 + startup_ms / 1000) * 100


def smoothness_score(rebuffer_count: int, rebuffer_ms: int, watch_ms: int) -> float:
    """The mean of `100 / sqrt(1 + (count / 2)^2)` and `100 * e^(-10 * share)` (Mux, smoothness score)."""
    by_count = 100 / math.sqrt(1 + (rebuffer_count / 2) ** 2)
    by_share = 100 * math.exp(-10 * min(rebuffer_ms / watch_ms, 1.0)) if watch_ms else 100.0
    return (by_count + by_share) / 2


def quality_score(max_upscale: float, mean_upscale: float) -> float:
    """`100 * e^(-0.33 * (0.15 * max + 0.85 * mean))` of the upscaling as a ratio, 0 for none (Mux, video quality score)."""
    return 100 * math.exp(-0.33 * (0.15 * max_upscale + 0.85 * mean_upscale))


def success_score(*, playback_failed: bool, ebvs: bool, has_started: bool, waited_ms: int) -> float | None:
    """100; 50 for an exit before the first frame, none for one within a second; 0 for a failure (Mux, playback success).

    None also for what neither started nor failed nor was left: a business exception kept it from the viewer.
    """
    if playback_failed:
        return 0.0
    if ebvs:
        return 50.0 if waited_ms >= EXIT_MS_MIN else None
    return 100.0 if has_started else None


def overall_score(success: float, parts: list[float]) -> float:
    """Success (as a fraction) times the mean of the pairwise geometric means of the other scores: our own combination.

    With two other scores it is their geometric mean, with one that score, with none success alone.
    """
    pairs = [math.sqrt(a * b) for at, a in enumerate(parts) for b in parts[at + 1 :]] or parts or [100.0]
    return success / 100 * sum(pairs) / len(pairs)


def is_good(measures: Measures, rules: GoodRules) -> bool | None:
    """Whether the view passes every threshold; None for a viewer who left, or was kept out, before it showed (Conviva, SPI)."""
    if measures.playback_failed:
        return False
    if measures.ebvs:
        return False if measures.watch_ms >= rules.exit_wait_ms_min else None
    if measures.startup_ms is None:
        return None
    return (
        measures.startup_ms <= rules.startup_ms_max
        and measures.rebuffer_ms <= rules.rebuffer_share_max * measures.watch_ms
        and (measures.avg_bitrate_bps is None or measures.avg_bitrate_bps >= rules.bitrate_bps_min)
    )


def scores(measures: Measures, rules: GoodRules) -> Scores:
    """All scores of a view. Exits before the first frame have no startup, smoothness or quality score."""
    startup = smooth = quality = None
    if not measures.ebvs:
        if measures.startup_ms is not None:
            startup = startup_score(measures.startup_ms)
        if measures.has_started:
            smooth = smoothness_score(measures.rebuffer_count, measures.rebuffer_ms, measures.watch_ms)
        if measures.scale_time_ms and measures.upscale_integral is not None:
            mean = measures.upscale_integral / measures.scale_time_ms
            quality = quality_score(measures.max_upscale or 0.0, mean)
    success = success_score(
        playback_failed=measures.playback_failed,
        ebvs=measures.ebvs,
        has_started=measures.has_started,
        waited_ms=measures.watch_ms,
    )
    parts = [part for part in (startup, smooth, quality) if part is not None]
    return Scores(
        score_startup=_rounded(startup),
        score_smooth=_rounded(smooth),
        score_quality=_rounded(quality),
        score_success=success,
        score_view=None if success is None else _rounded(overall_score(success, parts)),
        spi_good=is_good(measures, rules),
    )


def _rounded(score: float | None) -> float | None:
    # A hundredth of a point says more than any view can; and sums of rows stay the same on every machine.
    return None if score is None else round(score, 2)
