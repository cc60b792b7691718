"""From a native or EPAS beacon to a step: sources whose beacons are put in order by the client's time.

Native attributes are named as the fields of the row (docs/view.md lists them). EPAS: Eyevinn player analytics specification
0.3 (bitrate in kbps); its `payload` may stand as it is or spread over the attributes.
"""

import zlib
from typing import Any, Final

import msgspec

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.mux import ADS
from services.processor.applications.video_views.beacons.step import Failure, Request, Step
from services.processor.applications.video_views.beacons.values import (
    all_measured,
    bitrate_bps,
    flag,
    measured,
    offset_ms,
    text,
    text_of,
    whole,
)
from services.processor.applications.video_views.bounds import (
    CUSTOM_VALUES_MAX,
    NAME_CHARS_MAX,
    SEQ_MAX,
    TEXT_CHARS_MAX,
)
from shared.schemas.beacon import Beacon

_STATES: Final = {
    "viewstart": step.STARTING,
    "play": step.WANTED,
    "playing": step.PLAYING,
    "pause": step.PAUSED,
    "rebufferstart": step.REBUFFERING,
    "rebufferend": step.STALL_OVER,
    "seekstart": step.SEEKING,
    "seekend": step.BEFORE_SEEK,
    "ended": step.ENDED,
    "viewend": step.ENDED,
    "error": step.FAILED,
}
_ENDS: Final = {"ended": step.PLAYED_OUT, "viewend": step.CLEAN_EXIT}
#: What happened in one millisecond, in this order; all else stands between the last `playing` and `pause`.
_RANKS: Final = {
    "viewstart": 0,
    "play": 1,
    "rendition": 2,
    "seekend": 3,
    "rebufferend": 4,
    "playing": 5,
    "pause": 7,
    "rebufferstart": 8,
    "seekstart": 9,
    "error": 10,
    "ended": 11,
    "viewend": 12,
}
_RANK_BETWEEN: Final = 6
_AD_RANKS: Final = {
    name: rank for rank, name in enumerate(("adbreakstart", "adplay", "adplaying", "adpause", "adended"))
}
_AD_RANK_LAST: Final = 7
#: EPAS and players that lose the first beacon: these show a view too.
_BEGINS: Final = frozenset({"viewstart", "play", "playing"})

NATIVE_TEXTS: Final = (
    "session_id",
    "viewer_id",
    "viewer_user_id",
    "player_instance_id",
    "video_id",
    "video_title",
    "video_series",
    "source_url",
    "source_host",
    "cdn",
    "player_name",
    "player_software",
    "player_version",
    "preload",
    "device",
    "os",
    "browser",
    "connection",
    "country",
    "region",
    "city",
    "page_url",
    "sub_property",
    "experiment",
)
NATIVE_NUMBERS: Final = {name: name for name in ("video_duration_ms", "player_width", "player_height", "asn")}
NATIVE_COUNTERS: Final = {name: name for name in ("startup_ms", "player_startup_ms", "page_load_ms", "dropped_frames")}
NATIVE_SIZES: Final = {name: name for name in ("player_width", "player_height", "source_width", "source_height")}
NATIVE_REQUEST_OUTCOMES: Final = {
    "completed": step.COMPLETED,
    "failed": step.REQUEST_FAILED,
    "canceled": step.CANCELED,
}

_EPAS_TEXTS: Final = {
    "contentId": "video_id",
    "contentTitle": "video_title",
    "contentUrl": "source_url",
    "userId": "viewer_user_id",
    "deviceId": "viewer_id",
    "deviceModel": "device",
}
_EPAS_SIZES: Final = {"width": "source_width", "height": "source_height"}


def native_step(beacon: Beacon) -> Step:
    """What a native beacon says of its view."""
    attrs = beacon.attrs
    dimensions: dict[str, Any] = {name: text_of(name, attrs[name]) for name in NATIVE_TEXTS if name in attrs}
    dimensions |= all_measured(attrs, NATIVE_NUMBERS)
    if "autoplay" in attrs:
        dimensions["autoplay"] = flag(attrs["autoplay"])
    if attrs.get("stream_type") in ("live", "vod"):
        dimensions["stream_type"] = attrs["stream_type"]
    if isinstance(attrs.get("custom"), dict):
        named = list(attrs["custom"].items())[:CUSTOM_VALUES_MAX]
        dimensions["custom"] = {str(name)[:NAME_CHARS_MAX]: str(value)[:TEXT_CHARS_MAX] for name, value in named}
    return _step(
        beacon,
        dimensions,
        counters=all_measured(attrs, NATIVE_COUNTERS),
        rate_bps=bitrate_bps(attrs.get("bitrate_bps")),
        failure=Failure(
            code=text(attrs.get("error_code")),
            message=text_of("error_message", attrs.get("error_message")),
            context=text_of("error_context", attrs.get("error_context")),
            severity=text(attrs.get("error_severity")),
            business=flag(attrs.get("business_exception")),
        ),
        request=_native_request(attrs) if beacon.event == "request" else None,
        latency_ms=measured(attrs.get("live_latency_ms")),
        heartbeat_ms=whole(attrs.get("heartbeat_interval_ms")),
        sizes=all_measured(attrs, NATIVE_SIZES),
    )


def epas_step(beacon: Beacon) -> Step:
    """What an EPAS event says of its view."""
    payload = beacon.attrs.get("payload")
    attrs = {**beacon.attrs, **payload} if isinstance(payload, dict) else beacon.attrs
    dimensions: dict[str, Any] = {
        field: text_of(field, attrs[name]) for name, field in _EPAS_TEXTS.items() if attrs.get(name)
    }
    if isinstance(attrs.get("live"), bool):
        dimensions["stream_type"] = "live" if attrs["live"] else "vod"
    # The collector has made milliseconds of what SDKs report in seconds.
    dimensions |= all_measured(attrs, {"duration": "video_duration_ms"})
    return _step(
        beacon,
        dimensions,
        rate_bps=bitrate_bps(attrs.get("bitrate"), 1_000),
        failure=Failure(
            code=text(attrs.get("code")),
            message=text_of("error_message", attrs.get("message")),
            context=text_of("error_context", attrs.get("category")),
        ),
        sizes=all_measured(attrs, _EPAS_SIZES),
    )


def _step(
    beacon: Beacon,
    dimensions: dict[str, Any],
    *,
    rate_bps: int,
    failure: Failure,
    sizes: dict[str, int],
    counters: dict[str, Any] | None = None,
    request: Request | None = None,
    latency_ms: int | None = None,
    heartbeat_ms: int = 0,
) -> Step:
    event = beacon.event
    at_ms, offset = whole(beacon.client_time_ms), offset_ms(beacon.clock_offset_ms)
    return Step(
        seq=beacon.seq if beacon.seq is not None and 0 < beacon.seq <= SEQ_MAX else 0,
        at_ms=at_ms,
        state=_STATES.get(event, 0),
        begins=event in _BEGINS,
        ends=_ENDS.get(event, 0),
        is_rendition=event == "rendition",
        playhead=measured(beacon.playhead_ms),
        bitrate_bps=rate_bps,
        counters=counters or {},
        dimensions=dimensions,
        failure=failure if event == "error" else None,
        tie=_tie(beacon),
        clock_offset_ms=offset,
        recv_ms=beacon.recv_time_ms,
        server_ms=beacon.recv_time_ms if offset is None else at_ms + offset,
        is_stamped=beacon.sent_time_ms is not None,
        heartbeat_ms=heartbeat_ms,
        is_heartbeat=event == "heartbeat",
        moves_playhead=event in ("seekstart", "seekend"),
        ad=ADS.get(_ad_event(beacon), 0) if event == "ad" else 0,
        request=request,
        latency_ms=latency_ms,
        sizes=sizes,
        is_warning=event == "warning",
        reports_error=event == "error",
        is_first_frame=event == "playing",
        shows_playing=beacon.source == "epas" and event == "viewend" and beacon.attrs.get("reason") == "ended",
    )


def _ad_event(beacon: Beacon) -> str:
    return str(beacon.attrs.get("ad_event"))


def _tie(beacon: Beacon) -> int:
    said = (beacon.source_event, beacon.seq, beacon.playhead_ms, beacon.attrs)
    digest = zlib.crc32(msgspec.json.encode(said, order="sorted"))
    rank = _RANKS.get(beacon.event, _RANK_BETWEEN)
    within = _AD_RANKS.get(_ad_event(beacon), _AD_RANK_LAST) if beacon.event == "ad" else 0
    return (rank << 3 | within) << 32 | digest


def _native_request(attrs: dict[str, Any]) -> Request:
    return Request(
        outcome=NATIVE_REQUEST_OUTCOMES.get(str(attrs.get("request_outcome")), step.COMPLETED),
        start_ms=0,
        first_byte_ms=measured(attrs.get("request_ttfb_ms")),
        end_ms=measured(attrs.get("request_ms")),
        size_bytes=measured(attrs.get("request_bytes")),
    )
