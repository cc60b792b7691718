"""From a native or EPAS beacon to a step: sources whose beacons are put in order by the client's time.

Native attributes are named as the fields of the row (docs/view.md lists them). EPAS: Eyevinn player analytics specification
0.3 (bitrate in kbps); its `payload` may stand as it is or spread over the attributes.
"""

import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.mux import ADS
from services.processor.applications.video_views.beacons.step import COUNTS_VIEW, Failure, Step
from services.processor.applications.video_views.beacons.values import (
    all_measured,
    bitrate_bps,
    flag,
    offset_ms,
    text,
    text_of,
)
from services.processor.applications.video_views.bounds import (
    CHARS_MAX,
    CUSTOM_VALUES_MAX,
    NAME_CHARS_MAX,
    TEXT_CHARS_MAX,
)
from shared.client_values import client_ms, measured, scalar, whole
from shared.requests.reading import of_native
from shared.schemas.beacon import SEQ_MAX, Beacon

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
#: EPAS and players that lose the first beacon: these show a view too.
_BEGINS: Final = frozenset({"viewstart", "play", "playing"})


def _said_by(event: str) -> dict[str, Any]:
    # Numbers and truths: of a table without this type one of the two would be taken for the other where the module is compiled.
    fields: dict[str, Any] = {
        "state": _STATES.get(event, 0),
        "begins": event in _BEGINS,
        "ends": _ENDS.get(event, 0),
        "is_rendition": event == "rendition",
        "is_heartbeat": event == "heartbeat",
        "moves_playhead": event in ("seekstart", "seekend"),
        "is_warning": event == "warning",
        "reports_error": event == "error",
        "is_first_frame": event == "playing",
    }
    return {field: value for field, value in fields.items() if value}


#: What an event says by its name alone, as fields of the step that are not as by default.
_OF_EVENT: Final[Mapping[str, Mapping[str, Any]]] = {
    event: _said_by(event) for event in (*_STATES, "rendition", "heartbeat", "warning")
}
_NOTHING: Final[Mapping[str, Any]] = {}
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
_TEXT, _NUMBER, _NUMBER_AND_SIZE, _SIZE, _COUNTER, _OTHER = range(6)
#: Every name that means something beside what an error, a request and an ad say, with its kind and the most characters.
NATIVE_FIELDS: Final[Mapping[str, tuple[int, int]]] = {
    **{name: (_TEXT, CHARS_MAX.get(name, TEXT_CHARS_MAX)) for name in NATIVE_TEXTS},
    **dict.fromkeys(("video_duration_ms", "asn"), (_NUMBER, 0)),
    **dict.fromkeys(("player_width", "player_height"), (_NUMBER_AND_SIZE, 0)),
    **dict.fromkeys(("source_width", "source_height"), (_SIZE, 0)),
    **dict.fromkeys(("startup_ms", "player_startup_ms", "page_load_ms", "dropped_frames"), (_COUNTER, 0)),
    **dict.fromkeys(
        ("bitrate_bps", "live_latency_ms", "heartbeat_interval_ms", "autoplay", "stream_type", "custom"), (_OTHER, 0)
    ),
}

_EPAS_TEXTS: Final = {
    "contentId": "video_id",
    "contentTitle": "video_title",
    "contentUrl": "source_url",
    "userId": "viewer_user_id",
    "deviceId": "viewer_id",
    "deviceModel": "device",
}
_EPAS_NUMBERS: Final = {"duration": "video_duration_ms"}
_EPAS_SIZES: Final = {"width": "source_width", "height": "source_height"}


def native_step(beacon: Beacon) -> Step:
    """The step that a native beacon means for its view."""
    attrs = beacon.attrs
    dimensions: dict[str, Any] = {}
    counters: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    more: dict[str, Any] = {}
    known = NATIVE_FIELDS.get
    # Most beacons have few attributes: what is there is looked up, not what could be.
    for name, value in attrs.items():
        found = known(name)
        if found is None:
            continue
        kind, chars_max = found
        if kind == _TEXT:
            dimensions[name] = text(value, chars_max)
        elif kind == _OTHER:
            _native_other(name, value, dimensions, more)
        elif (number := measured(scalar(value))) is not None:
            if kind == _COUNTER:
                counters[name] = number
            if kind in (_NUMBER, _NUMBER_AND_SIZE):
                dimensions[name] = number
            if kind in (_SIZE, _NUMBER_AND_SIZE):
                sizes[name] = number
    if beacon.event == "error":
        more["failure"] = native_failure(attrs)
    elif beacon.event == "request":
        more["request"] = of_native(attrs)
    return _step(beacon, dimensions, counters, sizes, more)


def _native_other(name: str, value: Any, dimensions: dict[str, Any], more: dict[str, Any]) -> None:
    match name:
        case "bitrate_bps":
            more["bitrate_bps"] = bitrate_bps(value)
        case "live_latency_ms":
            more["latency_ms"] = measured(value)
        case "heartbeat_interval_ms":
            more["heartbeat_ms"] = whole(value)
        case "autoplay":
            dimensions["autoplay"] = flag(value)
        case "stream_type" if value in ("live", "vod"):
            dimensions["stream_type"] = value
        case "custom" if isinstance(value, dict):
            named = list(value.items())[:CUSTOM_VALUES_MAX]
            dimensions["custom"] = {str(key)[:NAME_CHARS_MAX]: str(one)[:TEXT_CHARS_MAX] for key, one in named}


def native_failure(attrs: Mapping[str, Any]) -> Failure:
    """What a native beacon says of an error or a warning."""
    return Failure(
        code=text(attrs.get("error_code")),
        message=text_of("error_message", attrs.get("error_message")),
        context=text_of("error_context", attrs.get("error_context")),
        severity=text(attrs.get("error_severity")),
        business=flag(attrs.get("business_exception")),
    )


def epas_step(beacon: Beacon) -> Step:
    """The step that an EPAS event means for its view."""
    payload = beacon.attrs.get("payload")
    attrs = {**beacon.attrs, **payload} if isinstance(payload, dict) else beacon.attrs
    dimensions: dict[str, Any] = {
        field: text_of(field, attrs[name]) for name, field in _EPAS_TEXTS.items() if attrs.get(name)
    }
    if isinstance(attrs.get("live"), bool):
        dimensions["stream_type"] = "live" if attrs["live"] else "vod"
    # The collector has made milliseconds of what SDKs report in seconds.
    dimensions |= all_measured(attrs, _EPAS_NUMBERS)
    more: dict[str, Any] = {}
    if beacon.event == "error":
        more["failure"] = Failure(
            code=text(attrs.get("code")),
            message=text_of("error_message", attrs.get("message")),
            context=text_of("error_context", attrs.get("category")),
        )
    elif beacon.event == "viewend" and beacon.attrs.get("reason") == "ended":
        more["shows_playing"] = True
    if "bitrate" in attrs:
        more["bitrate_bps"] = bitrate_bps(attrs["bitrate"], 1_000)
    return _step(beacon, dimensions, {}, all_measured(attrs, _EPAS_SIZES), more)


def _step(
    beacon: Beacon, dimensions: dict[str, Any], counters: dict[str, Any], sizes: dict[str, int], more: dict[str, Any]
) -> Step:
    """The step of a beacon; `more` are the fields that few beacons give. Each field of a step that is given costs time."""
    event = beacon.event
    at_ms, offset = client_ms(beacon.client_time_ms), offset_ms(beacon.clock_offset_ms)
    if event == "ad":
        more["ad"] = ADS.get(_ad_event(beacon), 0)
    if sizes:
        more["sizes"] = sizes
    # In the order of the fields: a step whose fields are given by name costs twice as much.
    return Step(
        beacon.seq if beacon.seq is not None and 0 < beacon.seq <= SEQ_MAX else 0,
        at_ms,
        beacon.recv_time_ms,
        beacon.recv_time_ms if offset is None else at_ms + offset,
        offset,
        beacon.sent_time_ms is not None,
        measured(beacon.playhead_ms),
        counters,
        COUNTS_VIEW,
        dimensions,
        tie=_tie(beacon),
        **_OF_EVENT.get(event, _NOTHING),
        **more,
    )


def _ad_event(beacon: Beacon) -> str:
    return str(beacon.attrs.get("ad_event"))


def _tie(beacon: Beacon) -> int:
    said = (beacon.source_event, beacon.seq, beacon.playhead_ms, beacon.attrs)
    digest = zlib.crc32(msgspec.json.encode(said, order="sorted"))
    rank = _RANKS.get(beacon.event, _RANK_BETWEEN)
    within = _AD_RANKS.get(_ad_event(beacon), _AD_RANK_LAST) if beacon.event == "ad" else 0
    return (rank << 3 | within) << 32 | digest
