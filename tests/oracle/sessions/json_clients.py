"""A session as the EPAS web SDK and as a page with the native format send it."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from tests.oracle.rows.meter import Meter, walk
from tests.oracle.rows.requests import T0, Request, Said, batched
from tests.oracle.sessions.viewer import Moment, Play, Session

EPAS_HEARTBEAT_MS: Final = 30_000
NATIVE_HEARTBEAT_MS: Final = 10_000
_EPAS: Final[dict[str, tuple[str, ...]]] = {
    "load": ("init", "metadata"),
    "start": ("loading",),
    "playing": ("playing",),
    "resume": ("playing",),
    "pause": ("paused",),
    "stall": ("buffering",),
    "unstall": ("buffered",),
    "seek": ("seeking",),
    "seeked": ("seeked",),
    "rendition": ("bitrate_changed",),
    "warning": ("warning",),
    "error": ("error",),
    "ended": ("stopped",),
    "beat": ("heartbeat",),
}
_NATIVE: Final[dict[str, tuple[str, ...]]] = {
    "start": ("viewstart",),
    "playing": ("playing",),
    "resume": ("play", "playing"),
    "pause": ("pause",),
    "stall": ("rebufferstart",),
    "unstall": ("rebufferend",),
    "seek": ("seekstart",),
    "seeked": ("seekend",),
    "rendition": ("rendition",),
    "warning": ("warning",),
    "error": ("error",),
    "ended": ("ended",),
    "close": ("viewend",),
    "beat": ("heartbeat",),
    "rate": ("custom",),
} | dict.fromkeys(
    ("adbreakstart", "adplay", "adplaying", "adresume", "adpause", "adended", "aderror", "adbreakend"), ("ad",)
)


def epas_requests(session: Session) -> list[Request]:
    """One POST an event. The SDK counts seconds; -1 is a playhead that it does not know."""
    requests = []
    for play in session.plays:
        for moment, meter in walk(play, EPAS_HEARTBEAT_MS, ("starting", "playing", "paused", "rebuffering", "seeking")):
            for name in _EPAS.get(moment.kind, ()):
                event = {
                    "event": name,
                    "sessionId": play.view_id,
                    "timestamp": T0 + session.clock_ms(moment.at_ms),
                    "playhead": meter.playhead_ms / 1_000 if meter.has_played else -1,
                    "duration": 5_400 if not play.live else -1,
                }
                payload = _epas_payload(name, session, play, moment, meter)
                if payload:
                    event["payload"] = payload
                requests.append(Request(moment.at_ms, "epas", orjson.dumps(event)))
    return requests


def _epas_payload(name: str, session: Session, play: Play, moment: Moment, meter: Meter) -> dict[str, Any]:
    match name:
        case "metadata":
            return {"contentId": play.video_id, "live": play.live} | (
                {"deviceModel": "tv"} if "cid" in session.habits else {}
            )
        case "bitrate_changed":
            return {"bitrate": meter.bitrate_bps // 1_000, "width": 1280, "height": 720}
        case "error" | "warning":
            return {"category": "NETWORK", "code": moment.text, "message": "failed"}
        case "stopped":
            return {"reason": "ended"}
        case _:
            return {}


def native_requests(session: Session) -> list[Request]:
    """Batches of up to 10 s; what ends or begins a view goes at once."""

    def body(beacons: Sequence[object], at_ms: int) -> bytes:
        return orjson.dumps({"sent_time_ms": T0 + session.clock_ms(at_ms), "beacons": beacons})

    said = (one for play in session.plays for one in _native(session, play))
    return batched(said, NATIVE_HEARTBEAT_MS, "native", body, session)


def _native(session: Session, play: Play) -> Iterator[Said]:
    number = 0
    states = ("starting", "playing", "rebuffering", "seeking", "ad", "ad paused", "ad waiting")
    for moment, meter in walk(play, NATIVE_HEARTBEAT_MS, states):
        names = _NATIVE.get(moment.kind, ())
        if session.reports_requests and moment.kind == "tick":
            names = ("request",)
        for name in names:
            number += 1
            beacon: dict[str, Any] = {
                "view_id": play.view_id,
                "event": name,
                "time_ms": T0 + session.clock_ms(moment.at_ms),
                "attrs": _native_attrs(session, name, play, moment, meter),
            }
            if "pt" in session.habits:
                beacon["playhead_ms"] = meter.playhead_ms
            if session.client == "native":
                beacon["seq"] = number
            yield Said(moment.at_ms, beacon, name in ("viewstart", "ended", "viewend", "error"))


def _native_attrs(session: Session, name: str, play: Play, moment: Moment, meter: Meter) -> dict[str, Any]:
    match name:
        case "viewstart":
            sizes = {"player_width": 1280, "player_height": 720, "source_width": 640, "source_height": 360}
            return {
                "video_id": play.video_id,
                "stream_type": "live" if play.live else "vod",
                "bitrate_bps": meter.bitrate_bps,
                **({"device": "tv"} if "cid" in session.habits else {}),
                "video_title": play.video_id.upper(),
                "page_url": "https://www.example.com/watch",
                "connection": "wifi",
                "experiment": "a",
                "page_load_ms": 345,
                "autoplay": play.live,
                **(sizes if "pb" in session.habits else {}),
            }
        case "playing" if "msd" in session.habits and meter.startup_ms is not None:
            return {"startup_ms": meter.startup_ms}
        case "rendition":
            return {"bitrate_bps": meter.bitrate_bps, "cdn": "fastly" if moment.at_ms % 2 else "akamai"}
        case "request":
            took_ms = 60 + moment.at_ms % 700
            outcome = ("completed", "completed", "failed", "canceled")[moment.at_ms % 4]
            return {
                "request_outcome": outcome,
                "request_ms": took_ms,
                "request_ttfb_ms": took_ms // 3,
                "request_bytes": 999,
            }
        case "error" | "warning":
            return {
                "error_code": moment.text,
                "error_message": "failed",
                "business_exception": name == "error" and session.number % 7 == 0,
            }
        case "ad":
            return {"ad_event": "adplaying" if moment.kind == "adresume" else moment.kind}
        case "heartbeat":
            return {"dropped_frames": meter.in_state_ms["playing"] // 5_000} | (
                {"live_latency_ms": 4_000 + meter.playhead_ms % 900} if play.live else {}
            )
        case _:
            return {}
