"""Numbers and flags that some SDKs of Mux (Roku, Android) write as texts."""

from typing import Any, Final

import orjson

#: Fields that some SDKs send as text and that the view's row reads as a number or a flag.
_NUMBERS: Final = frozenset(
    {
        "view_start",
        "view_end",
        "view_time_to_first_frame",
        "view_watch_time",
        "view_playing_time_ms_cumulative",
        "view_rebuffer_count",
        "view_rebuffer_duration",
        "view_rebuffer_frequency",
        "view_rebuffer_percentage",
        "view_seek_count",
        "view_seek_duration",
        "view_max_seek_time",
        "view_content_playback_time",
        "view_max_playhead_position",
        "view_total_upscaling",
        "view_total_downscaling",
        "view_total_content_playback_time",
        "view_max_upscale_percentage",
        "view_max_downscale_percentage",
        "view_dropped_frame_count",
        "video_source_width",
        "video_source_height",
        "video_source_bitrate",
        "video_source_fps",
        "video_source_duration",
        "player_width",
        "player_height",
        "player_startup_time",
        "player_init_time",
        "page_load_time",
        "mux_sample_rate",
        "mux_sample_number",
        "session_start",
        "session_expires",
        "request_start",
        "request_response_start",
        "request_response_end",
        "request_bytes_loaded",
    }
)
_FLAGS: Final = frozenset(
    {
        "video_source_is_live",
        "player_is_paused",
        "player_is_fullscreen",
        "player_autoplay_on",
        "player_preload_on",
        "player_error_business_exception",
    }
)
_FLAG_WORDS: Final = {"true": True, "false": False}


def read_texts(attrs: dict[str, Any]) -> None:
    """Puts the numbers and flags that texts hold in their place; a text that holds none stays."""
    for name in attrs.keys() & _NUMBERS:
        value = attrs[name]
        if isinstance(value, str):
            try:
                attrs[name] = orjson.loads(value)
            except orjson.JSONDecodeError:
                continue
            if not isinstance(attrs[name], int | float):
                attrs[name] = value
    for name in attrs.keys() & _FLAGS:
        value = attrs[name]
        if isinstance(value, str):
            attrs[name] = _FLAG_WORDS.get(value.lower(), value)
