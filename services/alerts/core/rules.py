"""The content of a rule, and the part that the alerting application needs. Pure."""

from typing import Final

import msgspec

from services.alerts.core import quiet_hours
from services.alerts.core.metrics import METRICS
from services.alerts.core.quiet_hours import Quiet, QuietWrong
from shared.schemas import received
from shared.schemas.alerts.rule import AlertRule, Condition, Direction, MetricName, Severity
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.live import DIMENSIONS, SLICE_VALUE_CHARS_MAX

NAME_CHARS_MAX: Final = 200
FOR_SECONDS_MAX: Final = 3_600
RECEIVERS_MAX: Final = 20
_FIGURE_MAX: Final = 1e12
_VIEWERS_MAX: Final = 10_000_000


class RuleWrong(ValueError):
    """The rule cannot be applied; `member` is the name of what is wrong, the text says why."""

    def __init__(self, member: str, why: str) -> None:
        super().__init__(why)
        self.member = member


class RuleBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule as people write it; see `shared.schemas.alerts.rule.AlertRule` for the figures."""

    customer: str
    name: str
    metric: MetricName
    condition: Condition = "anomaly"
    direction: Direction = "above"
    threshold: float | None = None
    ratio: float = 1.5
    filter: dict[str, str] = {}
    by: str | None = None
    for_seconds: int = 0
    viewers_min: int = 50
    severity: Severity = "warning"
    is_enabled: bool = True
    quiet: Quiet = Quiet()
    #: Ids of receivers.
    receivers: list[str] = []


def check(body: RuleBody) -> None:
    """Raises `RuleWrong`."""
    metric = METRICS[body.metric]
    if not CUSTOMER_ID.fullmatch(body.customer):
        raise RuleWrong("customer", "customer names a customer")
    if not 0 < len(body.name.strip()) <= NAME_CHARS_MAX or not body.name.isprintable():
        raise RuleWrong("name", f"a name has 1 to {NAME_CHARS_MAX} characters that can be shown")
    if body.condition == "threshold":
        if body.threshold is None or not 0 <= body.threshold <= _FIGURE_MAX:
            raise RuleWrong("threshold", "a threshold is a figure of 0 or more")
    elif body.threshold is not None and not 0 <= body.threshold <= _FIGURE_MAX:
        raise RuleWrong("threshold", "the figure that an anomaly must be beyond as well is 0 or more")
    elif metric.anomaly is None:
        raise RuleWrong("condition", f"of {body.metric} it is not learned what is usual: give a threshold")
    elif body.direction != metric.anomaly:
        raise RuleWrong("direction", f"an anomaly of {body.metric} is {metric.anomaly} what is usual")
    if not 1.1 <= body.ratio <= 1_000:
        raise RuleWrong("ratio", "a ratio is 1.1 to 1000")
    if not 0 <= body.for_seconds <= FOR_SECONDS_MAX or body.for_seconds % 5:
        raise RuleWrong("for_seconds", f"seconds are a multiple of 5, at most {FOR_SECONDS_MAX}")
    if not 0 <= body.viewers_min <= _VIEWERS_MAX:
        raise RuleWrong("viewers_min", f"viewers are 0 to {_VIEWERS_MAX}")
    _check_slices(body)
    if len(set(body.receivers)) != len(body.receivers) or len(body.receivers) > RECEIVERS_MAX:
        raise RuleWrong("receivers", f"at most {RECEIVERS_MAX} receivers, each once")
    try:
        quiet_hours.check(body.quiet)
    except QuietWrong as error:
        raise RuleWrong("quiet", str(error)) from None


def applied(rule_id: str, version: int, body: RuleBody) -> AlertRule:
    """The rule as the application gets it."""
    shared = {name: getattr(body, name) for name in AlertRule.__struct_fields__ if name not in ("id", "version")}
    return AlertRule(id=rule_id, version=version, **shared)


def _check_slices(body: RuleBody) -> None:
    dimensions = [*body.filter, *([body.by] if body.by is not None else [])]
    if dimensions and not METRICS[body.metric].is_of_slices:
        raise RuleWrong("filter", f"{body.metric} is of a whole environment")
    if len(dimensions) > 2 or len(set(dimensions)) != len(dimensions):
        raise RuleWrong(
            "filter", "live numbers are of one dimension or of a pair: filter and by together name at most two"
        )
    is_received = METRICS[body.metric].is_received
    if is_received and len(dimensions) > 1:
        raise RuleWrong("filter", f"{body.metric} is counted by one dimension: filter and by together name at most one")
    known = received.DIMENSIONS if is_received else DIMENSIONS
    for dimension in dimensions:
        if dimension not in known:
            raise RuleWrong(
                "filter", f"{dimension[:60]!r} is no dimension of {body.metric}; these are {', '.join(known)}"
            )
    if any(not value or len(value) > SLICE_VALUE_CHARS_MAX for value in body.filter.values()):
        raise RuleWrong("filter", f"a value has 1 to {SLICE_VALUE_CHARS_MAX} characters")
