"""From a CMCD record to a step. Names and units are those of CMCD v2 (CTA-5004-B): times in ms, bitrates in kbps."""

from typing import Any, Final

from services.processor.applications.video_views.beacons import step
from services.processor.applications.video_views.beacons.step import Failure, Request, Step
from services.processor.applications.video_views.beacons.values import (
    all_measured,
    measured,
    offset_ms,
    scalar,
    text,
    text_of,
    video_entry,
    whole,
)
from services.processor.applications.video_views.bounds import BITRATE_BPS_MAX, REQUEST_MS_MAX
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
_ENDS: Final = {"e": step.PLAYED_OUT, "q": step.CLEAN_EXIT}
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
    """What a CMCD record says of its view."""
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
    # Not every player tells its state: this one does when the first frame has come.
    only_tells_start = not sta and measured(scalar(attrs.get("msd"))) is not None
    is_error = beacon.event == "error"
    is_own_event = is_error and attrs.get("e") == "ce"
    is_fatal = sta == "f" or is_own_event
    code = None
    if is_own_event:
        code = text(str(attrs.get("cen")).partition(":")[2])
    elif is_error or is_fatal:
        code = text(scalar(attrs.get("ec")))
    at_ms = whole(beacon.client_time_ms)
    stalls = _stalls(attrs.get("bsd"))
    offset = offset_ms(beacon.clock_offset_ms)
    return Step(
        seq=seq,
        at_ms=at_ms,
        state=_state(sta, is_request=is_request, is_fatal=is_fatal, only_tells_start=only_tells_start),
        begins=only_tells_start or (not is_request and sta in _STATES),
        ends=_ENDS.get(sta, 0),
        is_timed=not is_request,
        # dash.js tells of no change, but with everything what is on screen.
        is_rendition=beacon.event == "rendition" or ("pb" in attrs and not is_request),
        playhead=measured(beacon.playhead_ms),
        bitrate_bps=0 if is_request else min(video_entry(attrs.get("pb", attrs.get("br"))) * 1000, BITRATE_BPS_MAX),
        counters=_counters(attrs, sta),
        dimensions=dimensions,
        failure=Failure(code=code) if code is not None else None,
        told_ms=min(at_ms + whole(scalar(attrs.get("ttlb"))), at_ms + REQUEST_MS_MAX) if is_request else at_ms,
        clock_offset_ms=offset,
        recv_ms=beacon.recv_time_ms,
        server_ms=beacon.recv_time_ms if offset is None else at_ms + offset,
        is_stamped=beacon.sent_time_ms is not None,
        is_heartbeat=beacon.event == "heartbeat",
        moves_playhead=sta == "k",
        ad=_ADS.get(beacon.source_event.partition(":")[0], 0) if beacon.event == "ad" else 0,
        request=_request(attrs, at_ms) if is_request else None,
        latency_ms=measured(scalar(attrs.get("ltc"))),
        is_error=is_error and not is_fatal,
        judges_errors=True,
        reports_error=is_error and attrs.get("e") in ("e", "ce"),
        tells_state=sta in _STATES and not is_request,
        is_first_frame=beacon.event == "playing",
        shows_playing=sta == "p",
        stall_count=len(stalls),
        stall_ms=min(sum(stalls), NUMBER_MAX),
    )


def _state(sta: str, *, is_request: bool, is_fatal: bool, only_tells_start: bool) -> int:
    if only_tells_start:
        return step.PLAYING
    if is_request:
        return 0
    return step.FAILED if is_fatal else _STATES.get(sta, 0)


def _counters(attrs: dict[str, Any], sta: str) -> dict[str, int]:
    counters = all_measured(attrs, _COUNTERS)
    if sta in _BEFORE_FIRST_FRAME:
        # dash.js 5.2 tells a start-up time of a few ms then, measured before there is anything to see.
        counters.pop("startup_ms", None)
    return counters


def _stalls(told: Any) -> list[int]:
    """The length of each stall in `bsd`: a list with an entry a stall, or one number."""
    entries = (
        [entry[0] if isinstance(entry, list) and entry else entry for entry in told]
        if isinstance(told, list)
        else [told]
    )
    return [length_ms for entry in entries if (length_ms := whole(entry)) > 0]


def _request(attrs: dict[str, Any], at_ms: int) -> Request:
    status = whole(scalar(attrs["rc"])) if "rc" in attrs else 200
    first_ms, last_ms = measured(scalar(attrs.get("ttfb"))), measured(scalar(attrs.get("ttlb")))
    if first_ms is not None and first_ms > (REQUEST_MS_MAX if last_ms is None else last_ms):
        # dash.js 5.2 tells a time since 1970 where the browser has measured none.
        first_ms = None
    return Request(
        outcome=step.COMPLETED if 0 < status < 400 else step.REQUEST_FAILED,
        start_ms=at_ms,
        first_byte_ms=None if first_ms is None else at_ms + first_ms,
        end_ms=None if last_ms is None else at_ms + last_ms,
    )
