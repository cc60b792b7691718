"""Progress: what the steps of a view amount to, folded one by one in order. Times in ms, bitrates in bps."""

from typing import Any, Final

import msgspec

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Failure, Step
from services.processor.applications.video_views.bounds import CDN_TRACE_MAX, STEP_MS_MAX, TIMELINE_EVENTS_MAX
from services.processor.applications.video_views.view import ads, clock, delay, delivery, elapsed, errors, started
from services.processor.applications.video_views.view.ads import Ads
from services.processor.applications.video_views.view.clock import RATE_MS_MIN, Clock
from services.processor.applications.video_views.view.delay import DENIED_MS
from services.processor.applications.video_views.view.delivery import Requests, Scale
from services.processor.applications.video_views.view.elapsed import ORDINARY_MS, STEP_MS_MIN, Between, Elapsed
from services.processor.applications.video_views.view.errors import Errors
from services.processor.applications.video_views.view.silence import UNJUDGED_MAX, Unjudged, known_limit_ms
from services.processor.applications.video_views.view.started import Started
from shared.schemas.view import INTEGRAL_MAX, NUMBER_MAX

#: Codes of the timeline beside the states (step.STARTING ...).
ON_RENDITION: Final = 20
#: An error beside a change of state: one that the client does not call fatal, or one more after a fatal one; a warning.
ON_ERROR: Final = 21
ON_WARNING: Final = 22
ON_AD: Final = 30


class Progress(msgspec.Struct, array_like=True, gc=False):
    """What the steps folded so far amount to."""

    state: int = 0
    state_before_seek: int = 0
    #: The last timed step; 0 before the first.
    at_ms: int = 0
    begun_at_ms: int = 0
    last_at_ms: int = 0
    playing_at_ms: int = 0
    has_begun: bool = False
    #: How it has ended, of PLAYED_OUT and CLEAN_EXIT; 0: it has not.
    ended: int = 0
    playhead_ms: int = 0
    bitrate_bps: int = 0
    #: Our own integration of states; which of it counts is the row's business.
    playing_ms: int = 0
    watch_ms: int = 0
    rebuffer_ms: int = 0
    rebuffer_count: int = 0
    seek_ms: int = 0
    seek_count: int = 0
    longest_seek_ms: int = 0
    #: `seek_ms` when the last seek began.
    seek_ms_before: int = 0
    bitrate_integral: int = 0
    bitrate_time_ms: int = 0
    rendition_up: int = 0
    rendition_down: int = 0
    #: The client's own counters, newest values.
    counters: dict[str, Any] = {}
    failure: Failure | None = None
    #: The state before the end: what the viewer saw last.
    state_before_end: int = 0
    latency_sum_ms: int = 0
    latency_count: int = 0
    requests: Requests | None = None
    ads: Ads | None = None
    scale: Scale | None = None
    cdn_trace: list[str] = []
    #: [client time, code, playhead, bitrate], at most `TIMELINE_EVENTS_MAX`.
    timeline: list[list[int]] = []
    #: Stalls that the client reported one by one: their number and sum.
    stalls_reported: int = 0
    stalls_reported_ms: int = 0
    started: Started = msgspec.field(default_factory=Started)
    clock: Clock = msgspec.field(default_factory=Clock)
    errors: Errors = msgspec.field(default_factory=Errors)
    #: When the first frame of the content was shown (0: its beacon is not known), and whether any content has played.
    content_at_ms: int = 0
    content_has_played: bool = False
    #: SIGNED, NOT_SIGNED, or 0.
    signature: int = 0
    #: The smallest values of counters that may be a session's: they show whether the client counted again from 0.
    least_counters: dict[str, int] = {}
    #: Silences while it played before the client's rhythm is known.
    unjudged: list[Unjudged] = []


_WAITING: Final = frozenset({step.STARTING, step.REBUFFERING, step.SEEKING})
_WATCHING: Final = _WAITING | {step.PLAYING}


def fold(progress: Progress, next_step: Step) -> None:
    """Folds the next step, in order, into `progress`."""
    if not progress.started.has_played:
        started.count(progress.started, next_step)
    next_step = _take_time(progress, next_step)
    if next_step.begins and not progress.has_begun:
        progress.has_begun = True
        progress.begun_at_ms = next_step.at_ms
        started.begin(progress.started, next_step)
    if next_step.bitrate_bps:
        _change_bitrate(progress, next_step)
    before = progress.state
    if next_step.state:
        _enter(progress, next_step)
        if progress.state == step.PLAYING:
            _see_content(progress, next_step)
    if next_step.judges_errors:
        errors.judge(progress.errors, next_step, before)
    if next_step.shows_playing or next_step.ends == step.PLAYED_OUT:
        started.show(progress.started, next_step.reported_ms or next_step.at_ms)
    _take_values(progress, next_step)
    if next_step.is_timed and not progress.playing_at_ms:
        started.see_playhead(progress.started, next_step, progress.state)


def _take_time(progress: Progress, next_step: Step) -> Step:
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
        is_counting, has_played = _is_counting(progress), _had_played(progress)
        delay.take_late(of_view, next_step, longer_ms, is_counting=is_counting, has_played=has_played)
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
    found = elapsed_to(progress, next_step)
    of_view = progress.clock
    of_view.step_count += found.is_step
    # Corrected time passes by what has elapsed, also where the client's difference is out of bounds.
    of_view.shift_ms = progress.at_ms + found.elapsed_ms - next_step.at_ms
    if found.by_server:
        of_view.ahead_at_ms = progress.at_ms + found.elapsed_ms
    if found.gap_ms:
        clock.note_gap(of_view, found.gap_ms, has_played=_had_played(progress))
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
        clock.note_gap(progress.clock, one.gap_ms, has_played=True)
        if one.is_before_content and progress.content_at_ms:
            progress.clock.gap_ms_before_content += one.gap_ms
        progress.watch_ms -= one.gap_ms
        progress.playing_ms -= one.gap_ms
        if one.bitrate_bps:
            progress.bitrate_integral -= one.bitrate_bps * one.gap_ms
            progress.bitrate_time_ms -= one.gap_ms
        if one.upscale is not None and progress.scale is not None:
            delivery.take_back(progress.scale, one.gap_ms, one.upscale, one.downscale)


def elapsed_to(progress: Progress, next_step: Step) -> Elapsed:
    """The time from the last timed step to the one that follows it."""
    state, is_in_ad = progress.state, _is_in_ad(progress)
    between = Between(
        is_playing=state == step.PLAYING,
        is_waiting=state in _WAITING and not is_in_ad,
        is_counting=state in _WATCHING or is_in_ad,
    )
    return elapsed.elapsed(progress.clock, progress.at_ms, next_step, between)


def _had_played(progress: Progress) -> bool:
    """Whether the view had played at the last timed step: a request may show since then that it did."""
    return progress.started.has_played and progress.started.played_at_ms <= progress.at_ms


def _is_counting(progress: Progress) -> bool:
    return progress.state in _WATCHING or _is_in_ad(progress)


def _is_in_ad(progress: Progress) -> bool:
    return progress.ads is not None and progress.ads.state == step.AD_PLAYING


def _take_values(progress: Progress, next_step: Step) -> None:
    """Takes in what does not depend on the state."""
    progress.ended |= next_step.ends
    progress.signature = max(progress.signature, next_step.signature)
    playhead_ms, counters = next_step.playhead, next_step.counters
    if playhead_ms is not None and playhead_ms > progress.playhead_ms:
        progress.playhead_ms = playhead_ms
    if counters:
        progress.counters.update(counters)
        if next_step.counts_session:
            note_least(progress.least_counters, counters)
    if next_step.failure is not None:
        progress.failure = next_step.failure
    if next_step.is_error or next_step.is_warning:
        _note(progress, next_step, ON_ERROR if next_step.is_error else ON_WARNING)
    if next_step.dimensions:
        cdn, trace = next_step.dimensions.get("cdn"), progress.cdn_trace
        if cdn and (not trace or trace[-1] != cdn) and len(trace) < CDN_TRACE_MAX:
            trace.append(cdn)
    has_rare = next_step.ad or next_step.sizes or next_step.stall_count or next_step.program_ms
    if has_rare or next_step.request is not None or next_step.latency_ms is not None:
        _fold_rare(progress, next_step)


def note_least(least: dict[str, int], counters: dict[str, int]) -> None:
    """Keeps the smallest value of each counter in `least`."""
    for name, value in counters.items():
        least[name] = min(value, least.get(name, value))


def _pass(progress: Progress, next_step: Step, elapsed_ms: int) -> None:
    """Integrates the time up to a timed step, of which the playhead may show that the view has played in its last part."""
    advanced_ms = 0
    if not progress.playing_at_ms and not (progress.ads and progress.ads.state):
        advanced_ms = min(started.advanced_ms(progress.started, next_step, progress.state), elapsed_ms)
    _integrate(progress, elapsed_ms - advanced_ms)
    if advanced_ms:
        progress.state = step.PLAYING
        progress.playing_at_ms = next_step.at_ms - advanced_ms
        progress.content_has_played = True
        _note(progress, next_step, step.PLAYING, at_ms=progress.playing_at_ms)
        started.show(progress.started, next_step.at_ms)
        _integrate(progress, advanced_ms)


def _see_content(progress: Progress, next_step: Step) -> None:
    """Notes that the content plays: what plays may be an ad, except after the beacon of a first frame."""
    if next_step.is_first_frame:
        if not progress.content_has_played:
            progress.content_at_ms = next_step.at_ms
            progress.clock.gap_ms_before_content = progress.clock.gap_ms
    elif next_step.ad or (progress.ads and progress.ads.state):
        return
    progress.content_has_played = True


def _fold_rare(progress: Progress, next_step: Step) -> None:
    if next_step.ad:
        _show_ad(progress, next_step)
    if next_step.request is not None:
        progress.requests = progress.requests or Requests()
        delivery.count_request(progress.requests, next_step.request)
    latency_ms = next_step.at_ms - next_step.program_ms if next_step.program_ms else next_step.latency_ms
    if latency_ms is not None:
        progress.latency_sum_ms = max(-INTEGRAL_MAX, min(progress.latency_sum_ms + latency_ms, INTEGRAL_MAX))
        progress.latency_count += 1
    if next_step.stall_count:
        progress.stalls_reported += next_step.stall_count
        progress.stalls_reported_ms = min(progress.stalls_reported_ms + next_step.stall_ms, NUMBER_MAX)
    if next_step.sizes:
        progress.scale = progress.scale or Scale()
        delivery.resize(progress.scale, next_step.sizes)


def longest_seek_ms(progress: Progress) -> int:
    """The longest time in one seek, also of a seek that has not ended."""
    if progress.state != step.SEEKING:
        return progress.longest_seek_ms
    return max(progress.longest_seek_ms, min(progress.seek_ms - progress.seek_ms_before, STEP_MS_MAX))


def last_seen(progress: Progress) -> int:
    """The state that the viewer saw last."""
    return progress.state_before_end if progress.state == step.ENDED else progress.state


def copied(progress: Progress) -> Progress:
    """A deep copy."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(progress), type=Progress)


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
            progress.bitrate_integral = min(integral, INTEGRAL_MAX)
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


def _note(progress: Progress, next_step: Step, code: int, at_ms: int | None = None) -> None:
    if len(progress.timeline) < TIMELINE_EVENTS_MAX:
        at_ms = next_step.at_ms if at_ms is None else at_ms
        progress.timeline.append([at_ms, code, next_step.playhead or 0, progress.bitrate_bps])


def _change_bitrate(progress: Progress, next_step: Step) -> None:
    before = progress.bitrate_bps
    progress.bitrate_bps = next_step.bitrate_bps
    if next_step.is_rendition:
        if before:
            progress.rendition_up += next_step.bitrate_bps > before
            progress.rendition_down += next_step.bitrate_bps < before
        if next_step.bitrate_bps != before:
            _note(progress, next_step, ON_RENDITION)


def _led_to(progress: Progress, given: int) -> int:
    """The state after a step that gives the state `given`."""
    before = progress.state
    if given == step.BEFORE_SEEK:
        return progress.state_before_seek if before == step.SEEKING else before
    if given == step.WANTED:
        return before if before and progress.playing_at_ms else step.STARTING
    if given == step.STALL_OVER:
        return step.PLAYING if progress.playing_at_ms else step.STARTING
    if given == step.REBUFFERING and before in (step.SEEKING, step.FAILED):
        # Players report the wait for what the viewer sought: it is the seek's, which lasts until something plays. What
        # failed is waited for in vain.
        return before
    return given


def _enter(progress: Progress, next_step: Step) -> None:
    before, after = progress.state, _led_to(progress, next_step.state)
    if after == step.PLAYING:
        # A record of CMCD that says that an ad's first frame was shown says the state, too.
        is_first = next_step.is_first_frame or next_step.ad == step.AD_PLAYING
        started.show(progress.started, next_step.at_ms, is_first_frame=is_first, state_before=before)
    if after == before:
        if next_step.state == step.FAILED and next_step.reports_error:
            _note(progress, next_step, ON_ERROR)
        return
    if before == step.SEEKING:
        progress.longest_seek_ms = longest_seek_ms(progress)
    if after == step.SEEKING:
        progress.seek_count += 1
        progress.seek_ms_before = progress.seek_ms
        progress.state_before_seek = before
    elif after == step.REBUFFERING and progress.playing_at_ms and next_step.state == step.REBUFFERING:
        # A seek within it ends no stall: the same one goes on.
        progress.rebuffer_count += 1
    elif after == step.PLAYING and not progress.playing_at_ms:
        progress.playing_at_ms = next_step.at_ms
    elif after == step.FAILED:
        progress.errors.is_fatal = True
    if after == step.ENDED and before:
        progress.state_before_end = before
    progress.state = after
    # If the client sent nothing before its seek, there is no state to go back to.
    if after:
        _note(progress, next_step, after)


def _show_ad(progress: Progress, next_step: Step) -> None:
    shown = progress.ads = progress.ads or Ads()
    has_played, has_ended = progress.content_has_played, bool(progress.ended & step.PLAYED_OUT)
    if ads.show(shown, next_step.ad, has_played=has_played, has_ended=has_ended):
        started.show(progress.started, next_step.at_ms, is_first_frame=True, state_before=progress.state)
    _note(progress, next_step, ON_AD + next_step.ad)
