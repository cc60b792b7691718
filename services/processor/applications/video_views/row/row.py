"""The finished row of a view: every field as docs/view.md defines it, from what was folded."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Failure
from services.processor.applications.video_views.bounds import RANGES_MAX
from services.processor.applications.video_views.row.scores import GoodRules, Measures, scores
from services.processor.applications.video_views.row.startup import startup_fields, startup_of
from services.processor.applications.video_views.view.dimensions import stated
from services.processor.applications.video_views.view.finish import end_reason
from services.processor.applications.video_views.view.progress.ads import Ads
from services.processor.applications.video_views.view.progress.delivery import Requests, Scale
from services.processor.applications.video_views.view.progress.errors import has_failed
from services.processor.applications.video_views.view.progress.progress import (
    ON_AD,
    ON_ERROR,
    ON_RENDITION,
    ON_WARNING,
    Progress,
    longest_seek_ms,
)
from services.processor.applications.video_views.view.progress.timeline import events_of
from services.processor.applications.video_views.view.state import (
    ViewState,
    clock_offset_ms,
    complete_progress,
    server_ms,
    since,
)
from shared.schemas.view import INTEGRAL_MAX, NUMBER_MAX, SCHEMA_VERSION, RebufferSource, TimelineEvent, View
from shared.sources import SOURCES

_DAY_MS: Final = 86_400_000
_SIGNED: Final = {0: None, step.SIGNED: True, step.NOT_SIGNED: False}
_NO_FAILURE: Final = Failure()
_NOTHING: Final = Progress()
_NO_ADS: Final = Ads()
_FIELDS: Final = frozenset(View.__struct_fields__)
_REBUFFERING: Final = frozenset({"rebuffer_count", "rebuffer_ms"})

_TIMELINE_NAMES: Final = {
    step.STARTING: "viewstart",
    step.PLAYING: "playing",
    step.PAUSED: "pause",
    step.REBUFFERING: "rebufferstart",
    step.SEEKING: "seekstart",
    step.ENDED: "ended",
    step.FAILED: "error",
    ON_RENDITION: "rendition",
    ON_ERROR: "error",
    ON_WARNING: "warning",
    ON_AD + step.AD_BREAK_BEGINS: "adbreakstart",
    ON_AD + step.AD_BREAK_ENDS: "adbreakend",
    ON_AD + step.AD_ATTEMPTED: "adplay",
    ON_AD + step.AD_PLAYING: "adplaying",
    ON_AD + step.AD_PAUSED: "adpause",
    ON_AD + step.AD_ENDED: "adended",
    ON_AD + step.AD_FAILED: "aderror",
}


def to_row(
    view: ViewState,
    dimensions: dict[str, Any],
    *,
    customer_id: str,
    view_id: str,
    revision: int,
    first_append_ms: int,
    good: GoodRules,
) -> View:
    """The view's row. `dimensions` are fields of `View` by name; the day is that of `first_append_ms`."""
    progress, dimensions = complete_progress(view, dimensions)
    offset_ms = clock_offset_ms(view, progress)
    counters, rebuffer_source = _counters(view, progress)
    # What a client that counts for itself has not counted did not happen; for the others our own integration speaks.
    ours = _NOTHING if SOURCES[view.source].counts_itself else progress
    startup = startup_of(progress, counters, counts_itself=SOURCES[view.source].counts_itself)
    had_failed = has_failed(progress.errors)
    failure = (progress.failure if had_failed else None) or _NO_FAILURE
    failed = had_failed and not failure.business
    counted_ms = counters.get("rebuffer_ms", 0) if SOURCES[view.source].counts_itself else 0
    reason = end_reason(progress, rebuffer_ms=counted_ms, is_superseded=view.play.is_superseded)
    begun_ms = begun_ms_of(progress, counters)
    bitrate_integral = min(progress.bitrate_integral, INTEGRAL_MAX)
    measures = Measures(
        startup_ms=startup.startup_ms,
        has_started=startup.has_started,
        watch_ms=counters.get("watch_ms", ours.watch_ms),
        rebuffer_count=counters.get("rebuffer_count", ours.rebuffer_count),
        rebuffer_ms=counters.get("rebuffer_ms", ours.rebuffer_ms),
        playback_failed=failed,
        ebvs=not startup.has_started and not had_failed,
        avg_bitrate_bps=bitrate_integral // progress.bitrate_time_ms if progress.bitrate_time_ms else None,
        **_scale_fields(counters, ours.scale, ("upscale_integral", "scale_time_ms", "max_upscale")),
    )
    return View(
        schema_version=SCHEMA_VERSION,
        revision=revision,
        customer_id=customer_id,
        view_id=view_id,
        source=view.source,  # type: ignore[arg-type]  # beacons are checked where they come in
        view_epoch=view.play.number,
        day=first_append_ms // _DAY_MS,
        first_append_ms=view.first_append_ms,
        last_append_ms=view.last_append_ms,
        view_start_ms=server_ms(begun_ms, offset_ms),
        # Where the clock stepped, it is not known on which side of the step a request began.
        view_end_ms=server_ms(progress.at_ms if progress.clock.step_count else progress.last_at_ms, offset_ms),
        end_reason=reason,
        view_dropped=reason in ("timeout", "long_rebuffer"),
        startup_failed=failed and not startup.has_started,
        live_latency_ms_avg=_latency_ms(
            progress, dimensions, offset_ms if SOURCES[view.source].latency_by_clock else 0
        ),
        events=timeline_of(events_of(progress.timeline), begun_ms),
        player_measured=sorted(counters.keys() & _FIELDS),
        **{name: value for name, value in msgspec.structs.asdict(measures).items() if name in _FIELDS},
        **msgspec.structs.asdict(scores(measures, good)),
        **_scale_fields(counters, ours.scale, ("downscale_integral", "max_downscale")),
        **startup_fields(progress, counters, startup),
        **_rebuffer_fields(measures, counters.get("playing_ms", ours.playing_ms), rebuffer_source),
        **_playing_fields(progress, ours, counters),
        **_error_fields(failure, had_failed=had_failed),
        **_request_fields(progress.requests),
        **_ad_fields(progress.ads or _NO_ADS, counters),
        **_differences(progress, counters),
        **_completeness_fields(view, progress),
        **stated(dimensions),
    )


def _counters(view: ViewState, progress: Progress) -> tuple[dict[str, Any], RebufferSource]:
    """The client's counters since the view began, and what its rebuffering is made of.

    Stalls that a client reports one by one (CMCD `bsd`) stand in where neither states nor counters show any.
    """
    counters = since(progress, view.play.counters_before)
    if progress.stalls_reported and not progress.rebuffer_count and "rebuffer_ms" not in counters:
        return {
            "rebuffer_count": progress.stalls_reported,
            "rebuffer_ms": progress.stalls_reported_ms,
        } | counters, "stalls"
    is_counted = SOURCES[view.source].counts_itself or not _REBUFFERING.isdisjoint(counters)
    return counters, "counters" if is_counted else "states"


def _rebuffer_fields(measures: Measures, playing_ms: int, rebuffer_source: RebufferSource) -> dict[str, Any]:
    """The share of rebuffering of one view: of the watch time (Mux, rebuffer percentage), and of stalls and playing (CTA-2066)."""
    stalled_ms = measures.rebuffer_ms
    active_ms = stalled_ms + playing_ms
    return {
        "rebuffer_source": rebuffer_source,
        "rebuffer_fraction": min(1.0, stalled_ms / measures.watch_ms) if measures.watch_ms else None,
        "rebuffer_ratio": stalled_ms / active_ms if active_ms else None,
    }


def _scale_fields(counters: dict[str, Any], scale: Scale | None, names: tuple[str, ...]) -> dict[str, Any]:
    """Upscaling is `max(0, min(player width / source width, player height / source height) - 1)`, weighted by playing time;
    downscaling its mirror image (Mux, understand metric definitions: upscale and downscale percentage).
    """
    known = scale if scale is not None and scale.time_ms else None
    fields = {name: "time_ms" if name == "scale_time_ms" else name for name in names}
    return {name: counters.get(name, getattr(known, field, None)) for name, field in fields.items()}


def _playing_fields(progress: Progress, ours: Progress, counters: dict[str, Any]) -> dict[str, Any]:
    """What was played, sought and shown; bitrates over the time in which one was known (Mux, weighted average bitrate)."""
    return {
        "playing_ms": counters.get("playing_ms", ours.playing_ms),
        "content_playback_ms": counters.get("content_playback_ms", ours.playing_ms),
        "max_playhead_ms": counters.get("max_playhead_ms", ours.playhead_ms),
        "playback_ranges": _ranges(counters.get("playback_ranges")),
        "seek_count": counters.get("seek_count", ours.seek_count),
        "seek_ms": counters.get("seek_ms", ours.seek_ms),
        "max_seek_ms": counters.get("max_seek_ms", longest_seek_ms(ours)),
        "dropped_frames": counters.get("dropped_frames"),
        "bitrate_integral": min(progress.bitrate_integral, INTEGRAL_MAX),
        "bitrate_time_ms": progress.bitrate_time_ms,
        "rendition_up": progress.rendition_up,
        "rendition_down": progress.rendition_down,
        "cdn_trace": progress.cdn_trace,
    }


def _error_fields(failure: Failure, *, had_failed: bool) -> dict[str, Any]:
    """The last fatal error, as the client reported it."""
    return {
        "error_code": failure.code,
        "error_message": failure.message,
        "error_context": failure.context,
        "error_severity": failure.severity,
        "business_exception": had_failed and failure.business,
    }


def _completeness_fields(view: ViewState, progress: Progress) -> dict[str, Any]:
    """How much of the view came: whether the row rests on all of it, and on signed beacons alone."""
    gaps, clock = view.order.missing(view.play.until_seq), progress.clock
    # If beacons have numbers, none is missing in a silence. If they have none, some may be lost, or in a wrong order after the
    # clock was set back.
    has_all = not gaps and (view.order.has_numbers or not (clock.gap_count or clock.is_out_of_order))
    return {
        "beacon_count": view.beacon_count,
        "duplicate_count": view.duplicate_count,
        "seq_gaps": gaps,
        "late_count": view.late_count,
        "truncated": view.is_truncated,
        "gap_ms": clock.gap_ms,
        "gap_count": clock.gap_count,
        "clock_step_count": clock.step_count,
        "signed": _SIGNED[progress.signature],
        "complete": bool(progress.ended) and has_all and not view.late_count and not view.is_truncated,
    }


def _ranges(sent: str | None) -> list[list[int]]:
    """`["0:2900", "5000:6000"]` as pairs of ms; anything else is left out."""
    if sent is None:
        return []
    try:
        pairs = msgspec.json.decode(sent, type=list[str])
        ranges = [[int(part) for part in pair.split(":")] for pair in pairs[:RANGES_MAX]]
    except (msgspec.DecodeError, ValueError):
        return []
    return [pair for pair in ranges if len(pair) == 2 and 0 <= pair[0] <= pair[1] < 1 << 53]


def _latency_ms(progress: Progress, dimensions: dict[str, Any], offset_ms: int) -> int | None:
    """The mean of server time - program time at the playhead (Mux, live stream latency), or of CMCD's `ltc`; not for vod."""
    if not progress.latency_count or dimensions.get("stream_type") == "vod":
        return None
    return min(max(0, progress.latency_sum_ms // progress.latency_count + offset_ms), NUMBER_MAX)


def begun_ms_of(progress: Progress, counters: dict[str, Any]) -> int:
    """When the view began, by the client's clock: `counters` are those since then."""
    found: int = counters.get("view_start_ms") or progress.begun_at_ms
    return found


def timeline_of(events: Iterable[tuple[int, int, int, int]], begun_ms: int) -> list[TimelineEvent]:
    """The events of a packed timeline, as a row has them."""
    return [
        TimelineEvent(
            at_ms=at_ms - begun_ms,
            event=_TIMELINE_NAMES[code],
            playhead_ms=playhead_ms if playhead_ms > 0 else None,
            bitrate_bps=bitrate_bps or None,
        )
        for at_ms, code, playhead_ms, bitrate_bps in events
    ]


def _request_fields(requests: Requests | None) -> dict[str, Any]:
    """Sums, so that throughput is bytes x 8 / time and latency TTFB / completed (Mux, request throughput and latency)."""
    if requests is None:
        return {}
    return {
        "req_count": requests.count,
        "req_failed": requests.failed,
        "req_canceled": requests.canceled,
        "req_bytes": requests.size_bytes,
        "req_time_ms": requests.time_ms,
        "ttfb_sum_ms": requests.ttfb_sum_ms,
        "ttfb_max_ms": requests.ttfb_max_ms,
    }


def _ad_fields(ads: Ads, counters: dict[str, Any]) -> dict[str, Any]:
    """Breaks by where they stand, attempts, impressions, errors, time (Mux, understand metric definitions: ad metrics)."""
    return {
        "ad_breaks": ads.breaks,
        "ad_preroll_breaks": ads.preroll_breaks,
        "ad_midroll_breaks": ads.midroll_breaks,
        "ad_postroll_breaks": ads.postroll_breaks,
        "ad_attempts": ads.attempts,
        "ad_impressions": ads.impressions,
        "ad_errors": ads.errors,
        "ad_playing_ms": counters.get("ad_playing_ms", ads.playing_ms),
        "ad_preroll_playing_ms": ads.preroll_playing_ms,
    }


def _differences(progress: Progress, counters: dict[str, Any]) -> dict[str, Any]:
    """The client's counters minus our own integration of its states, where there are both.

    Players that count for themselves count ads as watched and played, too.
    """
    ads = progress.ads or _NO_ADS
    return {
        field: counters[name] - ours
        for name, field, ours in (
            ("watch_ms", "watch_difference_ms", progress.watch_ms + ads.unwatched_ms),
            ("playing_ms", "playing_difference_ms", progress.playing_ms + ads.apart_ms),
            ("rebuffer_ms", "rebuffer_difference_ms", progress.rebuffer_ms),
            ("rebuffer_count", "rebuffer_count_difference", progress.rebuffer_count),
        )
        if name in counters
    }
