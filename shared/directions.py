"""In which direction figures are worse for viewers: metrics of the API, and figures of live viewers that have the same meaning."""

from typing import Final, Literal

#: The side on which a figure is worse.
Worse = Literal["higher", "lower"]

#: Every other figure that can be worse is so when it is higher.
WORSE_WHEN_LOWER: Final = frozenset(
    {
        "bitrate_bps",
        "live_bitrate_bps",
        "request_throughput_bps",
        "experience_score",
        "startup_score",
        "smoothness_score",
        "quality_score",
        "success_score",
        "spi_good_fraction",
    }
)


def worse_when(metric: str) -> Worse:
    """The direction in which a metric that can be worse is so."""
    return "lower" if metric in WORSE_WHEN_LOWER else "higher"
