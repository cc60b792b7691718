"""The rules by which a view is over, and how long it is remembered: the settings of `finish`. Times in ms."""

from dataclasses import dataclass
from typing import Final

_SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * MINUTE_MS


@dataclass(frozen=True)
class FinishRules:
    """How long after its last beacon a view finishes, and how long it is remembered after that."""

    #: After the player was closed: the second of its two closing requests may still come.
    clean_ms: int = MINUTE_MS
    #: After the video's end, or a fatal error, if the player was not closed.
    ended_ms: int = 5 * MINUTE_MS
    #: While beacons should come: starting, playing, rebuffering, seeking.
    silent_ms: int = 5 * MINUTE_MS
    #: While silence is normal: paused, or not begun yet.
    paused_ms: int = _HOUR_MS
    #: While a view goes on, its row is written each time that this has passed since its first beacon.
    view_max_ms: int = 24 * _HOUR_MS
    #: After the finish a beacon still reopens the view for this long ...
    lateness_ms: int = _HOUR_MS
    #: ... and then it is known as closed for this long.
    closed_ms: int = 24 * _HOUR_MS
    #: The live gauges stop counting a view without beacons after this time (the slowest heartbeat is 30 s).
    live_silence_ms: int = 75 * _SECOND_MS
