"""Metrics that a rule can measure: each metric, and the live counts from which it is made. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from shared.schemas.alerts.rule import Direction, MetricName
from shared.schemas.live import BUCKET_MS, Live, LiveSlice
from shared.schemas.received import Received, ReceivedCount
from shared.statistics.seasons import Rate

#: The counts of a bucket that are kept, in this order; as in `shared.schemas.live`.
FIELDS: Final = (
    "viewers_now",
    "rebuffering_now",
    "bitrate_bps_now",
    "bitrate_viewers_now",
    "views_started",
    "views_finished",
    "playback_failures",
    "startup_failures",
    "exits_before_start",
    "beacons",
    "startups",
    "startup_ms",
    "failures",
    "finished_watch_ms",
    "finished_rebuffer_ms",
    "finished_rated",
    "finished_bad",
    # Of topic `received`.
    "received",
    "rejected",
)
NOTHING: Final = [0] * len(FIELDS)
VIEWERS: Final = FIELDS.index("viewers_now")
RECEIVED: Final = FIELDS.index("received")
BUCKETS_A_MINUTE: Final = 60_000 // BUCKET_MS

#: share: so many of so many. mean: a sum over so many. level: a gauge. count: events of a minute.
Kind = Literal["share", "mean", "level", "count"]


@dataclass(frozen=True)
class Metric:
    """One metric; `hits` and `of` are places in `FIELDS`."""

    name: MetricName
    kind: Kind
    hits: int
    of: int = -1
    #: On which side its anomalies are; None: thresholds alone.
    anomaly: Direction | None = None
    #: Whether slices have it.
    is_of_slices: bool = True
    #: Of what a rule's `viewers_min` is a number, at a time: a place in `FIELDS`.
    enough: int = VIEWERS

    @property
    def is_received(self) -> bool:
        """Whether collectors count it, and not who folds views: its dimensions are others, and its time is theirs."""
        return self.enough == RECEIVED

    @cached_property
    def rate(self) -> Rate:
        """What kind of rate it is, where it is learned."""
        return Rate(is_share=self.kind == "share", is_above=self.anomaly == "above")

    def figure(self, sums: Sequence[int], buckets: int) -> float | None:
        """The figure of sums over so many buckets; None where there is nothing to divide by."""
        if self.kind == "level":
            return sums[self.hits] / buckets if buckets else None
        if self.kind == "count":
            return sums[self.hits] * BUCKETS_A_MINUTE / buckets if buckets else None
        return sums[self.hits] / sums[self.of] if sums[self.of] else None

    def exposure(self, sums: Sequence[int], buckets: int) -> int:
        """The number that hits are counted among: viewers or views, or buckets of time."""
        return sums[self.of] if self.of >= 0 else buckets


def _field(name: str) -> int:
    return FIELDS.index(name)


_FINISHED: Final = _field("views_finished")
METRICS: Final[Mapping[MetricName, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("rebuffering", "share", _field("rebuffering_now"), VIEWERS, "above"),
        Metric("playback_failures", "share", _field("playback_failures"), _FINISHED, "above"),
        Metric("startup_failures", "share", _field("startup_failures"), _FINISHED, "above"),
        Metric("exits_before_start", "share", _field("exits_before_start"), _FINISHED, "above"),
        # Of what only rows of finished views have: those not good, time spent rebuffering of time watched, time watched of a view.
        Metric("bad_views", "share", _field("finished_bad"), _field("finished_rated"), "above"),
        Metric("rebuffer_fraction", "mean", _field("finished_rebuffer_ms"), _field("finished_watch_ms")),
        Metric("watch_ms", "mean", _field("finished_watch_ms"), _FINISHED),
        # As soon as they are reported, of the views that start meanwhile.
        Metric("failures", "share", _field("failures"), _field("views_started"), "above"),
        Metric("startup_ms", "mean", _field("startup_ms"), _field("startups")),
        Metric("bitrate", "mean", _field("bitrate_bps_now"), _field("bitrate_viewers_now")),
        Metric("viewers", "level", VIEWERS),
        Metric("views_started", "count", _field("views_started"), anomaly="below"),
        Metric("beacons", "count", _field("beacons"), anomaly="below", is_of_slices=False),
        Metric("rejected", "share", _field("rejected"), RECEIVED, "above", enough=RECEIVED),
    )
}
#: Those of which it is learned what is usual: of topic `live`, and of topic `received`.
LEARNED: Final = tuple(metric for metric in METRICS.values() if metric.anomaly is not None and not metric.is_received)
LEARNED_RECEIVED: Final = tuple(
    metric for metric in METRICS.values() if metric.anomaly is not None and metric.is_received
)


def padded(counts: list[int]) -> list[int]:
    """The counts, with 0 for those that an earlier release did not keep."""
    return counts if len(counts) == len(FIELDS) else counts + [0] * (len(FIELDS) - len(counts))


def counts_of(counted: Live | LiveSlice | Received | ReceivedCount) -> list[int]:
    """The counts of `FIELDS`; what it does not have is 0."""
    return [getattr(counted, name, 0) for name in FIELDS]


def added(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Their sums."""
    return [a + b for a, b in zip(one, other, strict=True)]
