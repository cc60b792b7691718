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
#: Of the finalizer, by its setting. What the page shows comes from Postgres before a batch lands; more batches of a few views would
#: take a core for as long as the demo is up.
TRIGGER_SECONDS: Final[Mapping[str, int]] = {"trigger_seconds": 10, "raw_trigger_seconds": 30, "rollup_seconds": 45}


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
    of_finalizer = [
        Shortened(variable, value, f"{FinalizerSettings.model_fields[field].default:g}")
        for field, (variable, value) in zip(TRIGGER_SECONDS, triggers().items(), strict=True)
    ]
    return [*finish, *of_finalizer]


def triggers() -> dict[str, str]:
    """The environment of the demo's finalizer: its triggers."""
    return {FinalizerSettings.variable(field): f"{seconds}" for field, seconds in TRIGGER_SECONDS.items()}
