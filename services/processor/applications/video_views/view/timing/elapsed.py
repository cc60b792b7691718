"""The time between two beacons: what elapsed although the client's clock may step, and what of it is a gap (docs/view.md).

Times are ms.
"""

from typing import Final

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import STEP_MS_MAX
from services.processor.applications.video_views.view.timing import clock as of_clock
from services.processor.applications.video_views.view.timing.clock import RATE_MAX, RATE_MS_MIN
from services.processor.applications.video_views.view.timing.clock_state import Clock
from services.processor.applications.video_views.view.timing.delay import (
    DENIED_MS,
    is_known,
    is_sure,
    late_ms,
    usual_ms,
)
from services.processor.applications.video_views.view.timing.silence import SILENCE_MS_MIN, limit_ms
from services.processor.applications.video_views.view.timing.witnesses import Between, Elapsed, Times
from shared.schemas.view import NUMBER_MAX

#: A difference of client times up to this is believed, if the delay is the usual one to within `STEP_MS_MIN`.
ORDINARY_MS: Final = 20_000
#: A step of more than this is seen where playhead and server agree to within `AGREE_MS` on what elapsed.
STEP_MS_MIN: Final = 8_000
AGREE_MS: Final = 2_000
#: Above this difference the server's clock alone may deny it, if it is smaller by `DENIED_MS`.
LONG_MS: Final = 90_000
#: How much smaller than a shorter difference both the playhead and the server's clock must be to deny it.
BOTH_DENY_MS: Final = 10_000
#: A request that took less than is usual by more than this shows a clock that was set forward.
EARLY_MS_MAX: Final = 2_000
#: So much later or earlier than is usual, another copy of a beacon may be beyond `STEP_MS_MIN`.
NEAR_STEP_MS_MIN: Final = 5_000
#: A part of a silence that the playhead does not witness is no gap up to this.
UNWITNESSED_MS_MAX: Final = 10_000


def elapsed(clock: Clock, at_ms: int, step: Step, between: Between) -> Elapsed:
    """The time from the last timed beacon, at corrected time `at_ms`, to `step`, which the client sends next."""
    shown_ms = of_clock.shown_ms(clock, step) if between.is_playing else None
    times = _times(clock, at_ms, step, shown_ms)
    is_ahead = clock.ahead_at_ms == at_ms and is_known(clock, step)
    if is_ahead and STEP_MS_MIN < times.client_ms - times.server_ms <= SILENCE_MS_MIN:
        # The request before was slow, and all of its delay has counted.
        took_ms: int | None = times.server_ms
        is_step = False
    else:
        took_ms = _stepped(clock, step, times, is_counting=between.is_counting)
        is_step = took_ms is not None
    by_server = took_ms == times.server_ms
    left_ms = NUMBER_MAX + clock.set_back_ms - at_ms
    bounded_ms = max(0, min(times.client_ms if took_ms is None else took_ms, STEP_MS_MAX, left_ms))
    by_server = by_server and bounded_ms <= SILENCE_MS_MIN and not clock.sleeps
    if not between.is_counting:
        return Elapsed(bounded_ms, 0, is_step, by_server=by_server)
    if clock.sleeps:
        return Elapsed(bounded_ms, bounded_ms, is_step)
    quiet_ms = bounded_ms
    if clock.heard_ms:
        quiet_ms = min(bounded_ms, max(clock.quiet_ms, at_ms + bounded_ms - clock.heard_ms))
    if shown_ms is not None and 2 * shown_ms >= bounded_ms and of_clock.is_live(clock, step):
        # After a sleep the player shows the live edge: the playhead is no witness of what played.
        shown_ms = None
    has_witness = shown_ms is not None
    gap_ms = quiet_ms
    if shown_ms is not None and shown_ms <= RATE_MAX * bounded_ms:
        gap_ms = bounded_ms - shown_ms if bounded_ms - shown_ms > UNWITNESSED_MS_MAX else 0
    if quiet_ms > limit_ms(clock, at_ms + bounded_ms, step, has_witness=has_witness, is_waiting=between.is_waiting):
        return Elapsed(bounded_ms, gap_ms, is_step)
    if is_step and has_witness and _was_slow(times, STEP_MS_MAX):
        return Elapsed(min(times.played_ms or 0, bounded_ms), 0, is_step)
    if quiet_ms > SILENCE_MS_MIN and gap_ms and between.is_playing:
        return Elapsed(bounded_ms, 0, is_step, quiet_ms, gap_ms)
    return Elapsed(bounded_ms, 0, is_step, by_server=by_server)


def _times(clock: Clock, at_ms: int, step: Step, shown_ms: int | None) -> Times:
    """The time from the last timed beacon to `step` by each witness."""
    return Times(
        step.at_ms + clock.shift_ms - at_ms,
        step.server_ms - at_ms - usual_ms(clock, step),
        shown_ms,
        None if shown_ms is None else of_clock.played_ms(clock, shown_ms),
    )


def _stepped(clock: Clock, step: Step, times: Times, *, is_counting: bool) -> int | None:
    """The elapsed time by the witnesses, if they show that the client's clock stepped; else None."""
    client_ms, server_ms, shown_ms, played_ms = times
    if client_ms < 0 and server_ms < 0:
        return shown_ms or 0
    if client_ms >= 0 and _is_longer(clock, step, times):
        return played_ms
    if not (client_ms < 0 or _is_denied(clock, step, times, is_counting)):
        return None
    return played_ms if _was_slow(times, DENIED_MS) else max(server_ms, 0)


def _was_slow(times: Times, by_ms_max: int) -> bool:
    """Whether the playhead shows that the request was slow, by at most so much."""
    played_ms = times.played_ms or 0
    return played_ms >= RATE_MS_MIN and AGREE_MS < times.server_ms - played_ms <= by_ms_max


def _is_longer(clock: Clock, step: Step, times: Times) -> bool:
    """Whether the playhead and the server's clock show that more has elapsed than the client's clock says.

    Where it is not by the same amount the request was slow. After a stall a live stream goes on at its edge by itself.
    """
    if of_clock.may_be_faster(clock, times.shown_ms or 0, times.client_ms):
        return False
    longer_ms = (times.played_ms or 0) - times.client_ms
    return longer_ms > STEP_MS_MIN and _was_slow(times, STEP_MS_MAX) and not of_clock.is_live(clock, step)


def _is_denied(clock: Clock, step: Step, times: Times, is_counting: bool) -> bool:  # as `Between` has it
    """Whether the witnesses deny a difference of the client's times."""
    client_ms, server_ms, shown_ms, played_ms = times
    # Else the step lies behind it, in its own request.
    is_possible = server_ms >= -AGREE_MS or client_ms > LONG_MS
    can_deny = is_known(clock, step)
    is_judged = can_deny or is_counting if client_ms > LONG_MS else can_deny and client_ms > DENIED_MS
    is_witnessed = shown_ms is not None and 2 * shown_ms >= client_ms
    if is_judged and is_possible and server_ms < client_ms - DENIED_MS and not is_witnessed:
        return True
    went_further = (played_ms or 0) > server_ms + AGREE_MS
    if is_sure(clock, step) and is_possible and server_ms < client_ms - STEP_MS_MIN and not went_further:
        return True
    if shown_ms is None:
        return False
    if (played_ms or 0) >= RATE_MS_MIN and abs(server_ms - (played_ms or 0)) <= AGREE_MS:
        return abs(server_ms - client_ms) > STEP_MS_MIN and not of_clock.may_be_faster(clock, shown_ms, client_ms)
    return ORDINARY_MS < client_ms <= LONG_MS and max(shown_ms, server_ms) < client_ms - BOTH_DENY_MS


def depends_on_receipt(clock: Clock, at_ms: int, step: Step, *, is_playing: bool) -> bool:
    """Whether it matters for the row when a timed step was received: a copy of it that was received before may come.

    `at_ms` is the corrected time of the last timed step; whether it plays since then.
    """
    client_ms = step.at_ms + clock.shift_ms - at_ms
    longer_ms = late_ms(clock, step)
    if longer_ms > DENIED_MS or client_ms < 0:
        return True
    # The clock was set forward, if only by a little as far as this copy shows.
    if client_ms > ORDINARY_MS and longer_ms < -EARLY_MS_MAX:
        return True
    if abs(longer_ms) <= NEAR_STEP_MS_MIN or not is_playing:
        return False
    shown_ms = of_clock.shown_ms(clock, step)
    played_ms = None if shown_ms is None else of_clock.played_ms(clock, shown_ms)
    denied_ms = 0 if played_ms is None else played_ms - client_ms
    return abs(denied_ms) > STEP_MS_MIN - AGREE_MS and (denied_ms > 0) == (longer_ms > 0)
