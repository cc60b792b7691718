"""The settings that make the demo short, and their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from services.finalizer.settings import FinalizerSettings
from services.processor.applications.video_views.settings import VideoViewsSettings

#: A demo of two minutes cannot wait an hour for a paused viewer. Silence must stay longer than the ten seconds between a
#: player's batches.
FINISH_MS: Final[Mapping[str, int]] = {
    "finish_clean_ms": 2_000,
    "finish_ended_ms": 4_000,
    "finish_silent_ms": 12_000,
    "finish_paused_ms": 20_000,
}
TRIGGER_SECONDS: Final = 3


@dataclass(frozen=True)
class Shortened:
    """A setting that the demo changes, as an operator would: its variable, the demo's value and the default."""

    variable: str
    value: str
    default: str


def shortened() -> list[Shortened]:
    """The settings that make the demo short, for its output."""
    finish = [
        Shortened(VideoViewsSettings.variable(field), f"{value}", f"{VideoViewsSettings.model_fields[field].default}")
        for field, value in FINISH_MS.items()
    ]
    triggers = [
        Shortened(
            FinalizerSettings.variable(field),
            f"{TRIGGER_SECONDS}",
            f"{FinalizerSettings.model_fields[field].default:g}",
        )
        for field in ("trigger_seconds", "raw_trigger_seconds", "rollup_seconds")
    ]
    return [*finish, *triggers]
