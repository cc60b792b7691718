"""How long a client may be silent: longer is a gap (docs/view.md). Times are ms."""

from typing import Final

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import HEARTBEAT_INTERVALS_MAX, STEP_MS_MAX
from services.processor.applications.video_views.view.timing.clock import (
    SIGNS_MIN,
    UNKNOWN_SILENCE_MS,
    interval_ms,
)
from services.processor.applications.video_views.view.timing.clock_state import Clock

#: Silences up to this are no gap: browsers delay the timers of hidden pages to one a minute.
SILENCE_MS_MIN: Final = 90_000
#: The limit of a client that reports so many requests or more, and no heartbeats, while it plays: no player buffers for longer
#: (hls.js: `maxMaxBufferLength`, 600 s).
REQUESTS_SILENCE_MS: Final = 600_000
#: A silence is a gap beyond so many heartbeats.
SILENT_HEARTBEATS: Final = 3
#: Heartbeat intervals that make a rhythm: their lower quartile, since sleeps may be among them. None is longer than
#: `UNKNOWN_SILENCE_MS` unless the client declares it.
INTERVALS_MIN: Final = 3
#: Silences of one view that may be judged again.
UNJUDGED_MAX: Final = 8


class Unjudged(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A silence while it played that is no gap as far as the client's rhythm is known: it may be, once that is.

    With it what it would take back: the part that is a gap then, and what was known of the picture.
    """

    quiet_ms: int
    gap_ms: int
    bitrate_bps: int = 0
    is_before_content: bool = False
    #: Player size by source size; None where sizes are not known.
    upscale: float | None = None
    downscale: float = 0.0


def known_limit_ms(clock: Clock) -> int | None:
    """The longest silence by the client's rhythm after the last timed step; None where that is not known."""
    return _limit_ms(clock.declared_ms, clock.intervals)


def _limit_ms(declared_ms: int, intervals: list[int]) -> int | None:
    if declared_ms:
        return max(SILENCE_MS_MIN, SILENT_HEARTBEATS * declared_ms)
    if len(intervals) < INTERVALS_MIN:
        return None
    return max(SILENCE_MS_MIN, SILENT_HEARTBEATS * sorted(intervals)[(len(intervals) - 1) // 4])


def limit_ms(clock: Clock, at_ms: int, step: Step, *, has_witness: bool, is_waiting: bool) -> int:
    """The longest silence of this client that is no gap, before a step at this corrected time.

    `has_witness`: the playhead shows what played. `is_waiting`: the viewer waits, and no player does that for long in silence.
    """
    intervals = clock.intervals
    if step.is_heartbeat and clock.heartbeat_ms and len(intervals) < HEARTBEAT_INTERVALS_MAX:
        intervals = [*intervals, interval_ms(clock, at_ms)]
    known_ms = _limit_ms(step.heartbeat_ms or clock.declared_ms, intervals)
    if known_ms is not None:
        return known_ms
    if has_witness or is_waiting or clock.heartbeat_ms or step.is_heartbeat:
        return UNKNOWN_SILENCE_MS
    return REQUESTS_SILENCE_MS if clock.sign_count >= SIGNS_MIN else STEP_MS_MAX
