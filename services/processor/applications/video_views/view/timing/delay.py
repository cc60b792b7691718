"""The delay from the client's time to the server's: the usual one, and what another one shows (docs/view.md). Times are ms."""

from typing import Final

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.view.timing.clock_state import Clock, Latest, Level

#: No request of a live connection takes longer: what the server's clock denies or adds is a step of the client's from here on.
DENIED_MS: Final = 30_000
#: A delay is known if this many beacons show it, sent and received over this long. They may differ by this much, and by this part
#: of that time. It is sure if more beacons show it, over longer. The delays of beacons that wait for a connection become smaller
#: by the time between them, and those of one request are received at once.
KNOWN_BEACONS_MIN: Final = 2
KNOWN_MS_MIN: Final = 2_000
LEVEL_BEACONS_MIN: Final = 3
LEVEL_MS_MIN: Final = 10_000
LEVEL_SPREAD_MS_MAX: Final = 10_000
LEVEL_SPREADS_MIN: Final = 3
#: A view goes on behind its end, and a playhead goes back by itself, for no longer than a slow request takes.
OVERTAKEN_MS_MAX: Final = 10_000


def usual_ms(clock: Clock, step: Step) -> int:
    """The delay from corrected time to server time that the client's requests have: a longer one waited.

    It is the smallest one, or that of the first beacon, where others are not compared.
    """
    if step.trusts_first or clock.usual is None:
        first = clock.first
        return 0 if first is None else first.server_ms - first.at_ms
    return clock.usual.least_ms


def is_known(clock: Clock, step: Step) -> bool:
    """Whether the usual delay is known, so that a difference of `DENIED_MS` to it is not a request's."""
    return step.is_stamped or (clock.usual is not None and clock.usual.is_known)


def is_sure(clock: Clock, step: Step) -> bool:
    """Whether no request is quicker than the usual ones: what is was sent by a clock that was set forward."""
    return not step.trusts_first and clock.usual is not None and clock.usual.is_sure


def is_near(delay_ms: int, other_ms: int) -> bool:
    """Whether two delays may be of requests by one clock."""
    return abs(delay_ms - other_ms) <= LEVEL_SPREAD_MS_MAX


def known_delay_ms(clock: Clock) -> int | None:
    """The usual delay of the client's requests by its clock as it is now; None where that is not known."""
    usual = clock.usual
    return usual.least_ms + clock.shift_ms if usual is not None and usual.is_known else None


def late_ms(clock: Clock, step: Step) -> int:
    """How much longer than is usual the delay of a step is, if its clock has not stepped since the last one."""
    return step.server_ms - step.at_ms - clock.shift_ms - usual_ms(clock, step)


def take_delay(clock: Clock, step: Step) -> int:
    """Takes in the delay of a timed step. Returns how much longer than is usual it is."""
    at_ms = step.at_ms + clock.shift_ms
    delay_ms = step.server_ms - at_ms
    usual = clock.usual
    # Else its corrected time is too late, by the delay of the request at which the clock stepped.
    is_placed = usual is None or clock.ahead_at_ms != at_ms or delay_ms >= usual.least_ms
    if not step.trusts_first and is_placed:
        if usual is not None and delay_ms < usual.most_ms - LEVEL_SPREAD_MS_MAX:
            if clock.early is None or clock.early.since_recv_ms == step.recv_ms:
                # It may have waited for its request while the clock was set forward, and has an offset of after that. Then
                # the step lies behind it, and shows at the latest in the first beacon of the next request.
                clock.early = Level(at_ms, delay_ms, delay_ms, since_recv_ms=step.recv_ms)
            else:
                # Nothing showed a step: the requests before these were the slow ones.
                usual, clock.early = clock.early, None
        else:
            clock.early = None
        if clock.early is None:
            clock.usual = _with_delay(usual, step, at_ms, delay_ms, is_usual_at_first=clock.is_usual_at_first)
    clock.usual_ms = usual_ms(clock, step)
    return delay_ms - clock.usual_ms


def _with_delay(usual: Level | None, step: Step, at_ms: int, delay_ms: int, *, is_usual_at_first: bool) -> Level:
    """The usual level with another delay."""
    if usual is None or delay_ms < usual.most_ms - LEVEL_SPREAD_MS_MAX:
        is_known = usual is None and is_usual_at_first
        return Level(at_ms, delay_ms, delay_ms, is_known=is_known, since_recv_ms=step.recv_ms)
    if delay_ms <= usual.least_ms + LEVEL_SPREAD_MS_MAX and not usual.is_sure:
        _add(usual, step, at_ms, delay_ms)
    usual.least_ms = min(usual.least_ms, delay_ms)
    return usual


def take_late(clock: Clock, step: Step, longer_ms: int, *, is_counting: bool) -> int:
    """Takes in a delay that is longer by more than `DENIED_MS`: it may show that the clock was set back some beacons ago.

    Returns the time that is missing then, if it is a gap because the state before it counted; else 0. `is_counting`: the state
    before the step does.
    """
    if not (step.is_stamped or is_sure(clock, step)):
        clock.late = None
        return 0
    at_ms = step.at_ms + clock.shift_ms
    late = clock.late
    if late is None or not late.most_ms - LEVEL_SPREAD_MS_MAX <= longer_ms <= late.least_ms + LEVEL_SPREAD_MS_MAX:
        clock.late = Level(at_ms, longer_ms, longer_ms, was_counting=is_counting, since_recv_ms=step.recv_ms)
        return 0
    _add(late, step, at_ms, longer_ms)
    if not late.is_sure:
        return 0
    clock.late = None
    clock.step_count += 1
    clock.shift_ms += late.least_ms
    clock.set_back_ms += late.least_ms
    return late.least_ms if late.was_counting else 0


def _add(level: Level, step: Step, at_ms: int, delay_ms: int) -> None:
    level.least_ms, level.most_ms = min(level.least_ms, delay_ms), max(level.most_ms, delay_ms)
    level.count += 1
    if LEVEL_SPREADS_MIN * (level.most_ms - level.least_ms) > at_ms - level.since_ms:
        return
    over_ms = min(at_ms - level.since_ms, step.recv_ms - level.since_recv_ms)
    level.is_known = level.is_known or (level.count >= KNOWN_BEACONS_MIN and over_ms >= KNOWN_MS_MIN)
    level.is_sure = level.count >= LEVEL_BEACONS_MIN and over_ms >= LEVEL_MS_MIN


def note_overtaken(clock: Clock, step: Step) -> None:
    """Notes whether an order by the client's time is wrong before a timed step: one before it was received long after it.

    What was sent after the clock was set back comes first in that order. A request that took long looks the same, but for an
    end that others follow and a playhead that goes back.
    """
    is_wrong = _is_before(step, clock.latest_server_ms, clock.latest_recv_ms, DENIED_MS)
    if not is_wrong and clock.latest_end is not None:
        is_wrong = _is_before(step, clock.latest_end.server_ms, clock.latest_end.recv_ms, OVERTAKEN_MS_MAX)
    if not is_wrong and step.playhead is not None and clock.playhead_ms is not None and not step.moves_playhead:
        goes_back = step.playhead < clock.playhead_ms
        is_wrong = goes_back and _is_before(step, clock.latest_server_ms, clock.latest_recv_ms, OVERTAKEN_MS_MAX)
    clock.is_out_of_order = clock.is_out_of_order or is_wrong


def note_end(clock: Clock, step: Step) -> None:
    """Notes a timed step that ends the view."""
    if clock.latest_end is None or step.server_ms > clock.latest_end.server_ms:
        clock.latest_end = Latest(step.server_ms, step.recv_ms)


def _is_before(step: Step, server_ms: int, recv_ms: int, by_ms: int) -> bool:
    return step.server_ms < server_ms - by_ms and step.recv_ms < recv_ms - by_ms
