"""A story as mux-embed 5.19 sends it: its events and their times, delta encoded, in its envelope. Pure.

The first event, `viewstart` and `viewend` carry every field; all others only what changed since the last event, and the
always-list. A heartbeat comes 10 s after the last event that is no request, unless playback is paused.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

import orjson

from loadtest.clients.devices import COMPUTER
from loadtest.clients.wire import shorten
from loadtest.expected.tally import WATCHING, Tally, tally
from loadtest.expected.truth import SimulatedBeacon
from loadtest.story import Story

HEARTBEAT_MS: Final = 10_000
SEGMENT_MS: Final = 4_000
EVENTS_PER_POST_MAX: Final = 300

_EVENTS: Final[dict[str, tuple[str, ...]]] = {
    "load": ("networkchange", "playerready"),
    "start": ("viewstart", "renditionchange", "play"),
    "playing": ("playing",),
    "pause": ("pause",),
    "resume": ("play", "playing"),
    "rebufferstart": ("rebufferstart",),
    "rebufferend": ("rebufferend",),
    "seekstart": ("seeking",),
    "seekend": ("seeked",),
    "rendition": ("renditionchange",),
    "warning": ("error",),
    "error": ("error",),
    "ended": ("pause", "ended"),
    "close": ("viewend",),
    "crash": (),
}
_URGENT: Final = frozenset({"viewstart", "ended", "viewend"})
_FULL: Final = frozenset({"viewstart", "viewend"})
_ALWAYS: Final = frozenset(
    {
        "mux_api_version",
        "player_instance_id",
        "beacon_domain",
        "player_sequence_number",
        "view_sequence_number",
        "player_playhead_time",
        "viewer_time",
        "env_key",
        "video_id",
        "view_id",
        "view_playing_time_ms_cumulative",
        "player_error_code",
        "player_error_message",
        "player_error_severity",
        "player_error_business_exception",
        "event",
    }
)
#: Fields of one event only: sent with it, never a change of the view.
_REQUEST_FIELDS: Final = frozenset(
    {"request_start", "request_response_start", "request_response_end", "request_bytes_loaded"}
)
_HEIGHTS: Final = {400_000: 240, 900_000: 480, 1_800_000: 720, 3_200_000: 1080, 6_000_000: 2160}


def beacons(story: Story, loaded_ms: int, domain: str) -> list[SimulatedBeacon]:
    """The view's beacons in order; `loaded_ms` is the page load on the player's clock, `domain` the beacon domain."""
    sent: dict[str, Any] = {}
    emitted = []
    for seq, (at_ms, event) in enumerate(_schedule(story), start=1):
        seen = tally(story, at_ms)
        fields = _fields(story, seen, loaded_ms, at_ms, domain)
        if event == "viewstart":
            # The rendition becomes known with the first renditionchange.
            del fields["video_source_bitrate"]
        if event == "requestcompleted":
            fields |= _request(loaded_ms + at_ms)
        fields |= {"view_sequence_number": seq, "player_sequence_number": seq, "event": event}
        is_full = seq == 1 or event in _FULL
        changed = fields if is_full else {k: v for k, v in fields.items() if k in _ALWAYS or sent.get(k) != v}
        sent |= {key: value for key, value in fields.items() if key not in _REQUEST_FIELDS}
        is_fatal = event == "error" and seen.reported is seen.fatal
        emitted.append(
            SimulatedBeacon(seq, at_ms, event, fields=shorten(changed), is_urgent=event in _URGENT or is_fatal)
        )
    return emitted


def envelope(events: Sequence[SimulatedBeacon], sent_ms: int, rtt_ms: int | None) -> bytes:
    """The body of one POST: `sent_ms` on the player's clock, `rtt_ms` of the POST before it, if there was one."""
    metadata = {"transmission_timestamp": sent_ms} | ({} if rtt_ms is None else {"rtt_ms": rtt_ms})
    return orjson.dumps({"metadata": metadata, "events": [beacon.fields for beacon in events]})


def _schedule(story: Story) -> list[tuple[int, str]]:
    """Every event and its time; at equal times what happened comes before what is only reported."""
    happened = [(moment.at_ms, event) for moment in story.moments for event in _EVENTS[moment.kind]]
    end_ms = story.moments[-1].at_ms
    reported = _heartbeats(story, end_ms) + (_requests(story, end_ms) if story.player.reports_requests else [])
    return sorted(happened + reported, key=lambda event: event[0])


def _heartbeats(story: Story, end_ms: int) -> list[tuple[int, str]]:
    times = [moment.at_ms for moment in story.moments]
    beats = []
    for from_ms, until_ms in pairwise(times):
        if tally(story, from_ms).state in WATCHING:
            beats += [(at_ms, "hb") for at_ms in range(from_ms + HEARTBEAT_MS, until_ms, HEARTBEAT_MS)]
    return [beat for beat in beats if beat[0] < end_ms]


def _requests(story: Story, end_ms: int) -> list[tuple[int, str]]:
    start = story.first("start")
    if start is None:
        return []
    times = range(start.at_ms + SEGMENT_MS, end_ms, SEGMENT_MS)
    return [(at_ms, "requestcompleted") for at_ms in times if tally(story, at_ms).state in WATCHING]


def _fields(story: Story, seen: Tally, loaded_ms: int, at_ms: int, domain: str) -> dict[str, Any]:
    """Every field of the view as the player has it at this time, under its full name."""
    player, now_ms = story.player, loaded_ms + at_ms
    live_or_vod = {} if player.live else {"video_source_duration": 1_800_000}
    start = story.first("start")
    fields = {
        "mux_api_version": "2.1",
        "mux_embed": "mux-embed",
        "mux_embed_version": "5.19.0",
        "viewer_device_category": (player.device or COMPUTER).category,
        "player_instance_id": str(uuid5(NAMESPACE_OID, player.view_id)),
        "mux_sample_rate": 1,
        "beacon_domain": domain,
        "player_is_paused": seen.state not in WATCHING,
        "player_width": 1280,
        "player_height": 720,
        "video_source_is_live": player.live,
        "video_source_hostname": "media.example.com",
        "video_source_url": f"https://media.example.com/{player.video_id}.m3u8",
        "player_playhead_time": seen.playhead_ms,
        "view_max_playhead_position": seen.max_playhead_ms,
        "viewer_time": now_ms,
        "env_key": player.customer_id,
        "video_id": player.video_id,
        "video_title": player.title,
        "video_cdn": player.cdn,
        "player_name": player.name,
        "player_init_time": loaded_ms,
        "custom_1": "loadtest",
        "view_id": player.view_id,
        "view_playing_time_ms_cumulative": seen.in_state_ms["playing"],
        "viewer_connection_type": "unknown",
        "session_id": str(uuid5(NAMESPACE_OID, player.viewer_id)),
        "session_start": loaded_ms,
        "session_expires": now_ms + 1_500_000,
        "mux_viewer_id": player.viewer_id,
        "page_url": f"https://www.{player.customer_id}.example/watch?v={player.video_id}",
        **({} if player.version is None else {"player_software_version": player.version}),
        **live_or_vod,
    }
    if start is not None and at_ms >= start.at_ms:
        fields |= _counters(seen, loaded_ms + start.at_ms)
    return fields | _error_fields(seen)


def _counters(seen: Tally, started_ms: int) -> dict[str, Any]:
    """What the player counts once the view has started; a counter is absent until it counts something."""
    watch_ms, rebuffer_ms = seen.watch_ms, seen.in_state_ms["rebuffering"]
    fields: dict[str, Any] = {
        "view_start": started_ms,
        "view_watch_time": watch_ms,
        "player_view_count": 1,
        "video_playback_range": orjson.dumps([f"{begin}:{end}" for begin, end in seen.played_ms]).decode(),
        "video_source_bitrate": seen.bitrate_bps,
        "video_source_height": _HEIGHTS[seen.bitrate_bps],
        "video_source_width": _HEIGHTS[seen.bitrate_bps] * 16 // 9,
    }
    if seen.startup_ms is not None:
        fields |= {
            "view_time_to_first_frame": seen.startup_ms,
            "view_content_playback_time": seen.in_state_ms["playing"],
        }
    if seen.rebuffer_count:
        fields["view_rebuffer_count"] = seen.rebuffer_count
    if rebuffer_ms:
        fields |= {
            "view_rebuffer_duration": rebuffer_ms,
            "view_rebuffer_frequency": seen.rebuffer_count / watch_ms,
            "view_rebuffer_percentage": rebuffer_ms / watch_ms,
        }
    if seen.seek_count:
        fields["view_seek_count"] = seen.seek_count
    if seen.seek_done_ms:
        fields |= {"view_seek_duration": seen.seek_done_ms, "view_max_seek_time": seen.max_seek_ms}
    return fields


def _error_fields(seen: Tally) -> dict[str, Any]:
    """What was last reported stays set: the always-list repeats it in every later event."""
    if seen.reported is None:
        return {}
    is_fatal = seen.reported is seen.fatal
    return {
        "player_error_code": int(seen.reported.code),
        "player_error_message": "the media could not be played" if is_fatal else "a segment was late",
        "player_error_severity": "fatal" if is_fatal else "warning",
        "player_error_business_exception": seen.reported.business_exception,
    }


def _request(end_ms: int) -> dict[str, Any]:
    return {
        "request_start": end_ms - 180,
        "request_response_start": end_ms - 140,
        "request_response_end": end_ms,
        "request_bytes_loaded": 750_000,
    }
