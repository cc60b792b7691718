"""A change of an incident's state. The value of topic `alert_events`.

(customer, incident, revision) is unique: a replay of the same gauges under the same rules gives the same events. Revision 1 opens
an incident, the last one closes it. Times are ms since 1970, of buckets of topic `live`.
"""

from typing import Final, Literal

import msgspec

from shared.schemas.alerts.rule import Direction, MetricName, Severity
from shared.statistics.seasons import SeasonName

SCHEMA_VERSION: Final = 1
#: Slices of an incident that an event names, the worst first.
SLICES_MAX: Final = 20
SUSPECTS_MAX: Final = 5

Change = Literal["opened", "updated", "closed"]
#: Why an incident is over: all was as usual for some minutes; its rule was deleted, switched off or now measures something else.
EndReason = Literal["recovered", "rule_changed"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What of one slice is beyond the rule. Figures as in `shared.schemas.alerts.rule`."""

    #: Dimension to value; empty: the whole environment.
    slice: dict[str, str]
    value: float
    #: Of an anomaly the usual figure, of a threshold that threshold.
    usual: float
    #: What was counted of how many, in so many seconds up to `at_ms`.
    hits: int
    of: int
    seconds: int
    at_ms: int
    #: Of an anomaly: how likely so much is where nothing has changed, and which hours tell what is usual.
    probability: float | None = None
    season: SeasonName | None = None
    #: Of an anomaly: among how many the usual figure was counted, as `of`. None in events of earlier versions.
    usual_of: int | None = None

    @property
    def rank(self) -> tuple[float, int]:
        """The smaller, the farther beyond the rule."""
        return self.probability or 0.0, -self.hits


class SuspectSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A slice that has more of what is too much than its share of viewers."""

    #: Dimension to value.
    slice: dict[str, str]
    #: Its fraction of what is too much, and of the viewers (or views).
    explains: float
    share: float
    value: float
    #: Of how many viewers (or views) in all; None in events of earlier versions.
    of_all: int | None = None


class AlertEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One change, with the incident as it is then."""

    schema_version: int
    customer_id: str
    incident_id: str
    revision: int
    change: Change
    end_reason: EndReason | None
    at_ms: int
    opened_ms: int
    #: When the last bucket ended that was beyond the rule.
    last_ms: int
    rule_id: str
    rule_version: int
    rule_name: str
    metric: MetricName
    direction: Direction
    severity: Severity
    #: Viewers (or views) that were hit in the worst bucket.
    affected_max: int
    slices: list[Evidence]
    #: Slices beyond those in `slices`.
    further_slices: int
    suspects: list[SuspectSlice]
