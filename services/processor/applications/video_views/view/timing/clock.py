"""The effect of a beacon on the known time of a view (docs/view.md, "Time, gaps and clocks").

Times are ms. Corrected time is the client's time with every step of its clock taken out.
"""

from typing import Final

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import HEARTBEAT_INTERVALS_MAX, STEP_MS_MAX
from services.processor.applications.video_views.view.timing.clock_state import Clock, First
from shared.schemas.view import NUMBER_MAX

#: A client whose rhythm is not measured yet may be silent for so long.
UNKNOWN_SILENCE_MS: Final = 300_000
#: Reports of requests that are counted.
SIGNS_MIN: Final = 3
#: No player offers to play faster: a longer step of the playhead is a jump to the start position or the live edge.
RATE_MAX: Final = 4
#: The playhead's rate is measured over so long or longer: within less, its own steps show.
RATE_MS_MIN: Final = 5_000
#: The rate is known if it was the same twice, or at first 1, to within one of so many parts.
RATE_PARTS_MIN: Final = 10
_LIVE: Final = "live"


def begin(clock: Clock, step: Step) -> None:
    """Notes the first timed beacon of a view."""
    clock.first = First(step.seq, step.tie, step.at_ms, step.recv_ms, step.server_ms)


def note_gap(clock: Clock, gap_ms: int, *, has_played: bool, has_content: bool) -> None:
    """Notes a gap; whether the view had played before it, and its content.

    A day of it counts at the most. It is taken whole out of the times in which it is.
    """
    clock.gap_ms = min(clock.gap_ms + min(gap_ms, STEP_MS_MAX), NUMBER_MAX)
    clock.gap_count += 1
    if not has_played:
        clock.gap_ms_before_play += gap_ms
    if not has_content:
        clock.gap_ms_before_content += gap_ms


def corrected(step: Step, shift_ms: int) -> Step:
    """The step in corrected time."""
    reported_ms = step.reported_ms + shift_ms if step.reported_ms else 0
    return msgspec.structs.replace(step, at_ms=step.at_ms + shift_ms, reported_ms=reported_ms)


def note(clock: Clock, step: Step, at_ms: int) -> None:
    """Notes a timed step at this corrected time."""
    clock.playhead_ms = step.playhead
    clock.sleeps = step.sleeps
    if "stream_type" in step.dimensions:
        clock.is_live = is_live(clock, step)
    if clock.heard_ms:
        clock.heard_ms = clock.quiet_ms = 0
    if step.heartbeat_ms:
        clock.declared_ms = step.heartbeat_ms
    if step.is_heartbeat:
        if clock.heartbeat_ms and len(clock.intervals) < HEARTBEAT_INTERVALS_MAX:
            clock.intervals.append(interval_ms(clock, at_ms))
        clock.heartbeat_ms = at_ms


def is_live(clock: Clock, step: Step) -> bool:
    """Whether the stream is live, as this step says or one before it."""
    stream_type = step.dimensions.get("stream_type")
    return clock.is_live if stream_type is None else bool(stream_type == _LIVE)


def interval_ms(clock: Clock, at_ms: int) -> int:
    """The interval from the last heartbeat to one at this corrected time, as far as it may be the client's rhythm."""
    return min(at_ms - clock.heartbeat_ms, UNKNOWN_SILENCE_MS)


def note_sign_of_life(clock: Clock, at_ms: int, reported_ms: int) -> None:
    """Notes an untimed beacon of this corrected time, after a timed one at corrected time `at_ms`."""
    heard_ms = max(clock.heard_ms, at_ms)
    reported_ms = max(heard_ms, reported_ms)
    clock.quiet_ms = max(clock.quiet_ms, reported_ms - heard_ms)
    clock.heard_ms = reported_ms
    clock.sign_count = min(clock.sign_count + 1, SIGNS_MIN)


def shown_ms(clock: Clock, step: Step) -> int | None:
    """The advance of the playhead while nothing was sought; None where that is not known."""
    if step.moves_playhead or step.playhead is None or clock.playhead_ms is None:
        return None
    advance_ms = step.playhead - clock.playhead_ms
    return advance_ms if advance_ms >= 0 else None


def played_ms(clock: Clock, advance_ms: int) -> int | None:
    """The time that the playhead takes for this advance; None where its rate is not known: a stall makes it smaller."""
    shown_ms, in_ms = clock.advanced_ms, clock.advanced_in_ms
    if not shown_ms:
        # Before its first measurement the rate is that of ordinary playing.
        return advance_ms
    if in_ms > RATE_MAX * shown_ms or shown_ms > RATE_MAX * in_ms:
        return None
    before_ms, before_in_ms = (clock.before_ms, clock.before_in_ms) if clock.before_in_ms else (1, 1)
    by_rate = shown_ms * before_in_ms
    if RATE_PARTS_MIN * abs(by_rate - before_ms * in_ms) > by_rate:
        return None
    return advance_ms * in_ms // shown_ms


def may_be_faster(clock: Clock, shown_ms: int, client_ms: int) -> bool:
    """Whether the playhead may have gone further than the client's time because the viewer plays faster from the start on."""
    return not clock.advanced_ms and client_ms < shown_ms <= RATE_MAX * client_ms


def is_nearer_copy(step: Step, recv_ms: int, server_ms: int) -> bool:
    """Whether this copy of a beacon is the one that counts beside one with these times."""
    return (step.recv_ms, step.server_ms) < (recv_ms, server_ms)
