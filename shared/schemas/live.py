"""The live gauge: what one partition saw of one customer in one bucket of 5 s. The value of topic `live`.

Gauges (`*_now`) are the values at the bucket's end; the other counts are of the events in it. (partition, customer, bucket) is
unique, so sums over partitions are exact, and sums over buckets neither double nor drop across a restart.
"""

from typing import Final

import msgspec

SCHEMA_VERSION: Final = 1
BUCKET_MS: Final = 5_000
#: A customer with nothing open and nothing happening on a partition is forgotten after this long; zeros come until then. So a
#: partition that falls silent earlier is not idle: it is not counted.
IDLE_MS: Final = 10 * 60 * 1000


#: Values of one dimension that are counted separately for a customer on a partition; views of all others count under `OTHER`.
SLICE_VALUES_MAX: Final = 20
OTHER: Final = "(other)"
#: Views without a value of the dimension, so that the values of a dimension add up to the customer's figures.
UNKNOWN: Final = "(unknown)"


class LiveSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The views of one value of one dimension; fields as in `Live`."""

    viewers_now: int
    rebuffering_now: int
    bitrate_bps_now: int
    bitrate_viewers_now: int
    views_finished: int
    playback_failures: int
    startup_failures: int
    exits_before_start: int
    views_started: int = 0


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
    #: Beacons folded for the first time; those that came again; distinct ones of keys that never became a view (known
    #: when the key is given up, taken back when its start comes late; among `beacons` too); those that came after their
    #: view's lateness window.
    beacons: int
    duplicates: int
    dropped: int
    late: int
    views_started: int
    #: Views finished for the first time (revision 1), and later revisions.
    views_finished: int
    views_revised: int
    playback_failures: int
    startup_failures: int
    exits_before_start: int
    #: By `<dimension>=<value>`, for the dimensions that are chosen (VIDEO_VIEWS_LIVE_DIMENSIONS). A value stays, with zeros,
    #: until nothing was seen of it for ten minutes.
    slices: dict[str, LiveSlice] = {}
