"""From a CMCD record to a step. Names and units are those of CMCD v2 (CTA-5004-B): times in ms, bitrates in kbps."""

from collections.abc import Mapping
from typing import Any, Final

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Failure, Step
from services.processor.applications.video_views.beacons.values import (
    all_measured,
    offset_ms,
    text,
    text_of,
    video_entry,
)
from services.processor.applications.video_views.bounds import BITRATE_BPS_MAX
from shared.client_values import client_ms, measured, scalar, whole
from shared.requests.reading import of_cmcd
from shared.requests.request import REQUEST_MS_MAX
from shared.schemas.beacon import Beacon
from shared.schemas.view import NUMBER_MAX

_STATES: Final = {
    "s": step.STARTING,
    "p": step.PLAYING,
    "k": step.SEEKING,
    "r": step.REBUFFERING,
    "w": step.REBUFFERING,
    "a": step.PAUSED,
    "e": step.ENDED,
    "q": step.ENDED,
    "f": step.FAILED,
}
_BEFORE_FIRST_FRAME: Final = frozenset({"s", "d"})
#: What a state and an event say by themselves, by field of the step.
_OF_STATE: Final[Mapping[str, Mapping[str, Any]]] = {
    "e": {"ends": step.PLAYED_OUT},
    "q": {"ends": step.CLEAN_EXIT},
    "k": {"moves_playhead": True},
}
_OF_EVENT: Final[Mapping[str, Mapping[str, Any]]] = {
    "rendition": {"is_rendition": True},
    "playing": {"is_first_frame": True},
    "request": {"is_timed": False},
}
_NOTHING: Final[Mapping[str, Any]] = {}
_STREAM_TYPES: Final = {"v": "vod", "l": "live", "ll": "live"}
_ADS: Final = {
    "abs": step.AD_BREAK_BEGINS,
    "abe": step.AD_BREAK_ENDS,
    "as": step.AD_PLAYING,
    "ae": step.AD_ENDED,
    "sk": step.AD_ENDED,
}
_COUNTERS: Final = {"msd": "startup_ms", "bsa": "rebuffer_count", "bsda": "rebuffer_ms", "dfa": "dropped_frames"}


def cmcd_step(beacon: Beacon, seq: int) -> Step:
    """The step that a CMCD record means for its view."""
    attrs = beacon.attrs
    sta = str(attrs.get("sta", ""))
    dimensions: dict[str, Any] = {}
    if "cid" in attrs:
        dimensions["video_id"] = text(attrs["cid"])
    if "h" in attrs:
        dimensions["source_host"] = text(attrs["h"])
    if "cdn" in attrs:
        dimensions["cdn"] = text_of("cdn", attrs["cdn"])
    # Any key may be a list, and a list is no key of a mapping.
    stream_type = _STREAM_TYPES.get(str(scalar(attrs.get("st"))))
    if stream_type is not None:
        dimensions["stream_type"] = stream_type
    # The time, bitrate and state of a request are those of its start and its object, not of what plays.
    is_request = beacon.event == "request"
    # Not every player sends its state: this one reports its start-up time when the first frame has come.
    only_reports_start = not sta and measured(scalar(attrs.get("msd"))) is not None
    is_error = beacon.event == "error"
    is_own_event = is_error and attrs.get("e") == "ce"
    is_fatal = sta == "f" or is_own_event
    code = None
    if is_own_event:
        code = text(str(attrs.get("cen")).partition(":")[2])
    elif is_error or is_fatal:
        code = text(scalar(attrs.get("ec")))
    at_ms = client_ms(beacon.client_time_ms)
    offset = offset_ms(beacon.clock_offset_ms)
    return Step(
        seq=seq,
        at_ms=at_ms,
        recv_ms=beacon.recv_time_ms,
        server_ms=beacon.recv_time_ms if offset is None else at_ms + offset,
        clock_offset_ms=offset,
        playhead=measured(beacon.playhead_ms),
        counters=_counters(attrs, sta),
        counts_session=True,
        dimensions=dimensions,
        shows_playing=sta == "p",
        state=_state(sta, is_request=is_request, is_fatal=is_fatal, only_reports_start=only_reports_start),
        reported_ms=min(at_ms + whole(scalar(attrs.get("ttlb"))), at_ms + REQUEST_MS_MAX) if is_request else at_ms,
        bitrate_bps=0 if is_request else min(video_entry(attrs.get("pb", attrs.get("br"))) * 1000, BITRATE_BPS_MAX),
        judges_errors=True,
        reports_state=sta in _STATES and not is_request,
        is_heartbeat=beacon.event == "heartbeat",
        begins=only_reports_start or (not is_request and sta in _STATES),
        **_more(beacon, sta, at_ms, code=code, is_fatal=is_fatal),
    )


def _more(beacon: Beacon, sta: str, at_ms: int, *, code: str | None, is_fatal: bool) -> dict[str, Any]:
    """What few beacons say. Each field of a step that is given costs time."""
    attrs, event = beacon.attrs, beacon.event
    more = dict(_OF_EVENT.get(event, _NOTHING))
    if event == "request":
        more["request"] = of_cmcd(attrs, at_ms)
        more["reports_error"] = "ec" in attrs
    elif "pb" in attrs:
        # dash.js reports no change of the bitrate, but with every record the bitrate that is shown.
        more["is_rendition"] = True
    if event == "ad":
        more["ad"] = _ADS.get(beacon.source_event.partition(":")[0], 0)
    elif event == "error":
        more["is_error"] = not is_fatal
        more["reports_error"] = attrs.get("e") in ("e", "ce")
    if code is not None:
        more["failure"] = Failure(code=code)
    if sta in _OF_STATE:
        more |= _OF_STATE[sta]
    if "ltc" in attrs:
        more["latency_ms"] = measured(scalar(attrs["ltc"]))
    if "bsd" in attrs:
        stalls = _stalls(attrs["bsd"])
        more["stall_count"], more["stall_ms"] = len(stalls), min(sum(stalls), NUMBER_MAX)
    if beacon.sent_time_ms is not None:
        more["is_stamped"] = True
    return more


def _state(sta: str, *, is_request: bool, is_fatal: bool, only_reports_start: bool) -> int:
    if only_reports_start:
        return step.PLAYING
    if is_request:
        return 0
    return step.FAILED if is_fatal else _STATES.get(sta, 0)


def _counters(attrs: dict[str, Any], sta: str) -> dict[str, int]:
    counters = all_measured(attrs, _COUNTERS)
    if sta in _BEFORE_FIRST_FRAME:
        # dash.js 5.2 sends a start-up time of a few ms then, measured before there is anything to see.
        counters.pop("startup_ms", None)
    return counters


def _stalls(value: Any) -> list[int]:
    """The length of each stall in `bsd`: a list with an entry a stall, or one number."""
    entries = (
        [entry[0] if isinstance(entry, list) and entry else entry for entry in value]
        if isinstance(value, list)
        else [value]
    )
    return [length_ms for entry in entries if (length_ms := whole(entry)) > 0]
