"""The oracle's timeline of a view, and which of its fields the player counted itself."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from tests.oracle.rows.reading import Step
from tests.oracle.rows.walk import Span

EVENTS_MAX: Final = 200
_OF_STATE: Final = {
    "starting": "viewstart",
    "playing": "playing",
    "paused": "pause",
    "rebuffering": "rebufferstart",
    "seeking": "seekstart",
    "ended": "ended",
    "failed": "error",
}
_MEASURED: Final[dict[str, dict[str, str]]] = {
    "mux": {
        "view_start": "view_start_ms",
        "view_time_to_first_frame": "startup_ms",
        "view_watch_time": "watch_ms",
        "view_playing_time_ms_cumulative": "playing_ms",
        "view_content_playback_time": "content_playback_ms",
        "view_rebuffer_count": "rebuffer_count",
        "view_rebuffer_duration": "rebuffer_ms",
        "view_seek_count": "seek_count",
        "view_seek_duration": "seek_ms",
        "view_max_seek_time": "max_seek_ms",
        "view_max_playhead_position": "max_playhead_ms",
        "ad_playing_time_ms_cumulative": "ad_playing_ms",
        "view_dropped_frame_count": "dropped_frames",
        "view_total_upscaling": "upscale_integral",
        "view_total_content_playback_time": "scale_time_ms",
        "view_max_upscale_percentage": "max_upscale",
    },
    "cmcd": {"dfa": "dropped_frames"},
    "native": {"startup_ms": "startup_ms", "page_load_ms": "page_load_ms", "dropped_frames": "dropped_frames"},
    "epas": {},
}


def player_measured(play: Sequence[Step], last: dict[str, Any], row: dict[str, Any]) -> list[str]:
    """Names of the row's fields that the player measured: its counters, and its stalls (CMCD `bsd`) where they are used."""
    found = {field for name, field in _MEASURED[play[0].source].items() if name in last}
    if any("msd" in one.attrs and one.attrs.get("sta") not in ("s", "d") for one in play):
        found.add("startup_ms")
    if play[0].source == "cmcd":
        differences = {"rebuffer_count": "rebuffer_count_difference", "rebuffer_ms": "rebuffer_difference_ms"}
        found |= {field for field, difference in differences.items() if row[difference] is not None}
    return sorted(found)


def timeline(spans: Sequence[Span], begun: Span) -> list[tuple[int, str]]:
    """Changes of state, errors, warnings and ad events, by their time after the view's start; without renditions."""
    found = []
    for earlier, span in pairwise([None, *spans]):
        assert span is not None
        one, at_ms = span.step, span.at_ms - begun.at_ms
        if earlier is not None and earlier.played_ms:
            found.append((at_ms - earlier.played_ms, "playing"))
        if one.name in ("error", "warning") or (one.source == "cmcd" and one.name in ("e", "ce")):
            if span.state not in (span.before, "failed") and span.state in _OF_STATE:
                found.append((at_ms, _OF_STATE[span.state]))
            found.append((at_ms, "warning" if one.name == "warning" else "error"))
        elif span.state != span.before and span.state in _OF_STATE:
            found.append((at_ms, _OF_STATE[span.state]))
        if one.ad:
            found.append((at_ms, one.ad))
    return found
