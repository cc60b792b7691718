"""The oracle's fields that are copied, counted or averaged: dimensions, media requests, live latency."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from tests.oracle.rows.reading import Step, shows_view
from tests.oracle.rows.walk import Span

LIVE_EDGE_MS: Final = 300_000
#: Fields that are one attribute, as it was said last.
_SAID: Final[dict[str, dict[str, str]]] = {
    "mux": {
        "video_id": "video_id",
        "cdn": "video_cdn",
        "player_name": "player_name",
        "player_width": "player_width",
        "player_height": "player_height",
        "viewer_id": "mux_viewer_id",
        "dropped_frames": "view_dropped_frame_count",
        "upscale_integral": "view_total_upscaling",
        "scale_time_ms": "view_total_content_playback_time",
        "max_upscale": "view_max_upscale_percentage",
        "device": "viewer_device_name",
        "video_title": "video_title",
        "video_duration_ms": "video_source_duration",
        "page_url": "page_url",
    },
    "cmcd": {"video_id": "cid", "cdn": "cdn", "source_host": "h"},
    "epas": {"video_id": "contentId", "device": "deviceModel", "video_duration_ms": "duration"},
    "native": {
        "video_id": "video_id",
        "cdn": "cdn",
        "device": "device",
        "dropped_frames": "dropped_frames",
        "player_width": "player_width",
        "player_height": "player_height",
        "video_title": "video_title",
        "page_url": "page_url",
        "connection": "connection",
        "experiment": "experiment",
        "page_load_ms": "page_load_ms",
        "autoplay": "autoplay",
    },
}


def client_knows(play: Sequence[Step], last: dict[str, Any], scaled: Sequence[tuple[float, int]]) -> dict[str, Any]:
    """Dimensions and sizes: what the client states, else what the collector derived of the view's first beacon."""
    row = {field: last.get(name) for field, name in _SAID[play[0].source].items()}
    for field in ("browser", "os", "device", "country", "asn"):
        derived = (one.beacon.get(field) for one in play if shows_view(one))
        row[field] = row.get(field) or next((value for value in derived if value is not None), None)
    row["session_id"] = play[0].beacon["view_id"] if play[0].source in ("cmcd", "epas") else None
    if play[0].source == "native" and scaled:
        row["upscale_integral"] = sum(max(0.0, scale - 1) * ms for scale, ms in scaled)
        row["downscale_integral"] = sum(max(0.0, 1 - scale) * ms for scale, ms in scaled)
        row["scale_time_ms"] = sum(ms for _, ms in scaled)
        row["max_upscale"] = max(max(0.0, scale - 1) for scale, _ in scaled)
    return row


def requests(play: Sequence[Step]) -> dict[str, Any]:
    """Media requests: how many, what became of them, how long they took; None of all where none was reported."""
    source = play[0].source
    outcomes: list[str] = []
    took: list[int] = []
    waited: list[int] = []
    loaded: list[int] = []
    for one in play:
        attrs = one.attrs
        if one.name == "request" and source == "mux":
            outcomes.append(one.own_name.removeprefix("request"))
            if outcomes[-1] == "completed":
                took.append(attrs["request_response_end"] - attrs["request_start"])
                waited.append(attrs["request_response_start"] - attrs["request_start"])
                loaded.append(attrs["request_bytes_loaded"])
        elif one.is_request:
            outcomes.append("failed" if attrs["rc"] == 0 or attrs["rc"] >= 400 else "completed")
            if outcomes[-1] == "completed":
                took.append(attrs["ttlb"])
                waited += [attrs["ttfb"]] if attrs["ttfb"] <= attrs["ttlb"] else []
        elif one.name == "request":
            outcomes.append(attrs["request_outcome"])
            if outcomes[-1] == "completed":
                took.append(attrs["request_ms"])
                waited.append(attrs["request_ttfb_ms"])
                loaded.append(attrs["request_bytes"])
    return {
        "req_count": len(outcomes) or None,
        "req_failed": outcomes.count("failed") if outcomes else None,
        "req_canceled": outcomes.count("canceled") if outcomes else None,
        "req_bytes": sum(loaded) if loaded else None,
        "req_time_ms": sum(took) if took else None,
        "ttfb_sum_ms": sum(waited) if waited else None,
        "ttfb_max_ms": max(waited, default=None),
    }


def stream(play: Sequence[Step], spans: Sequence[Span], last: dict[str, Any], offset_ms: int) -> dict[str, Any]:
    """Kind of stream, CDNs, live latency."""
    latencies: list[int] = []
    kind: str | None
    match play[0].source:
        case "mux":
            live = last.get("video_source_is_live")
            kind = None if live is None else "live" if live else "vod"
            for span in spans:
                one = span.step
                program, edge = (one.attrs.get(f"player_{name}program_time") for name in ("", "live_edge_"))
                if (
                    program is not None
                    and edge is not None
                    and one.name != "viewend"
                    and edge - program <= LIVE_EDGE_MS
                ):
                    latencies.append(span.at_ms - program + offset_ms)
        case "cmcd":
            kind = {"v": "vod", "l": "live", "ll": "live"}.get(str(last.get("st")))
            latencies = [one.attrs["ltc"] for one in play if "ltc" in one.attrs]
        case "epas":
            live = last.get("live")
            kind = None if live is None else "live" if live else "vod"
        case _:
            kind = last.get("stream_type")
            latencies = [one.attrs["live_latency_ms"] for one in play if "live_latency_ms" in one.attrs]
    name = {"mux": "video_cdn"}.get(play[0].source, "cdn")
    cdns = [one.attrs[name] for one in play if name in one.attrs]
    return {
        "stream_type": kind,
        "live_latency_ms_avg": max(0, sum(latencies) // len(latencies)) if latencies and kind != "vod" else None,
        "cdn_trace": [cdn for before, cdn in pairwise([None, *cdns]) if cdn != before],
    }
