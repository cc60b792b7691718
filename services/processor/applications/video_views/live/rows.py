"""The stored rows of the live gauges: of a customer, and of each of its cohorts."""

from typing import Any, Final

import msgspec

from services.processor.engine.application.application import MapSpec, StoreSpec


class LiveRow(msgspec.Struct, array_like=True, gc=False):
    """The counts of one customer in the open bucket; fields as in `shared.schemas.live.Live`."""

    bucket_ms: int
    active_ms: int
    viewers_now: int = 0
    rebuffering_now: int = 0
    open_now: int = 0
    bitrate_bps_now: int = 0
    bitrate_viewers_now: int = 0
    beacons: int = 0
    duplicates: int = 0
    dropped: int = 0
    late: int = 0
    views_started: int = 0
    views_finished: int = 0
    views_revised: int = 0
    playback_failures: int = 0
    startup_failures: int = 0
    exits_before_start: int = 0
    #: Slices of version 0.1.0. Not read: their views count as of no cohort until they change.
    former_slices: dict[str, Any] = {}
    startups: int = 0
    startup_ms: int = 0
    failures: int = 0
    #: Rows of its cohorts.
    cohorts: int = 0
    customer_id: str = ""
    finished_watch_ms: int = 0
    finished_rebuffer_ms: int = 0
    finished_rated: int = 0
    finished_bad: int = 0


class CohortRow(msgspec.Struct, array_like=True, gc=False):
    """The figures of one cohort: after the first two, `FIELDS` in their order."""

    #: The bucket that the counts are of: in any other they are 0.
    bucket_ms: int
    active_ms: int
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


LIVE_ROWS: Final = StoreSpec(
    name="live", id=3, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(LiveRow).decode
)
#: The owner is the customer's key.
COHORTS: Final = MapSpec(
    name="cohorts",
    id=6,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(CohortRow).decode,
    goes_with="live",
)
