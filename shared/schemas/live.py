"""The live gauge: what one partition saw of one customer in one bucket of 5 s. The value of topic `live`.

Gauges (`*_now`) are the values at the bucket's end; the other counts are of the events in it. (partition, customer, bucket) is
unique, so sums over partitions are exact, and sums over buckets neither double nor drop across a restart.
"""

from typing import Final

import msgspec

#: 2: slices by pairs of dimensions, which leave zeros out; start-up times, and failures when they are reported.
SCHEMA_VERSION: Final = 2
BUCKET_MS: Final = 5_000
#: A customer with nothing open and nothing happening on a partition is forgotten after this long; zeros come until then. So a
#: partition that falls silent earlier is not idle: it is not counted.
IDLE_MS: Final = 10 * 60 * 1000

#: Fields of a view's row that a slice can be of.
DIMENSIONS: Final = (
    *("cdn", "country", "region", "asn", "stream_type", "device", "os", "browser", "connection"),
    *("player_name", "player_software", "player_version", "video_title", "video_id", "video_series"),
    *("sub_property", "experiment", "source"),
)
#: Values of one dimension, and of one pair, that a record names: those with the most viewers. All others are added up as `OTHER`.
SLICE_VALUES_MAX: Final = 20
PAIR_VALUES_MAX: Final = 30
OTHER: Final = "(other)"
#: Views without a value of the dimension, so that the values of a dimension add up to the customer's figures.
UNKNOWN: Final = "(unknown)"
#: Between the two values of a pair; no value contains it.
PAIR_SEPARATOR: Final = "\x1f"
#: The longest value that names a slice; what is longer is cut.
SLICE_VALUE_CHARS_MAX: Final = 64


class LiveSlice(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The views of one value of one dimension, or of one pair of values; fields as in `Live`."""

    viewers_now: int = 0
    rebuffering_now: int = 0
    bitrate_bps_now: int = 0
    bitrate_viewers_now: int = 0
    views_finished: int = 0
    playback_failures: int = 0
    startup_failures: int = 0
    exits_before_start: int = 0
    views_started: int = 0
    startups: int = 0
    startup_ms: int = 0
    failures: int = 0
    finished_watch_ms: int = 0
    finished_rebuffer_ms: int = 0
    finished_rated: int = 0
    finished_bad: int = 0


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """One customer on one partition in the bucket [`bucket_ms`, `bucket_ms` + 5 s) of the partition's clock."""

    schema_version: int
    partition: int
    customer_id: str
    bucket_ms: int
    #: Views being watched: starting, playing or rebuffering, and heard of lately; paused ones do not count.
    viewers_now: int
    rebuffering_now: int
    #: Views begun and not finished.
    open_now: int
    #: Sum of the playing bitrates, and over how many viewers it is known.
    bitrate_bps_now: int
    bitrate_viewers_now: int
    #: Beacons folded for the first time.
    beacons: int
    #: Beacons that came again.
    duplicates: int
    #: Distinct beacons of keys that never became a view; they are among `beacons` too. Counted when the key is given up, and taken
    #: back if its start comes late.
    dropped: int
    #: Beacons that came after their view's lateness window.
    late: int
    views_started: int
    #: Views finished for the first time (revision 1), and later revisions. If a finished play turns out to be part of another one,
    #: this stays counted, and so do all counts of views that finished; what was counted before its finish is taken back.
    views_finished: int
    views_revised: int
    #: Of the views that finished for the first time.
    playback_failures: int
    startup_failures: int
    exits_before_start: int
    #: Views whose start-up time became known, and the sum of these times.
    startups: int = 0
    startup_ms: int = 0
    #: Views with a fatal error, counted with its beacon, long before they finish; taken back if playback goes on. An error that
    #: the client does not call fatal counts at the finish alone, as one of the failures above.
    failures: int = 0
    #: Of the views that finished for the first time, by their rows in topic `views`: time watched, time spent rebuffering, how
    #: many have a verdict (`spi_good`), and how many of these are not good.
    finished_watch_ms: int = 0
    finished_rebuffer_ms: int = 0
    finished_rated: int = 0
    finished_bad: int = 0
    #: By `<dimension>=<value>`, and by `<dimension>,<dimension>=<value>\x1f<value>` for pairs, for the dimensions that are chosen
    #: (VIDEO_VIEWS_LIVE_DIMENSIONS), in their order. The slices of a dimension, or of a pair, add up to the customer's figures.
    #: One that is not named is zero.
    slices: dict[str, LiveSlice] = {}
