"""The scores of a view, from what its player knows: the formulas of `docs/view.md`, worked out here once more.

No simulated player reports sizes, so no view has a score of its quality.
"""

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any, Final

#: Who leaves sooner than this has not waited for a start.
_EXIT_MS_MIN: Final = 1_000


def scores(row: Mapping[str, Any]) -> dict[str, float | None]:
    """The scores of a row of the truth; None where a view has none."""
    startup = smooth = None
    if row["startup_ms"] is not None:
        startup = 8 / (8 + row["startup_ms"] / 1_000) * 100
        share = row["rebuffer_ms"] / row["watch_ms"] if row["watch_ms"] else 0
        smooth = (100 / math.sqrt(1 + (row["rebuffer_count"] / 2) ** 2) + 100 * math.exp(-10 * share)) / 2
    success = _success(row)
    of_parts = (
        None if success is None else success / 100 * _together([one for one in (startup, smooth) if one is not None])
    )
    named = {"score_startup": startup, "score_smooth": smooth, "score_success": success, "score_view": of_parts}
    return {name: None if value is None else round(value, 2) for name, value in named.items()}


def _success(row: Mapping[str, Any]) -> float | None:
    if row["playback_failed"]:
        return 0
    if row["ebvs"]:
        return 50 if row["watch_ms"] >= _EXIT_MS_MIN else None
    # An error that is no failure, before anything played: the viewer was not admitted.
    return None if row["startup_ms"] is None else 100


def _together(parts: list[float]) -> float:
    if len(parts) < 2:
        return parts[0] if parts else 100
    means = [math.sqrt(one * other) for one, other in combinations(parts, 2)]
    return sum(means) / len(means)
