"""The time that passes between the steps of a view: how much, and to what it counts. Times in ms."""

from typing import Final

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.view.progress import ads, delivery, started
from services.processor.applications.video_views.view.progress.progress import Progress, note
from services.processor.applications.video_views.view.timing import clock, delay, elapsed
from services.processor.applications.video_views.view.timing.clock import RATE_MS_MIN
from services.processor.applications.video_views.view.timing.delay import DENIED_MS
from services.processor.applications.video_views.view.timing.elapsed import ORDINARY_MS, STEP_MS_MIN
from services.processor.applications.video_views.view.timing.silence import UNJUDGED_MAX, Unjudged, known_limit_ms
from services.processor.applications.video_views.view.timing.witnesses import Between, Elapsed
from shared.schemas.view import INTEGRAL_MAX

_WAITING: Final = frozenset({step.STARTING, step.REBUFFERING, step.SEEKING})
_WATCHING: Final = _WAITING | {step.PLAYING}


def take_time(progress: Progress, next_step: Step) -> Step:
    """Takes in the time of a step and integrates the time up to it; the step in corrected time."""
    of_view = progress.clock
    if next_step.is_timed:
        elapsed_ms = 0
        if progress.at_ms:
            longer_ms = next_step.server_ms - next_step.at_ms - of_view.shift_ms - of_view.usual_ms
            elapsed_ms = next_step.at_ms + of_view.shift_ms - progress.at_ms
            is_ordinary = 0 <= elapsed_ms <= ORDINARY_MS and -STEP_MS_MIN <= longer_ms <= STEP_MS_MIN
            if not is_ordinary or of_view.sleeps:
                elapsed_ms = _judge(progress, next_step)
            if elapsed_ms >= RATE_MS_MIN and progress.state == step.PLAYING and not next_step.moves_playhead:
                playhead_ms, before_ms = next_step.playhead, of_view.playhead_ms
                if playhead_ms is not None and before_ms is not None and playhead_ms > before_ms:
                    of_view.before_ms, of_view.before_in_ms = of_view.advanced_ms, of_view.advanced_in_ms
                    of_view.advanced_ms, of_view.advanced_in_ms = playhead_ms - before_ms, elapsed_ms
        else:
            clock.begin(of_view, next_step)
        _take_delay(progress, next_step)
        in_place = clock.corrected(next_step, of_view.shift_ms) if of_view.shift_ms else next_step
        if progress.at_ms:
            if progress.playing_at_ms:
                _integrate(progress, elapsed_ms)
            else:
                _pass(progress, in_place, elapsed_ms)
        progress.at_ms = in_place.at_ms
        clock.note(of_view, next_step, in_place.at_ms)
        if next_step.is_heartbeat and progress.unjudged:
            _judge_again(progress)
    else:
        in_place = clock.corrected(next_step, of_view.shift_ms) if of_view.shift_ms else next_step
        if progress.at_ms:
            clock.note_sign_of_life(of_view, progress.at_ms, in_place.reported_ms)
    progress.last_at_ms = max(progress.last_at_ms, in_place.at_ms)
    return in_place


def _take_delay(progress: Progress, next_step: Step) -> None:
    """Takes in what the delay of a timed step shows of its clock and its order."""
    of_view = progress.clock
    longer_ms = delay.take_delay(of_view, next_step)
    if longer_ms > DENIED_MS:
        gap_ms = delay.take_late(of_view, next_step, longer_ms, is_counting=_is_counting(progress))
        if gap_ms:
            _note_gap(progress, gap_ms)
    elif of_view.late is not None:
        of_view.late = None
    if next_step.server_ms >= of_view.latest_server_ms:
        of_view.latest_server_ms, of_view.latest_recv_ms = next_step.server_ms, next_step.recv_ms
    else:
        delay.note_overtaken(of_view, next_step)
    if next_step.ends:
        delay.note_end(of_view, next_step)


def _judge(progress: Progress, next_step: Step) -> int:
    """The time up to a step that counts to the state before it, by all that witnesses it; notes gaps and clock steps."""
    found = _elapsed_to(progress, next_step)
    of_view = progress.clock
    of_view.step_count += found.is_step
    # Corrected time passes by what has elapsed, also where the client's difference is out of bounds.
    of_view.shift_ms = progress.at_ms + found.elapsed_ms - next_step.at_ms
    if found.by_server:
        of_view.ahead_at_ms = progress.at_ms + found.elapsed_ms
    if found.gap_ms:
        _note_gap(progress, found.gap_ms)
    is_open = found.quiet_ms and known_limit_ms(of_view) is None and not (progress.ads and progress.ads.state)
    if is_open and len(progress.unjudged) < UNJUDGED_MAX:
        scale = progress.scale
        sizes = (scale.upscale, scale.downscale) if scale is not None and scale.is_known else ()
        is_before_content = not progress.content_at_ms
        of_picture = (progress.bitrate_bps, is_before_content, *sizes)
        progress.unjudged.append(Unjudged(found.quiet_ms, found.later_gap_ms, *of_picture))
    return found.elapsed_ms - found.gap_ms


def _judge_again(progress: Progress) -> None:
    """Takes back the silences that are gaps by what a heartbeat shows of the client's rhythm."""
    known_ms = known_limit_ms(progress.clock)
    limit_ms = clock.UNKNOWN_SILENCE_MS if known_ms is None else known_ms
    gaps = [one for one in progress.unjudged if one.quiet_ms > limit_ms]
    progress.unjudged = [] if known_ms is not None else [one for one in progress.unjudged if one.quiet_ms <= limit_ms]
    for one in gaps:
        clock.note_gap(progress.clock, one.gap_ms, has_played=True, has_content=not one.is_before_content)
        progress.watch_ms -= one.gap_ms
        progress.playing_ms -= one.gap_ms
        if one.bitrate_bps:
            progress.bitrate_integral -= one.bitrate_bps * one.gap_ms
            progress.bitrate_time_ms -= one.gap_ms
        if one.upscale is not None and progress.scale is not None:
            delivery.take_back(progress.scale, one.gap_ms, one.upscale, one.downscale)


def _unjudged_integral(progress: Progress) -> int:
    """What the silences that may be gaps have in the sum of bitrates. It is not cut before it is taken back or stays for good.

    `UNJUDGED_MAX` days at the highest bitrate and the largest sum of a row are less than 2^63, which a stored number may be.
    """
    return sum(one.bitrate_bps * one.gap_ms for one in progress.unjudged)


def _elapsed_to(progress: Progress, next_step: Step) -> Elapsed:
    """The time from the last timed step to the one that follows it."""
    state, is_in_ad = progress.state, _is_in_ad(progress)
    between = Between(
        is_playing=state == step.PLAYING,
        is_waiting=state in _WAITING and not is_in_ad,
        is_counting=state in _WATCHING or is_in_ad,
    )
    return elapsed.elapsed(progress.clock, progress.at_ms, next_step, between)


def _pass(progress: Progress, next_step: Step, elapsed_ms: int) -> None:
    """As `_integrate`, of a view that has not played: the playhead may show that it has in the last part of the time."""
    advanced_ms = 0
    if not (progress.ads and progress.ads.state):
        advanced_ms = min(started.advanced_ms(progress.started, next_step, progress.state), elapsed_ms)
    _integrate(progress, elapsed_ms - advanced_ms)
    if advanced_ms:
        progress.state = step.PLAYING
        progress.playing_at_ms = next_step.at_ms - advanced_ms
        progress.content_has_played = True
        note(progress, next_step, step.PLAYING, at_ms=progress.playing_at_ms)
        started.show(progress.started, next_step.at_ms)
        _integrate(progress, advanced_ms)


def _integrate(progress: Progress, elapsed_ms: int) -> None:
    """The time since the last timed step belongs to the state after it."""
    state = progress.state
    is_watched = state in _WATCHING and not (state == step.SEEKING and progress.state_before_seek == step.PAUSED)
    if is_watched:
        progress.watch_ms += elapsed_ms
    if state == step.PLAYING:
        progress.playing_ms += elapsed_ms
        if progress.bitrate_bps:
            integral = progress.bitrate_integral + progress.bitrate_bps * elapsed_ms
            if integral > INTEGRAL_MAX:
                integral = min(integral, INTEGRAL_MAX + _unjudged_integral(progress))
            progress.bitrate_integral = integral
            progress.bitrate_time_ms += elapsed_ms
        if progress.scale is not None:
            delivery.integrate(progress.scale, elapsed_ms)
    elif state == step.REBUFFERING and progress.playing_at_ms:
        progress.rebuffer_ms += elapsed_ms
    elif state == step.SEEKING:
        progress.seek_ms += elapsed_ms
    if progress.ads is not None and progress.ads.state:
        is_playing, has_played = state == step.PLAYING, progress.content_has_played
        ads.integrate(progress.ads, elapsed_ms, is_playing=is_playing, is_watched=is_watched, has_played=has_played)


def _note_gap(progress: Progress, gap_ms: int) -> None:
    """Notes a gap before the step that is taken in."""
    has_played, has_content = _had_played(progress), progress.content_at_ms > 0
    clock.note_gap(progress.clock, gap_ms, has_played=has_played, has_content=has_content)


def _had_played(progress: Progress) -> bool:
    """Whether the view had played at the last timed step: a request may show since then that it did."""
    return progress.started.has_played and progress.started.played_at_ms <= progress.at_ms


def _is_counting(progress: Progress) -> bool:
    return progress.state in _WATCHING or _is_in_ad(progress)


def _is_in_ad(progress: Progress) -> bool:
    return progress.ads is not None and progress.ads.state == step.AD_PLAYING
