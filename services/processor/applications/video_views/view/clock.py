"""The time between two beacons: what elapsed although the client's clock may step, and what of it is a gap (docs/view.md).

Times are ms. Corrected time is the client's time with every step of its clock taken out.
"""

from typing import Final, NamedTuple

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import HEARTBEAT_INTERVALS_MAX, STEP_MS_MAX
from services.processor.applications.video_views.view.started import RATE_MAX
from shared.schemas.view import NUMBER_MAX

#: A difference of client times up to this is believed without witnesses.
ORDINARY_MS: Final = 20_000
#: Above this difference the server's clock alone may deny it, if it is smaller by `DENIED_MS`.
LONG_MS: Final = 90_000
#: No request of a live connection takes longer: what the server's clock denies or adds is a step of the client's from here on.
DENIED_MS: Final = 30_000
#: A request that took less than is usual by more than this shows a clock that was set forward.
EARLY_MS_MAX: Final = 2_000
#: A delay is known when so many beacons, over so long, have shown it to within so much. The delays of beacons that wait for a
#: connection become smaller by the time between them.
LEVEL_BEACONS_MIN: Final = 3
LEVEL_MS_MIN: Final = 30_000
LEVEL_SPREAD_MS_MAX: Final = 10_000
#: How much smaller than a shorter difference both the playhead and the server's clock must be to deny it.
BOTH_DENY_MS: Final = 10_000
#: Silences up to this are no gap: browsers delay the timers of hidden pages to one a minute.
SILENCE_MS_MIN: Final = 90_000
#: The limit of a client whose rhythm is not measured yet.
UNKNOWN_SILENCE_MS: Final = 300_000
#: The limit of a client that reports so many requests or more, and no heartbeats: no player buffers for longer (hls.js:
#: `maxMaxBufferLength`, 600 s).
REQUESTS_SILENCE_MS: Final = 600_000
SIGNS_MIN: Final = 3
#: A silence is a gap beyond so many heartbeats.
SILENT_HEARTBEATS: Final = 3
#: Heartbeat intervals that make a rhythm: their lower quartile, since sleeps may be among them. None is longer than
#: `UNKNOWN_SILENCE_MS` unless the client declares it.
INTERVALS_MIN: Final = 3
#: A part of a silence that the playhead does not witness is no gap up to this.
UNWITNESSED_MS_MAX: Final = 10_000
_LIVE: Final = "live"


class First(msgspec.Struct, array_like=True):
    """The first timed beacon of a view: what identifies it, and the copy of it that was received first."""

    seq: int
    tie: int
    at_ms: int
    recv_ms: int
    server_ms: int


class Level(msgspec.Struct, array_like=True):
    """Beacons in a row with one delay: corrected time to server time, ms."""

    since_ms: int
    least_ms: int
    most_ms: int
    count: int = 1
    is_known: bool = False
    #: Of a level above the usual one: whether the state before it counted.
    was_counting: bool = False


class Clock(msgspec.Struct, array_like=True):
    """What is known of a view's time after its last timed beacon."""

    first: First | None = None
    #: The smallest delay so far, of a client without send times; the level above it, if the newest beacons are on one.
    usual: Level | None = None
    late: Level | None = None
    #: What to add to client times now to get corrected times.
    shift_ms: int = 0
    #: Of the last timed beacon: its playhead.
    playhead_ms: int | None = None
    #: It says that the device sleeps now.
    sleeps: bool = False
    is_live: bool = False
    step_count: int = 0
    gap_ms: int = 0
    gap_count: int = 0
    #: The gaps before the view played.
    gap_ms_before_play: int = 0
    #: The gaps before the content's first frame.
    gap_ms_before_content: int = 0
    #: Since the last timed beacon: corrected time of the last sign of life, and the longest stretch without one.
    heard_ms: int = 0
    quiet_ms: int = 0
    #: Corrected time of the last heartbeat (0: none), and the first intervals between two.
    heartbeat_ms: int = 0
    intervals: list[int] = []
    #: The interval of heartbeats that the client declares; 0: none.
    declared_ms: int = 0
    #: A step at which the times of receipt ran backwards: an order by time is wrong there.
    is_out_of_order: bool = False
    #: Untimed beacons so far, up to `SIGNS_MIN`: reports of requests.
    sign_count: int = 0


class Elapsed(NamedTuple):
    """The time between two timed beacons."""

    elapsed_ms: int
    gap_ms: int = 0
    is_step: bool = False


def elapsed(clock: Clock, at_ms: int, step: Step, *, is_playing: bool, is_counting: bool) -> Elapsed:
    """The time from the last timed beacon, at corrected time `at_ms`, to `step`, which the client sends next.

    `is_playing` and `is_counting` describe the state between them. Notes in `clock` if the order by time is wrong.
    """
    client_ms = step.at_ms + clock.shift_ms - at_ms
    shown_ms = _shown_ms(clock, step) if is_playing else None
    server_ms = step.server_ms - at_ms - _usual_ms(clock, step)
    is_known = step.is_stamped or (clock.usual is not None and clock.usual.is_known)
    took_ms = _stepped(client_ms, server_ms, shown_ms, is_known=is_known, can_judge=is_known or is_counting)
    is_step = took_ms is not None
    clock.is_out_of_order = clock.is_out_of_order or (is_step and server_ms < -DENIED_MS)
    bounded_ms = max(0, min(client_ms if took_ms is None else took_ms, STEP_MS_MAX, NUMBER_MAX - at_ms))
    if not is_counting:
        return Elapsed(bounded_ms, 0, is_step)
    if clock.sleeps:
        return Elapsed(bounded_ms, bounded_ms, is_step)
    quiet_ms = bounded_ms
    if clock.heard_ms:
        quiet_ms = min(bounded_ms, max(clock.quiet_ms, at_ms + bounded_ms - clock.heard_ms))
    is_live = step.dimensions.get("stream_type", _LIVE if clock.is_live else None) == _LIVE
    if is_live and shown_ms is not None and 2 * shown_ms >= bounded_ms:
        # After a sleep the player shows the live edge: the playhead is no witness of what played.
        shown_ms = None
    limit_ms = _limit_ms(clock, at_ms + bounded_ms, step, has_witness=shown_ms is not None)
    if quiet_ms <= limit_ms:
        return Elapsed(bounded_ms, 0, is_step)
    if shown_ms is not None and shown_ms <= RATE_MAX * bounded_ms:
        unwitnessed_ms = bounded_ms - shown_ms
        return Elapsed(bounded_ms, unwitnessed_ms if unwitnessed_ms > UNWITNESSED_MS_MAX else 0, is_step)
    return Elapsed(bounded_ms, quiet_ms, is_step)


def _shown_ms(clock: Clock, step: Step) -> int | None:
    """The advance of the playhead while nothing was sought; None where that is not known."""
    if step.moves_playhead or step.playhead is None or clock.playhead_ms is None:
        return None
    shown_ms = step.playhead - clock.playhead_ms
    return shown_ms if shown_ms >= 0 else None


def _usual_ms(clock: Clock, step: Step) -> int:
    """The delay from corrected time to server time that the client's requests have: a longer one waited.

    Where requests say when they were sent, the first beacon's is taken: a beacon that waits for its request while the clock
    steps has an offset of after the step. Elsewhere it is the smallest one.
    """
    if step.is_stamped or clock.usual is None:
        first = clock.first
        return 0 if first is None else first.server_ms - first.at_ms
    return clock.usual.least_ms


def _stepped(client_ms: int, server_ms: int, shown_ms: int | None, *, is_known: bool, can_judge: bool) -> int | None:
    """The elapsed time by the witnesses, if they show that the client's clock stepped; else None."""
    if client_ms < 0:
        return server_ms if server_ms >= 0 else (shown_ms or 0)
    is_judged = can_judge if client_ms > LONG_MS else is_known and client_ms > DENIED_MS
    if is_judged and server_ms < client_ms - DENIED_MS and (shown_ms is None or 2 * shown_ms < client_ms):
        return max(server_ms, 0)
    is_short = ORDINARY_MS < client_ms <= LONG_MS
    if is_short and shown_ms is not None and max(shown_ms, server_ms) < client_ms - BOTH_DENY_MS:
        return max(server_ms, 0)
    return None


def _limit_ms(clock: Clock, at_ms: int, step: Step, *, has_witness: bool) -> int:
    """The longest silence of this client that is no gap."""
    declared_ms = step.heartbeat_ms or clock.declared_ms
    if declared_ms:
        return max(SILENCE_MS_MIN, SILENT_HEARTBEATS * declared_ms)
    intervals = clock.intervals
    if step.is_heartbeat and clock.heartbeat_ms and len(intervals) < HEARTBEAT_INTERVALS_MAX:
        intervals = [*intervals, _interval_ms(clock, at_ms)]
    if len(intervals) >= INTERVALS_MIN:
        return max(SILENCE_MS_MIN, SILENT_HEARTBEATS * sorted(intervals)[(len(intervals) - 1) // 4])
    if has_witness or clock.heartbeat_ms or step.is_heartbeat:
        return UNKNOWN_SILENCE_MS
    return REQUESTS_SILENCE_MS if clock.sign_count >= SIGNS_MIN else STEP_MS_MAX


def _interval_ms(clock: Clock, at_ms: int) -> int:
    """The interval from the last heartbeat to one at this corrected time, as far as it may be the client's rhythm."""
    return min(at_ms - clock.heartbeat_ms, UNKNOWN_SILENCE_MS)


def begin(clock: Clock, step: Step) -> None:
    """Notes the first timed beacon of a view."""
    clock.first = First(step.seq, step.tie, step.at_ms, step.recv_ms, step.server_ms)


def depends_on_receipt(clock: Clock, at_ms: int, step: Step) -> bool:
    """Whether it matters for the row when a timed step was received: a copy of it that was received before may come.

    `at_ms` is the corrected time of the last timed step.
    """
    corrected_ms = step.at_ms + clock.shift_ms
    late_ms = step.server_ms - corrected_ms - _usual_ms(clock, step)
    if late_ms > DENIED_MS or corrected_ms < at_ms:
        return True
    # The clock was set forward, if only by a little as far as this copy shows.
    return corrected_ms - at_ms > ORDINARY_MS and late_ms < -EARLY_MS_MAX


def note_gap(clock: Clock, gap_ms: int, *, has_played: bool) -> None:
    """Notes a gap."""
    clock.gap_ms += gap_ms
    clock.gap_count += 1
    if not has_played:
        clock.gap_ms_before_play += gap_ms


def take_delay(clock: Clock, step: Step, *, is_counting: bool, has_played: bool) -> None:
    """Takes in the delay of a timed step, which may show that the client's clock was set back some beacons ago.

    `is_counting` and `has_played` describe the view before the step. The time that is missing is a gap, if the state before
    it counted.
    """
    at_ms = step.at_ms + clock.shift_ms
    delay_ms = step.server_ms - at_ms
    usual = clock.usual
    if not step.is_stamped:
        if usual is None or delay_ms < usual.most_ms - LEVEL_SPREAD_MS_MAX:
            least_ms = delay_ms if usual is None else min(delay_ms, usual.least_ms)
            usual = clock.usual = Level(at_ms, least_ms, delay_ms)
        elif delay_ms <= usual.least_ms + LEVEL_SPREAD_MS_MAX and not usual.is_known:
            _add(usual, at_ms, delay_ms)
        elif delay_ms < usual.least_ms:
            usual.least_ms = delay_ms
    late_ms = delay_ms - _usual_ms(clock, step)
    if late_ms <= DENIED_MS or not (step.is_stamped or (usual is not None and usual.is_known)):
        clock.late = None
        return
    late = clock.late
    if late is None or not late.most_ms - LEVEL_SPREAD_MS_MAX <= late_ms <= late.least_ms + LEVEL_SPREAD_MS_MAX:
        clock.late = Level(at_ms, late_ms, late_ms, was_counting=is_counting)
        return
    _add(late, at_ms, late_ms)
    if not late.is_known:
        return
    clock.late = None
    clock.step_count += 1
    clock.shift_ms += late.least_ms
    if late.was_counting:
        note_gap(clock, late.least_ms, has_played=has_played)


def _add(level: Level, at_ms: int, delay_ms: int) -> None:
    level.least_ms, level.most_ms = min(level.least_ms, delay_ms), max(level.most_ms, delay_ms)
    level.count += 1
    level.is_known = level.count >= LEVEL_BEACONS_MIN and at_ms - level.since_ms >= LEVEL_MS_MIN


def corrected(step: Step, shift_ms: int) -> Step:
    """The step in corrected time."""
    reported_ms = step.reported_ms + shift_ms if step.reported_ms else 0
    return msgspec.structs.replace(step, at_ms=step.at_ms + shift_ms, reported_ms=reported_ms)


def note(clock: Clock, step: Step, at_ms: int) -> None:
    """Notes a timed step at this corrected time."""
    clock.playhead_ms = step.playhead
    clock.sleeps = step.sleeps
    if "stream_type" in step.dimensions:
        clock.is_live = step.dimensions["stream_type"] == _LIVE
    if clock.heard_ms:
        clock.heard_ms = clock.quiet_ms = 0
    if step.heartbeat_ms:
        clock.declared_ms = step.heartbeat_ms
    if step.is_heartbeat:
        if clock.heartbeat_ms and len(clock.intervals) < HEARTBEAT_INTERVALS_MAX:
            clock.intervals.append(_interval_ms(clock, at_ms))
        clock.heartbeat_ms = at_ms


def note_sign_of_life(clock: Clock, at_ms: int, reported_ms: int) -> None:
    """Notes an untimed beacon of this corrected time, after a timed one at corrected time `at_ms`."""
    heard_ms = max(clock.heard_ms, at_ms)
    reported_ms = max(heard_ms, reported_ms)
    clock.quiet_ms = max(clock.quiet_ms, reported_ms - heard_ms)
    clock.heard_ms = reported_ms
    clock.sign_count = min(clock.sign_count + 1, SIGNS_MIN)


def is_nearer_copy(step: Step, recv_ms: int, server_ms: int) -> bool:
    """Whether this copy of a beacon is the one that counts beside one with these times."""
    return (step.recv_ms, step.server_ms) < (recv_ms, server_ms)
