"""In which direction figures are worse for viewers: metrics of the API, and figures of live viewers that have the same meaning."""

from collections.abc import Mapping
from typing import Final, Literal

#: The side on which a figure is worse.
Worse = Literal["higher", "lower"]

#: Ranks of percentiles that have a name, as `startup_ms_p95`.
RANKS: Final = (50, 75, 90, 95, 99)

_HIGHER: Final = (
    "playback_failure_fraction",
    "startup_failure_fraction",
    "exit_before_start_fraction",
    "view_dropped_fraction",
    "rebuffer_fraction",
    "rebuffer_ratio",
    "upscale_fraction",
    "rebuffers_per_minute",
    "dropped_frames_per_minute",
    "seek_latency_ms",
    "request_latency_ms",
    "playback_failures",
    "startup_failures",
    "exits_before_start",
    "views_dropped",
    "rebuffer_ms",
    "rebuffer_count",
    "dropped_frames",
    "live_rebuffering_fraction",
)
#: Each percentile of these is worse when it is higher.
_HIGHER_BY_RANK: Final = (
    "startup_ms",
    "content_startup_ms",
    "aggregate_startup_ms",
    "player_startup_ms",
    "page_load_ms",
    "rebuffer_ms",
    "live_latency_ms",
)
_LOWER: Final = (
    "spi_good_fraction",
    "bitrate_bps",
    "request_throughput_bps",
    "experience_score",
    "startup_score",
    "smoothness_score",
    "quality_score",
    "success_score",
    "live_bitrate_bps",
)

#: All that can be worse, and when each is so. A metric that is not named is neither good nor bad for viewers. `live_…`: of viewers
#: of this moment; those that wait, of all.
WORSE: Final[Mapping[str, Worse]] = {
    **dict.fromkeys(_HIGHER, "higher"),
    **dict.fromkeys((f"{name}_p{rank}" for name in _HIGHER_BY_RANK for rank in RANKS), "higher"),
    **dict.fromkeys(_LOWER, "lower"),
}
