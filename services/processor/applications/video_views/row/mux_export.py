"""A finished row as Mux's `VideoView` message, for consumers of that export (docs/view.md, Export).

Times in ms, bitrates in bps, percentages as fractions 0..1, the rebuffer frequency in events per ms: as Mux's players send
them and its exports have them. Unknown values of the row are left out.
"""

from typing import Any, Final

from shared import codec
from shared.schemas.view import View

#: Our names of the timeline's events, where Mux has another one.
_EVENT_TYPES: Final = {"seekstart": "seeking", "rendition": "renditionchange"}
_STREAM_TYPES: Final = {"live": "live", "vod": "on-demand"}
#: What of the row has the same meaning under another name; bounds and units are the same too.
_SAME: Final = {
    "view_id": "view_id",
    "property_id": "customer_id",
    "environment_id": "customer_id",
    "asn": "asn",
    "browser": "browser",
    "cdn": "cdn",
    "city": "city",
    "country": "country",
    "exit_before_video_start": "ebvs",
    "experiment_name": "experiment",
    "max_downscale_percentage": "max_downscale",
    "max_upscale_percentage": "max_upscale",
    "mux_viewer_id": "viewer_id",
    "operating_system": "os",
    "page_load_time": "page_load_ms",
    "page_url": "page_url",
    "playback_success_score": "score_success",
    "player_autoplay": "autoplay",
    "player_error_code": "error_code",
    "player_error_message": "error_message",
    "player_height": "player_height",
    "player_instance_id": "player_instance_id",
    "player_name": "player_name",
    "player_software": "player_software",
    "player_software_version": "player_version",
    "player_source_duration": "video_duration_ms",
    "player_source_url": "source_url",
    "player_startup_time": "player_startup_ms",
    "player_width": "player_width",
    "rebuffer_count": "rebuffer_count",
    "rebuffer_duration": "rebuffer_ms",
    "region": "region",
    "session_id": "session_id",
    "smoothness_score": "score_smooth",
    "source_hostname": "source_host",
    "startup_time_score": "score_startup",
    "sub_property_id": "sub_property",
    "video_id": "video_id",
    "video_quality_score": "score_quality",
    "video_series": "video_series",
    "video_startup_time": "startup_ms",
    "video_title": "video_title",
    "view_max_playhead_position": "max_playhead_ms",
    "view_playing_time": "playing_ms",
    "view_seek_count": "seek_count",
    "view_seek_duration": "seek_ms",
    "view_total_content_playback_time": "scale_time_ms",
    "view_total_downscaling": "downscale_integral",
    "view_total_upscaling": "upscale_integral",
    "viewer_connection_type": "connection",
    "viewer_device_name": "device",
    "viewer_experience_score": "score_view",
    "viewer_user_id": "viewer_user_id",
    "watch_time": "watch_ms",
    "weighted_average_bitrate": "avg_bitrate_bps",
    "max_request_latency": "ttfb_max_ms",
    "live_stream_latency": "live_latency_ms_avg",
    "view_dropped_frame_count": "dropped_frames",
    "video_startup_failure": "startup_failed",
    "ad_attempt_count": "ad_attempts",
    "ad_break_count": "ad_breaks",
    "ad_error_count": "ad_errors",
    "ad_impression_count": "ad_impressions",
    "view_content_startup_time": "content_startup_ms",
    "ad_playing_time": "ad_playing_ms",
    "view_content_playing_time": "content_playback_ms",
    "view_dropped": "view_dropped",
    "video_cdn_trace": "cdn_trace",
    "view_rendition_upshift_count": "rendition_up",
    "view_rendition_downshift_count": "rendition_down",
}


def to_video_view(row: View, clock_offset_ms: int) -> bytes:
    """The row as a `VideoView`; `clock_offset_ms` is what was added to the viewer's clock in it."""
    values: dict[str, Any] = {name: getattr(row, field) for name, field in _SAME.items()}
    values |= _ratios(row) | _requests(row)
    values |= {name: value for name, value in row.custom.items() if name in _CUSTOM}
    values |= {
        "view_start": _time(row.view_start_ms),
        "view_end": _time(row.view_end_ms),
        "events": _events(row, clock_offset_ms),
        "player_preload": None if row.preload is None else row.preload != "none",
        "stream_type": None if row.stream_type is None else _STREAM_TYPES[row.stream_type],
        "preroll_requested": row.ad_preroll_breaks > 0,
        "preroll_played": row.ad_preroll_playing_ms > 0,
        "view_has_ad": row.ad_breaks > 0 or row.ad_attempts > 0,
        "view_rendition_change_count": row.rendition_up + row.rendition_down,
    }
    return codec.VIDEO_VIEW.encode(values)


_CUSTOM: Final = frozenset(f"custom_{number}" for number in range(1, 21))


def _ratios(row: View) -> dict[str, float | None]:
    return {
        "rebuffer_frequency": _ratio(row.rebuffer_count, row.watch_ms),
        "rebuffer_percentage": _ratio(row.rebuffer_ms, row.watch_ms),
        "view_upscaling_percentage": _ratio(row.upscale_integral, row.scale_time_ms),
        "view_downscaling_percentage": _ratio(row.downscale_integral, row.scale_time_ms),
    }


def _requests(row: View) -> dict[str, int | None]:
    """Mean time to the first byte over completed requests, ms; their bits over their time, bps (Mux, request metrics)."""
    completed = (row.req_count or 0) - (row.req_failed or 0) - (row.req_canceled or 0)
    latency_ms = _ratio(row.ttfb_sum_ms, completed)
    bits_per_ms = _ratio(None if row.req_bytes is None else row.req_bytes * 8, row.req_time_ms)
    return {
        "request_latency": None if latency_ms is None else round(latency_ms),
        "request_throughput": None if bits_per_ms is None else round(bits_per_ms * 1_000),
    }


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _events(row: View, clock_offset_ms: int) -> list[dict[str, Any]]:
    last_error = max((at for at, event in enumerate(row.events) if event.event == "error"), default=-1)
    events = []
    for at, event in enumerate(row.events):
        at_ms = row.view_start_ms + event.at_ms
        exported: dict[str, Any] = {
            "sequence_number": at + 1,
            "server_time": _time(at_ms),
            "viewer_time": _time(at_ms - clock_offset_ms),
            "playhead_time": _time(event.playhead_ms or 0),
            "type": _EVENT_TYPES.get(event.event, event.event),
        }
        if event.event == "rendition":
            exported["rendition_info"] = {"bitrate": event.bitrate_bps}
        elif at == last_error:
            # The row knows the last fatal error alone.
            exported["error_info"] = {
                "error_code": row.error_code,
                "error_message": row.error_message,
                "error_context": row.error_context,
                "error_severity": row.error_severity,
                "is_business_exception": row.business_exception,
            }
        events.append(exported)
    return events


def _time(at_ms: int) -> dict[str, int]:
    """A timestamp, or a duration: whole seconds, and nanoseconds that are never negative for times before 1970 either."""
    return {"seconds": at_ms // 1_000, "nanos": at_ms % 1_000 * 1_000_000}
