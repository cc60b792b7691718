"""Progress: what the steps of a view amount to, folded one by one in order. Times in ms, bitrates in bps."""

from typing import Any, Final

import msgspec

from services.processor.applications.video_views import step
from services.processor.applications.video_views.step import Failure, Request, Step
from shared.schemas.view import INTEGRAL_MAX, NUMBER_MAX

#: No more time than the longest view passes between two steps, whatever a client's clock says.
STEP_MS_MAX: Final = 86_400_000
#: The first events of a view's life that are kept; what comes after them is in the counts alone.
TIMELINE_EVENTS_MAX: Final = 200
CDN_TRACE_MAX: Final = 32

#: Codes of the timeline beside the states (step.STARTING ...).
ON_RENDITION: Final = 20
ON_AD: Final = 30


class Requests(msgspec.Struct, array_like=True):
    """The player's requests for media."""

    count: int = 0
    failed: int = 0
    canceled: int = 0
    size_bytes: int | None = None
    time_ms: int | None = None
    ttfb_sum_ms: int | None = None
    ttfb_max_ms: int | None = None
    #: The newest values, for clients that send only what changed.
    last: list[int | None] = []


class Ads(msgspec.Struct, array_like=True):
    """Ads by what the player told of them. `state` is the newest of `step.AD_...`, 0 outside."""

    state: int = 0
    breaks: int = 0
    preroll_breaks: int = 0
    midroll_breaks: int = 0
    postroll_breaks: int = 0
    attempts: int = 0
    impressions: int = 0
    errors: int = 0
    playing_ms: int = 0
    preroll_playing_ms: int = 0
    #: Time in ad breaks before the content's first frame.
    before_content_ms: int = 0
    is_attempted: bool = False
    #: Of `playing_ms`, while the content was not playing, and while it was not being watched (paused for the ad, ended).
    apart_ms: int = 0
    unwatched_ms: int = 0


class Scale(msgspec.Struct, array_like=True):
    """How much larger or smaller than the source the picture is shown; integrals in ratio x ms of playing."""

    sizes: dict[str, int] = {}
    upscale: float = 0.0
    downscale: float = 0.0
    is_known: bool = False
    upscale_integral: float = 0.0
    downscale_integral: float = 0.0
    time_ms: int = 0
    max_upscale: float = 0.0
    max_downscale: float = 0.0


class Progress(msgspec.Struct, array_like=True):
    """What the steps folded so far amount to."""

    state: int = 0
    state_before_seek: int = 0
    #: Client time of the last timed step; 0 before the first.
    at_ms: int = 0
    begun_at_ms: int = 0
    last_at_ms: int = 0
    playing_at_ms: int = 0
    has_begun: bool = False
    has_failed: bool = False
    #: The strongest of what the steps said of the end: 0, PLAYED_OUT or CLEAN_EXIT.
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
    seek_began_ms: int = 0
    bitrate_integral: int = 0
    bitrate_time_ms: int = 0
    rendition_up: int = 0
    rendition_down: int = 0
    #: The client's own counters, newest values.
    counters: dict[str, Any] = {}
    failure: Failure | None = None
    #: The first frame of anything, an ad's too.
    first_frame_at_ms: int = 0
    #: The state before the end, for telling what the viewer last saw.
    state_before_end: int = 0
    latency_sum_ms: int = 0
    latency_count: int = 0
    requests: Requests | None = None
    ads: Ads | None = None
    scale: Scale | None = None
    cdn_trace: list[str] = []
    #: [client time, code, playhead, bitrate], at most `TIMELINE_EVENTS_MAX`.
    timeline: list[list[int]] = []
    #: An error was told, and nothing has begun to play since.
    error_is_open: bool = False


_WATCHING: Final = frozenset({step.STARTING, step.PLAYING, step.REBUFFERING, step.SEEKING})
_WAITING: Final = frozenset({step.STARTING, step.REBUFFERING, step.SEEKING})
_IN_BREAK: Final = frozenset({step.AD_BREAK_BEGINS, step.AD_ATTEMPTED, step.AD_PLAYING, step.AD_PAUSED, step.AD_ENDED})


def fold(progress: Progress, next_step: Step) -> None:
    """Folds the next step, in order, into `progress`."""
    if next_step.is_timed:
        if progress.at_ms:
            _integrate(progress, min(max(0, next_step.at_ms - progress.at_ms), STEP_MS_MAX))
        progress.at_ms = max(progress.at_ms, next_step.at_ms)
    progress.last_at_ms = max(progress.last_at_ms, next_step.at_ms)
    if next_step.begins and not progress.has_begun:
        progress.has_begun = True
        progress.begun_at_ms = next_step.at_ms
    if next_step.bitrate_bps:
        _change_bitrate(progress, next_step)
    if next_step.state:
        _enter(progress, next_step)
    progress.ended = max(progress.ended, next_step.ends)
    progress.playhead_ms = max(progress.playhead_ms, next_step.playhead_ms)
    if next_step.counters:
        progress.counters.update(next_step.counters)
    if next_step.failure is not None:
        progress.failure = next_step.failure
    if next_step.is_error or next_step.resumes:
        progress.error_is_open = next_step.is_error
        progress.has_failed = progress.has_failed and not next_step.resumes
    if next_step.dimensions:
        cdn, trace = next_step.dimensions.get("cdn"), progress.cdn_trace
        if cdn and (not trace or trace[-1] != cdn) and len(trace) < CDN_TRACE_MAX:
            trace.append(cdn)
    if next_step.ad or next_step.request is not None or next_step.latency_ms is not None or next_step.sizes:
        _fold_rare(progress, next_step)


def _fold_rare(progress: Progress, next_step: Step) -> None:
    if next_step.ad:
        _show_ad(progress, next_step)
    if next_step.request is not None:
        _count_request(progress, next_step.request)
    if next_step.latency_ms is not None:
        progress.latency_sum_ms = max(-INTEGRAL_MAX, min(progress.latency_sum_ms + next_step.latency_ms, INTEGRAL_MAX))
        progress.latency_count += 1
    if next_step.sizes:
        _resize(progress, next_step.sizes)


def last_seen(progress: Progress) -> int:
    """The state that the viewer saw last."""
    return progress.state_before_end if progress.state == step.ENDED else progress.state


def has_failed(progress: Progress) -> bool:
    """Whether an error ended playback: it was called fatal, or the viewer waited in vain after it until the end."""
    return progress.has_failed or (progress.error_is_open and last_seen(progress) in _WAITING)


def copied(progress: Progress) -> Progress:
    """A deep copy."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(progress), type=Progress)


def _integrate(progress: Progress, elapsed_ms: int) -> None:
    """The time since the last timed step belongs to the state after it."""
    state = progress.state
    if state in _WATCHING:
        progress.watch_ms += elapsed_ms
    if state == step.PLAYING:
        progress.playing_ms += elapsed_ms
        if progress.bitrate_bps:
            integral = progress.bitrate_integral + progress.bitrate_bps * elapsed_ms
            progress.bitrate_integral = min(integral, INTEGRAL_MAX)
            progress.bitrate_time_ms += elapsed_ms
        if progress.scale is not None and progress.scale.is_known:
            progress.scale.upscale_integral += progress.scale.upscale * elapsed_ms
            progress.scale.downscale_integral += progress.scale.downscale * elapsed_ms
            progress.scale.time_ms += elapsed_ms
    elif state == step.REBUFFERING and progress.playing_at_ms:
        progress.rebuffer_ms += elapsed_ms
    elif state == step.SEEKING:
        progress.seek_ms += elapsed_ms
    ads = progress.ads
    if ads is not None and ads.state:
        if ads.state == step.AD_PLAYING:
            ads.playing_ms += elapsed_ms
            ads.apart_ms += elapsed_ms if state != step.PLAYING else 0
            ads.unwatched_ms += elapsed_ms if state not in _WATCHING else 0
            if not progress.playing_at_ms:
                ads.preroll_playing_ms += elapsed_ms
        if not progress.playing_at_ms and ads.state in _IN_BREAK:
            ads.before_content_ms += elapsed_ms


def _note(progress: Progress, at_ms: int, code: int, playhead_ms: int) -> None:
    if len(progress.timeline) < TIMELINE_EVENTS_MAX:
        progress.timeline.append([at_ms, code, playhead_ms, progress.bitrate_bps])


def _change_bitrate(progress: Progress, next_step: Step) -> None:
    before = progress.bitrate_bps
    progress.bitrate_bps = next_step.bitrate_bps
    if next_step.is_rendition:
        if before:
            progress.rendition_up += next_step.bitrate_bps > before
            progress.rendition_down += next_step.bitrate_bps < before
        if next_step.bitrate_bps != before:
            _note(progress, next_step.at_ms, ON_RENDITION, next_step.playhead_ms)


def _enter(progress: Progress, next_step: Step) -> None:
    before, after = progress.state, next_step.state
    if after == step.BEFORE_SEEK:
        if before != step.SEEKING:
            return
        after = progress.state_before_seek
    if after == before:
        return
    if next_step.state == step.REBUFFERING and before in (step.SEEKING, step.FAILED):
        # Players tell of the wait for what the viewer sought: it is the seek's, which lasts until something plays. What
        # failed is waited for in vain.
        return
    if before == step.SEEKING:
        progress.longest_seek_ms = max(progress.longest_seek_ms, next_step.at_ms - progress.seek_began_ms)
    if after == step.SEEKING:
        progress.seek_count += 1
        progress.seek_began_ms = next_step.at_ms
        progress.state_before_seek = before
    elif after == step.REBUFFERING and progress.playing_at_ms:
        progress.rebuffer_count += 1
    elif after == step.PLAYING and not progress.playing_at_ms:
        progress.playing_at_ms = next_step.at_ms
        progress.first_frame_at_ms = progress.first_frame_at_ms or next_step.at_ms
    elif after == step.FAILED:
        progress.has_failed = True
    if after == step.ENDED and before:
        progress.state_before_end = before
    progress.state = after
    _note(progress, next_step.at_ms, after, next_step.playhead_ms)


def _show_ad(progress: Progress, next_step: Step) -> None:
    ads = progress.ads = progress.ads or Ads()
    said = next_step.ad
    if said == step.AD_BREAK_BEGINS:
        ads.breaks += 1
        if not progress.playing_at_ms:
            ads.preroll_breaks += 1
        elif progress.ended:
            ads.postroll_breaks += 1
        else:
            ads.midroll_breaks += 1
    elif said == step.AD_ATTEMPTED and ads.state != step.AD_PAUSED:
        ads.attempts += 1
        ads.is_attempted = True
    elif said == step.AD_PLAYING and ads.state not in (step.AD_PAUSED, step.AD_PLAYING):
        # Some clients tell the first frame alone.
        ads.attempts += not ads.is_attempted
        ads.impressions += 1
        ads.is_attempted = False
        progress.first_frame_at_ms = progress.first_frame_at_ms or next_step.at_ms
    elif said == step.AD_FAILED:
        ads.errors += 1
        ads.is_attempted = False
    if not (said == step.AD_ATTEMPTED and ads.state == step.AD_PAUSED):
        ads.state = 0 if said == step.AD_BREAK_ENDS else step.AD_ENDED if said == step.AD_FAILED else said
    _note(progress, next_step.at_ms, ON_AD + said, next_step.playhead_ms)


def _count_request(progress: Progress, request: Request) -> None:
    requests = progress.requests = progress.requests or Requests()
    requests.count += 1
    told = [request.start_ms, request.first_byte_ms, request.end_ms, request.size_bytes]
    if request.is_delta:
        last = requests.last or [None] * len(told)
        told = [before if now is None else now for before, now in zip(last, told, strict=True)]
        requests.last = told
    if request.outcome == step.CANCELED:
        requests.canceled += 1
        return
    if request.outcome == step.REQUEST_FAILED:
        requests.failed += 1
        return
    start_ms, first_byte_ms, end_ms, size_bytes = told
    if size_bytes is not None:
        requests.size_bytes = min((requests.size_bytes or 0) + size_bytes, NUMBER_MAX)
    if start_ms is not None and end_ms is not None:
        requests.time_ms = (requests.time_ms or 0) + _took_ms(start_ms, end_ms)
    if start_ms is not None and first_byte_ms is not None:
        ttfb_ms = _took_ms(start_ms, first_byte_ms)
        requests.ttfb_sum_ms = (requests.ttfb_sum_ms or 0) + ttfb_ms
        requests.ttfb_max_ms = max(requests.ttfb_max_ms or 0, ttfb_ms)


def _took_ms(start_ms: int, end_ms: int) -> int:
    return min(max(0, end_ms - start_ms), STEP_MS_MAX)


def _resize(progress: Progress, sizes: dict[str, int]) -> None:
    scale = progress.scale = progress.scale or Scale()
    scale.sizes.update(sizes)
    known = [scale.sizes.get(name, 0) for name in ("player_width", "source_width", "player_height", "source_height")]
    scale.is_known = all(known)
    if not scale.is_known:
        return
    ratio = min(known[0] / known[1], known[2] / known[3])
    scale.upscale, scale.downscale = max(0.0, ratio - 1), max(0.0, 1 - ratio)
    scale.max_upscale = max(scale.max_upscale, scale.upscale)
    scale.max_downscale = max(scale.max_downscale, scale.downscale)
