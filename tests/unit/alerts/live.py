"""Gauges of topic `live` as partitions write them, with what a test does not say left at 0."""

from typing import Any

from shared.schemas.live import SCHEMA_VERSION, Live, LiveSlice

#: A Monday, 00:00 UTC.
T0 = 1_795_996_800_000 - 1_795_996_800_000 % 604_800_000 + 4 * 86_400_000
_NONE = dict.fromkeys(
    (
        *("viewers_now", "rebuffering_now", "bitrate_bps_now", "bitrate_viewers_now", "views_finished"),
        *("playback_failures", "startup_failures", "exits_before_start"),
    ),
    0,
)
_WHOLE = dict.fromkeys(("open_now", "beacons", "duplicates", "dropped", "late", "views_started", "views_revised"), 0)


def slice_of(**counts: int) -> LiveSlice:
    return LiveSlice(**(_NONE | counts))


def live(
    bucket_ms: int,
    partition: int = 0,
    customer: str = "acme",
    slices: dict[str, LiveSlice] | None = None,
    **counts: int,
) -> Live:
    fields: dict[str, Any] = _NONE | _WHOLE | counts
    return Live(
        schema_version=SCHEMA_VERSION,
        partition=partition,
        customer_id=customer,
        bucket_ms=bucket_ms,
        slices=slices or {},
        **fields,
    )
