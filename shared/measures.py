"""The definition of each measure of a group of views, as SQL expressions over the fields of a view.

Spark (`services/finalizer/transforms/rollups.py`), Postgres (the triggers of `serving.views`) and DuckDB read the same text. The
triggers are in a migration, which never changes once it was released: tests hold them to this module (`test_hot_sums`).
"""

from typing import Final

#: Before this, ms since 1970, a view neither counts nor is open: clocks of clients may be wrong.
_EARLIEST_MS: Final = "first_append_ms - 86400000"
#: When a view counts, ms since 1970: at its end, but never far from the time when its beacons came. Clocks of clients may be
#: wrong, and must not open slices years away.
COUNTED_MS: Final = f"greatest(least(view_end_ms, last_append_ms + 3600000), {_EARLIEST_MS})"
#: From when on a view is open, ms since 1970; up to `COUNTED_MS`. A clock of long ago must not make a view open for years.
BEGAN_MS: Final = f"greatest(view_start_ms, {_EARLIEST_MS})"
#: A view that was taken back counts nowhere.
COUNTS: Final = "NOT deleted"

#: Of every count of views the condition under which a view counts.
COUNTED: Final[dict[str, str]] = {
    "views": "true",
    # It played: its start-up time may be unknown all the same.
    "started": "startup_ms IS NOT NULL OR coalesce(startup_unknown, 'not_started') <> 'not_started'",
    "startup_failures": "startup_failed",
    "playback_failures": "playback_failed",
    "exits_before_start": "ebvs",
    "views_dropped": "view_dropped",
}
#: Of every sum the field that is summed. A view's value fits 64 bits, the sum of a group need not.
SUMMED: Final[dict[str, str]] = {
    "watch_ms": "watch_ms",
    "playing_ms": "playing_ms",
    "rebuffer_count": "rebuffer_count",
    "rebuffer_ms": "rebuffer_ms",
    "seek_count": "seek_count",
    "seek_ms": "seek_ms",
    "bitrate_integral": "bitrate_integral",
    "bitrate_time_ms": "bitrate_time_ms",
    "beacons": "beacon_count",
    "duplicates": "duplicate_count",
}
#: What has a histogram, of the views that have a value; its buckets are those of `shared.statistics.histogram`.
HISTOGRAMS: Final = ("startup_ms", "rebuffer_ms")

#: The client that reports a view: clients measure start-up from different moments (docs/view.md).
SOURCE: Final = "source"
#: Fields of a view that rollups may be broken down by.
DIMENSIONS: Final = (
    "country",
    "device",
    "os",
    "browser",
    "player_name",
    "cdn",
    "stream_type",
    "video_id",
    "experiment",
    SOURCE,
)
#: A longer value is cut: clients choose them, and an index entry of Postgres holds 2.7 KB.
MEMBER_CHARACTERS_MAX: Final = 100

#: The fields of a view that conditions of `COUNTED` read.
_READ: Final = ("startup_unknown", "startup_failed", "playback_failed", "ebvs", "view_dropped")
#: What a group is made of besides its place.
FIELDS: Final = tuple(dict.fromkeys((*_READ, *SUMMED.values(), *HISTOGRAMS)))
