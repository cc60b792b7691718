"""The rules of a customer (environment), as the alerting application applies them. The value of topic `alert_rules`."""

from typing import Final, Literal

import msgspec

SCHEMA_VERSION: Final = 1
RULES_MAX: Final = 200

MetricName = Literal[
    "rebuffering",
    "failures",
    "playback_failures",
    "startup_failures",
    "exits_before_start",
    "bad_views",
    "rebuffer_fraction",
    "watch_ms",
    "startup_ms",
    "bitrate",
    "viewers",
    "views_started",
    "beacons",
    "rejected",
]
Condition = Literal["threshold", "anomaly"]
Direction = Literal["above", "below"]
Severity = Literal["info", "warning", "critical"]


class AlertRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule. Shares are fractions, bitrates bps, start-up times ms, counts of a minute."""

    id: str
    #: Goes up with each change.
    version: int
    name: str
    metric: MetricName
    condition: Condition
    direction: Direction = "above"
    #: The figure beyond which the rule finds something. Of an anomaly it may be given too: then both must be so.
    threshold: float | None = None
    #: Of an anomaly: how many times the usual figure at the least (of `below`: at the most 1 / ratio).
    ratio: float = 1.5
    #: Dimension to value: one, or a pair that is counted live. Empty: the whole environment.
    filter: dict[str, str] = {}
    #: Each value of this dimension is judged by itself.
    by: str | None = None
    #: For how long. A threshold's figure is that of this time, or of the last minute, which must then be beyond for this time. An
    #: anomaly is found once it is certain, and must then last this much longer.
    for_seconds: int = 0
    #: Viewers at a time (of `rejected`, beacons in 5 s) below which shares and means are not judged.
    viewers_min: int = 50
    severity: Severity = "warning"
    is_enabled: bool = True


class AlertRules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of a customer. A larger version replaces a smaller one."""

    schema_version: int
    customer_id: str
    version: int
    rules: list[AlertRule]
