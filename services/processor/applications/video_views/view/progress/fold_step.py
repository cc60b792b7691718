"""The fold of a view's steps, one by one in order, into its progress. Times in ms, bitrates in bps."""

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import CDN_TRACE_MAX
from services.processor.applications.video_views.view.progress import ads, delivery, errors, started
from services.processor.applications.video_views.view.progress.ads import Ads
from services.processor.applications.video_views.view.progress.delivery import Requests, Scale
from services.processor.applications.video_views.view.progress.passing import take_time
from services.processor.applications.video_views.view.progress.progress import (
    ON_AD,
    ON_ERROR,
    ON_RENDITION,
    ON_WARNING,
    Progress,
    note,
    note_least,
)
from services.processor.applications.video_views.view.progress.states import enter
from shared.schemas.view import INTEGRAL_MAX, NUMBER_MAX


def fold(progress: Progress, next_step: Step) -> None:
    """Folds the next step, in order, into `progress`."""
    if not progress.started.has_played:
        started.count(progress.started, next_step)
    next_step = take_time(progress, next_step)
    if next_step.begins and not progress.has_begun:
        progress.has_begun = True
        progress.begun_at_ms = next_step.at_ms
        started.begin(progress.started, next_step)
    if next_step.bitrate_bps:
        _change_bitrate(progress, next_step)
    before = progress.state
    if next_step.state:
        enter(progress, next_step)
        if progress.state == step.PLAYING:
            _see_content(progress, next_step)
    if next_step.judges_errors:
        errors.judge(progress.errors, next_step, before)
    if next_step.shows_playing or next_step.ends == step.PLAYED_OUT:
        started.show(progress.started, next_step.reported_ms or next_step.at_ms)
    _take_values(progress, next_step)
    if next_step.is_timed and not progress.playing_at_ms:
        started.see_playhead(progress.started, next_step, progress.state)


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
        note(progress, next_step, ON_ERROR if next_step.is_error else ON_WARNING)
    if next_step.dimensions:
        cdn, trace = next_step.dimensions.get("cdn"), progress.cdn_trace
        if cdn and (not trace or trace[-1] != cdn) and len(trace) < CDN_TRACE_MAX:
            trace.append(cdn)
    has_rare = next_step.ad or next_step.sizes or next_step.stall_count or next_step.program_ms
    if has_rare or next_step.request is not None or next_step.latency_ms is not None:
        _fold_rare(progress, next_step)


def _see_content(progress: Progress, next_step: Step) -> None:
    """Notes that the content plays: what plays may be an ad, except after the beacon of a first frame."""
    if next_step.is_first_frame:
        if not progress.content_has_played:
            progress.content_at_ms = next_step.at_ms
    elif next_step.ad or (progress.ads and progress.ads.state):
        return
    progress.content_has_played = True


def _change_bitrate(progress: Progress, next_step: Step) -> None:
    before = progress.bitrate_bps
    progress.bitrate_bps = next_step.bitrate_bps
    if next_step.is_rendition:
        if before:
            progress.rendition_up += next_step.bitrate_bps > before
            progress.rendition_down += next_step.bitrate_bps < before
        if next_step.bitrate_bps != before:
            note(progress, next_step, ON_RENDITION)


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


def _show_ad(progress: Progress, next_step: Step) -> None:
    shown = progress.ads = progress.ads or Ads()
    has_played, has_ended = progress.content_has_played, bool(progress.ended & step.PLAYED_OUT)
    if ads.show(shown, next_step.ad, has_played=has_played, has_ended=has_ended):
        started.show(progress.started, next_step.at_ms, is_first_frame=True, state_before=progress.state)
    note(progress, next_step, ON_AD + next_step.ad)
