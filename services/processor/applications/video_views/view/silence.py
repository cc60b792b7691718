"""How long a client may be silent: longer is a gap (docs/view.md). Times are ms."""

from typing import Final

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import HEARTBEAT_INTERVALS_MAX, STEP_MS_MAX
from services.processor.applications.video_views.view.clock import SIGNS_MIN, UNKNOWN_SILENCE_MS, Clock, interval_ms

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


def limit_ms(clock: Clock, at_ms: int, step: Step, *, has_witness: bool, is_waiting: bool) -> int:
    """The longest silence of this client that is no gap, before a step at this corrected time.

    `has_witness`: the playhead shows what played. `is_waiting`: the viewer waits, and no player does that for long in silence.
    """
    declared_ms = step.heartbeat_ms or clock.declared_ms
    if declared_ms:
        return max(SILENCE_MS_MIN, SILENT_HEARTBEATS * declared_ms)
    intervals = clock.intervals
    if step.is_heartbeat and clock.heartbeat_ms and len(intervals) < HEARTBEAT_INTERVALS_MAX:
        intervals = [*intervals, interval_ms(clock, at_ms)]
    if len(intervals) >= INTERVALS_MIN:
        return max(SILENCE_MS_MIN, SILENT_HEARTBEATS * sorted(intervals)[(len(intervals) - 1) // 4])
    if has_witness or is_waiting or clock.heartbeat_ms or step.is_heartbeat:
        return UNKNOWN_SILENCE_MS
    return REQUESTS_SILENCE_MS if clock.sign_count >= SIGNS_MIN else STEP_MS_MAX
