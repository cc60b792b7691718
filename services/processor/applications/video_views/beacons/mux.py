"""From a mux beacon to a step: which of mux-embed's fields mean which field of the view's row (docs/view.md).

Names and units are those of mux-embed 5 (times in ms, bitrates in bps, sizes in pixels, scale integrals in ratio x ms).
"""

from collections.abc import Mapping
from typing import Any, Final

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import COUNTS_VIEW, Failure, Step
from services.processor.applications.video_views.beacons.values import (
    bitrate_bps,
    flag,
    offset_ms,
    text,
    text_of,
)
from services.processor.applications.video_views.bounds import CHARS_MAX, RANGES_CHARS_MAX, TEXT_CHARS_MAX
from shared.client_values import client_ms, measured, measured_real, whole
from shared.requests.reading import of_mux
from shared.schemas.beacon import Beacon
from shared.sources import SOURCES

#: What an event says by itself, by field of the step.
_OF_EVENT: Final[Mapping[str, Mapping[str, Any]]] = {
    "viewstart": {"state": step.STARTING, "begins": True},
    "play": {"state": step.WANTED},
    "playing": {"state": step.PLAYING, "is_first_frame": True},
    "pause": {"state": step.PAUSED},
    "rebufferstart": {"state": step.REBUFFERING},
    "rebufferend": {"state": step.PLAYING},
    "rendition": {"is_rendition": True},
    "seekstart": {"state": step.SEEKING, "moves_playhead": True},
    "seekend": {"state": step.BEFORE_SEEK, "moves_playhead": True},
    "ended": {"state": step.ENDED, "ends": step.PLAYED_OUT},
    "viewend": {"state": step.ENDED, "ends": step.CLEAN_EXIT},
    "error": {"state": step.FAILED, "reports_error": True},
    "warning": {"is_warning": True},
}
_NOTHING: Final[Mapping[str, Any]] = {}
ADS: Final = {
    "adbreakstart": step.AD_BREAK_BEGINS,
    "adbreakend": step.AD_BREAK_ENDS,
    "adplay": step.AD_ATTEMPTED,
    "adplaying": step.AD_PLAYING,
    "adpause": step.AD_PAUSED,
    "adended": step.AD_ENDED,
    "aderror": step.AD_FAILED,
}
_WHOLE_COUNTERS: Final = {
    "view_start": "view_start_ms",
    "view_time_to_first_frame": "startup_ms",
    "view_content_startup_time": "content_startup_ms",
    "view_aggregate_startup_time": "aggregate_startup_ms",
    "view_watch_time": "watch_ms",
    "view_playing_time_ms_cumulative": "playing_ms",
    "view_content_playback_time": "content_playback_ms",
    "view_rebuffer_count": "rebuffer_count",
    "view_rebuffer_duration": "rebuffer_ms",
    "view_seek_count": "seek_count",
    "view_seek_duration": "seek_ms",
    "view_max_seek_time": "max_seek_ms",
    "view_max_playhead_position": "max_playhead_ms",
    "view_total_content_playback_time": "scale_time_ms",
    "player_startup_time": "player_startup_ms",
    "player_view_count": "player_view_count",
    "page_load_time": "page_load_ms",
    "view_dropped_frame_count": "dropped_frames",
    "ad_playing_time_ms_cumulative": "ad_playing_ms",
}
_REAL_COUNTERS: Final = {
    "view_total_upscaling": "upscale_integral",
    "view_total_downscaling": "downscale_integral",
    "view_max_upscale_percentage": "max_upscale",
    "view_max_downscale_percentage": "max_downscale",
}
_TEXTS: Final = {
    "session_id": "session_id",
    "mux_viewer_id": "viewer_id",
    "viewer_user_id": "viewer_user_id",
    "player_instance_id": "player_instance_id",
    "video_id": "video_id",
    "video_title": "video_title",
    "video_series": "video_series",
    "video_source_url": "source_url",
    "video_source_hostname": "source_host",
    "video_cdn": "cdn",
    "player_name": "player_name",
    "player_software": "player_software",
    "player_software_name": "player_software",
    "player_software_version": "player_version",
    "viewer_device_name": "device",
    "viewer_os_family": "os",
    "viewer_application_name": "browser",
    "viewer_connection_type": "connection",
    "page_url": "page_url",
    "sub_property_id": "sub_property",
    "experiment_name": "experiment",
}
_NUMBERS: Final = {
    "video_source_duration": "video_duration_ms",
    "player_width": "player_width",
    "player_height": "player_height",
}
_COUNTER, _REAL, _TEXT, _NUMBER, _CUSTOM, _OTHER = range(6)
#: Every name that means something, with what kind of thing it is, its field and the most characters: one look-up a name.
FIELDS: Final[Mapping[str, tuple[int, str, int]]] = {
    **{name: (_COUNTER, field, 0) for name, field in _WHOLE_COUNTERS.items()},
    **{name: (_REAL, field, 0) for name, field in _REAL_COUNTERS.items()},
    **{name: (_TEXT, field, CHARS_MAX.get(field, TEXT_CHARS_MAX)) for name, field in _TEXTS.items()},
    **{name: (_NUMBER, field, 0) for name, field in _NUMBERS.items()},
    **{f"custom_{number}": (_CUSTOM, f"custom_{number}", TEXT_CHARS_MAX) for number in range(1, 21)},
    **{
        name: (_OTHER, name, 0)
        for name in (
            "video_source_bitrate",
            "video_source_is_live",
            "video_stream_type",
            "video_playback_range",
            "player_autoplay_on",
            "player_preload_on",
        )
    },
}
#: Counters that are above 0 only when something has played.
_PLAYED: Final = frozenset({"playing_ms", "content_playback_ms", "scale_time_ms", "rebuffer_count"})
_PRELOADS: Final = ("none", "metadata", "auto")
#: Further behind the live edge than this is watching a recording.
BEHIND_EDGE_MS_MAX: Final = 300_000
HEARTBEAT_MS: Final = SOURCES["mux"].heartbeat_ms


def mux_step(beacon: Beacon, seq: int) -> Step:
    """The step that a mux beacon means for its view."""
    attrs = beacon.attrs
    counters: dict[str, Any] = {}
    dimensions: dict[str, Any] = {}
    known = FIELDS.get
    for name, value in attrs.items():
        found = known(name)
        if found is None:
            continue
        kind, field, chars_max = found
        if kind == _COUNTER:
            if (count := measured(value)) is not None:
                counters[field] = count
        elif kind == _REAL:
            if (amount := measured_real(value)) is not None:
                counters[field] = amount
        elif kind == _TEXT:
            dimensions[field] = text(value, chars_max)
        elif kind == _NUMBER:
            if (count := measured(value)) is not None:
                dimensions[field] = count
        elif kind == _CUSTOM:
            if value is not None:
                dimensions.setdefault("custom", {})[field] = text(value, chars_max)
        else:
            _other(field, value, attrs, counters, dimensions)
    event = beacon.event
    at_ms = client_ms(beacon.client_time_ms)
    offset = offset_ms(beacon.clock_offset_ms)
    server_ms = beacon.recv_time_ms if offset is None else at_ms + offset
    is_stamped, playhead_ms = beacon.sent_time_ms is not None, measured(beacon.playhead_ms)
    shows_playing = bool(counters) and not _PLAYED.isdisjoint(counters) and any(map(counters.get, _PLAYED))
    # In the order of the fields: a step whose fields are given by name costs twice as much.
    return Step(
        seq,
        at_ms,
        beacon.recv_time_ms,
        server_ms,
        offset,
        is_stamped,
        playhead_ms,
        counters,
        COUNTS_VIEW,
        dimensions,
        shows_playing,
        HEARTBEAT_MS,
        trusts_first=is_stamped,
        **_more(beacon, event, attrs),
    )


def _more(beacon: Beacon, event: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """What few beacons say. Each field of a step that is given costs time."""
    more = dict(_OF_EVENT.get(event, _NOTHING))
    if "video_source_bitrate" in attrs:
        more["bitrate_bps"] = bitrate_bps(attrs["video_source_bitrate"])
    # `viewend` repeats the last values: they are not of what is shown now.
    if "player_program_time" in attrs and event != "viewend":
        more["program_ms"] = _program_ms(attrs)
    match event:
        case "error":
            more["failure"] = mux_failure(attrs)
        case "ad":
            more["ad"] = ADS.get(beacon.source_event, 0)
        case "request":
            more["request"] = of_mux(beacon.source_event, attrs)
        case "background":
            more["sleeps"] = beacon.source_event == "devicesleep"
    return more


def _other(field: str, value: Any, attrs: Mapping[str, Any], counters: dict[str, Any], dims: dict[str, Any]) -> None:
    if field == "video_source_is_live":
        dims["stream_type"] = "live" if flag(value) else "vod"
    elif field == "video_stream_type":
        if "video_source_is_live" not in attrs:
            dims["stream_type"] = "live" if value == "live" else "vod"
    elif field == "video_playback_range":
        if isinstance(value, str) and len(value) <= RANGES_CHARS_MAX:
            counters["playback_ranges"] = value
    elif field == "player_autoplay_on":
        dims["autoplay"] = flag(value)
    elif field == "player_preload_on":
        # mux-embed sends the element's attribute, other clients whether there is one.
        dims["preload"] = value if value in _PRELOADS else "auto" if flag(value) else "none"


def mux_failure(attrs: Mapping[str, Any]) -> Failure:
    """What a mux beacon says of an error or a warning."""
    return Failure(
        code=text(attrs.get("player_error_code")),
        message=text_of("error_message", attrs.get("player_error_message")),
        context=text_of("error_context", attrs.get("player_error_context")),
        severity=text(attrs.get("player_error_severity")),
        business=flag(attrs.get("player_error_business_exception")),
    )


def _program_ms(attrs: Mapping[str, Any]) -> int:
    shown_ms = whole(attrs["player_program_time"])
    edge_ms = whole(attrs.get("player_live_edge_program_time"))
    return 0 if edge_ms and edge_ms - shown_ms > BEHIND_EDGE_MS_MAX else shown_ms
