"""A session as mux-embed 5.19 sends it: delta-encoded events in its envelope, counters of its own.

Source: `loadtest/clients/mux.py` and the package's published code.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from loadtest.clients.wire import shorten
from tests.oracle.rows.meter import Meter, walk
from tests.oracle.rows.requests import CUSTOMER, T0, Request, Said, batched
from tests.oracle.sessions.viewer import Moment, Play, Session

HEARTBEAT_MS: Final = 10_000
_EVENTS: Final[dict[str, tuple[str, ...]]] = {
    "load": ("playerready",),
    "start": ("viewstart", "renditionchange", "play"),
    "playing": ("playing",),
    "pause": ("pause",),
    "resume": ("play", "playing"),
    "stall": ("rebufferstart",),
    "unstall": ("rebufferend",),
    "seek": ("seeking",),
    "seeked": ("seeked",),
    "rendition": ("renditionchange",),
    "rate": ("ratechange",),
    "warning": ("error",),
    "error": ("error",),
    "wake": ("devicesleep", "devicewake"),
    "ended": ("pause", "ended"),
    "close": ("viewend",),
    "beat": ("hb",),
    "adresume": ("adplaying",),
    "adbreakstart": ("adbreakstart",),
    "adplay": ("adplay",),
    "adplaying": ("adplaying",),
    "adpause": ("adpause",),
    "adended": ("adended",),
    "aderror": ("aderror",),
    "adbreakend": ("adbreakend",),
}
_URGENT: Final = frozenset({"viewstart", "ended", "viewend"})
_ALWAYS: Final = frozenset(
    {
        "env_key",
        "view_id",
        "view_sequence_number",
        "player_sequence_number",
        "player_playhead_time",
        "viewer_time",
        "event",
        "video_id",
        "view_playing_time_ms_cumulative",
        "ad_playing_time_ms_cumulative",
        "player_error_code",
        "player_error_severity",
        "player_error_business_exception",
    }
)
_HEIGHTS: Final = {400_000: 240, 900_000: 480, 1_800_000: 720, 3_200_000: 1080, 6_000_000: 2160}
_OUTCOMES: Final = ("requestcompleted", "requestcompleted", "requestfailed", "requestcanceled")


def requests(session: Session) -> list[Request]:
    """The POSTs of a session, in the order in which they are sent."""

    def body(events: Sequence[object], at_ms: int) -> bytes:
        metadata = {"transmission_timestamp": T0 + session.clock_ms(at_ms)}
        return orjson.dumps({"metadata": metadata, "events": events})

    said = (one for play in session.plays for one in _events(session, play))
    return batched(said, HEARTBEAT_MS, "mux", body, session)


def _events(session: Session, play: Play) -> Iterator[Said]:
    sent: dict[str, Any] = {}
    number = 0
    for moment, meter in walk(play, HEARTBEAT_MS, ("starting", "playing", "rebuffering", "seeking", "ad")):
        names = _EVENTS.get(moment.kind, ())
        if session.reports_requests and moment.kind == "tick":
            names = (_OUTCOMES[moment.at_ms % len(_OUTCOMES)],)
        for name in names:
            number += 1
            clock_ms = T0 + session.clock_ms(moment.at_ms)
            fields = _fields(session, play, moment, meter, clock_ms)
            fields |= {"event": name, "view_sequence_number": number, "player_sequence_number": number}
            is_full = number == 1 or name in ("viewstart", "viewend")
            changed = {k: v for k, v in fields.items() if is_full or k in _ALWAYS or sent.get(k) != v}
            sent |= fields
            if name.startswith("request"):
                changed |= _request(moment.at_ms, clock_ms)
            yield Said(moment.at_ms, shorten(changed), name in _URGENT or moment.kind == "error")


def _fields(session: Session, play: Play, moment: Moment, meter: Meter, clock_ms: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "env_key": CUSTOMER,
        "view_id": play.view_id,
        "viewer_time": clock_ms,
        "video_id": play.video_id,
        "video_cdn": "fastly" if moment.number % 3 else "akamai",
        "video_source_is_live": play.live,
        "player_name": "main",
        "player_width": 1280,
        "player_height": 720,
        "mux_viewer_id": session.id,
        "custom_1": "x",
        "video_title": play.video_id.upper(),
        "page_url": "https://www.example.com/watch",
        **({} if play.live else {"video_source_duration": 5_400_000}),
        "player_playhead_time": meter.playhead_ms,
    }
    if meter.state == "idle":
        return fields
    playing_ms = meter.in_state_ms["playing"]
    fields |= {
        "view_start": clock_ms if moment.kind == "start" else T0 + session.clock_ms(meter.started_ms),
        "view_watch_time": meter.watch_ms,
        "view_playing_time_ms_cumulative": playing_ms,
        "view_max_playhead_position": meter.max_playhead_ms,
        "video_source_bitrate": meter.bitrate_bps,
        "video_source_height": _HEIGHTS[meter.bitrate_bps],
        "view_dropped_frame_count": playing_ms // 5_000,
    }
    if meter.startup_ms is not None:
        fields |= {
            "view_time_to_first_frame": meter.startup_ms,
            "view_content_playback_time": playing_ms,
            "view_total_content_playback_time": playing_ms,
            "view_total_upscaling": playing_ms / 4,
            "view_max_upscale_percentage": 0.25,
        }
    if meter.in_state_ms["ad"]:
        fields["ad_playing_time_ms_cumulative"] = meter.in_state_ms["ad"]
    if meter.stalls:
        fields |= {"view_rebuffer_count": len(meter.stalls), "view_rebuffer_duration": sum(meter.stalls)}
    if meter.seeks:
        fields |= {
            "view_seek_count": len(meter.seeks),
            "view_seek_duration": sum(meter.seeks),
            "view_max_seek_time": max(meter.seeks),
        }
    if play.live:
        fields |= {
            "player_program_time": T0 + moment.at_ms - 8_000 - playing_ms % 900,
            "player_live_edge_program_time": T0 + moment.at_ms - 2_000,
        }
    return fields | _error(session, meter)


def _error(session: Session, meter: Meter) -> dict[str, Any]:
    if meter.error is None:
        return {}
    return {
        "player_error_code": int(meter.error.text),
        "player_error_message": f"failed with {meter.error.text}",
        "player_error_severity": "fatal" if meter.error.kind == "error" else "warning",
        "player_error_business_exception": meter.error.kind == "error" and session.number % 7 == 0,
    }


def _request(at_ms: int, clock_ms: int) -> dict[str, int]:
    took_ms = 60 + at_ms % 700
    return {
        "request_start": clock_ms - took_ms,
        "request_response_start": clock_ms - took_ms + at_ms % 50,
        "request_response_end": clock_ms,
        "request_bytes_loaded": 1_000 * took_ms,
    }
