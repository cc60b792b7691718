"""The oracle's scores: the formulas of Mux's public guides, and our own of `docs/view.md`, section Scores."""

import math
from itertools import combinations
from typing import Any, Final

SECOND_MS: Final = 1_000
#: Defaults of `VIDEO_VIEWS_GOOD_…`.
STARTUP_MS_MAX: Final = 4_000
REBUFFER_SHARE_MAX: Final = 0.02
BITRATE_BPS_MIN: Final = 500_000
EXIT_WAIT_MS_MIN: Final = 2_000


def scores(row: dict[str, Any]) -> dict[str, Any]:
    """The scores of a row, 0 to 100; None where a formula has no value."""
    startup, watch_ms = row["startup_ms"], row["watch_ms"]
    share = min(1.0, row["rebuffer_ms"] / watch_ms) if watch_ms else 0.0
    kept_out = row["business_exception"] and not row["played"]
    success: float | None = 0.0 if row["playback_failed"] else 50.0 if row["ebvs"] else 100.0
    if kept_out or (row["ebvs"] and watch_ms < SECOND_MS):
        success = None
    smooth = (100 / math.sqrt(1 + (row["rebuffer_count"] / 2) ** 2) + 100 * math.exp(-10 * share)) / 2
    parts = {
        "score_startup": None if startup is None else 8 / (8 + startup / SECOND_MS) * 100,
        "score_smooth": smooth if row["played"] else None,
        "score_quality": _quality(row),
    }
    known = [part for part in parts.values() if part is not None]
    pairs = [math.sqrt(one * other) for one, other in combinations(known, 2)]
    mean = sum(pairs) / len(pairs) if pairs else known[0] if known else 100.0
    view = None if success is None else success / 100 * mean
    good: bool | None = None
    unknown = startup is None and not (row["ebvs"] or row["playback_failed"])
    if not unknown and not (row["ebvs"] and watch_ms < EXIT_WAIT_MS_MIN):
        slow = startup is not None and startup > STARTUP_MS_MAX
        poor = row["avg_bitrate_bps"] is not None and row["avg_bitrate_bps"] < BITRATE_BPS_MIN
        good = not (row["playback_failed"] or row["ebvs"] or slow or poor or share > REBUFFER_SHARE_MAX)
    return {**parts, "score_success": success, "score_view": view, "spi_good": good, "score_version": 1}


def _quality(row: dict[str, Any]) -> float | None:
    if not row.get("scale_time_ms") or not row["played"]:
        return None
    mean = (row["upscale_integral"] or 0.0) / row["scale_time_ms"]
    return 100 * math.exp(-0.33 * (0.15 * (row["max_upscale"] or 0.0) + 0.85 * mean))
