"""The metric for which suspects are searched, as events over exposure of each view. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from services.query.core.metrics import MEASURED as FIELDS
from services.query.core.metrics import METRICS, PARTS, Metric, Unit
from services.query.core.question import Question

#: A measured value above this is slow, where a question does not say above what, ms.
ABOVE_MS: Final = 4_000


@dataclass(frozen=True)
class Measured:
    """A metric that adds up: Σ events / Σ exposure x scale. Higher is worse."""

    name: str
    title: str
    unit: Unit
    scale: float
    #: Over the fields of a view, each a number of at least 0.
    events: str
    exposure: str
    #: Whether the figure rests on a view.
    base: str
    metric: Metric
    #: Of a value above a threshold: the field.
    field: str | None = None
    #: Of the placeholder in `events`.
    parameters: tuple[Any, ...] = ()
    #: Whether a view is an event or none; else events are sums, as ms.
    is_count: bool = False

    def value(self, events: float, exposure: float) -> float | None:
        """The figure; None without exposure."""
        return events / exposure * self.scale if exposure > 0 else None

    def alone(self, question: Question) -> Question:
        """A question for several metrics as one for this: it reads no field of another."""
        return replace(question, metrics=(self.metric,))


def _of_metric(metric: Metric) -> Measured:
    events, exposure = (
        " + ".join(PARTS[name].of_view for name in names) for names in (metric.numerator, metric.denominator)
    )
    return Measured(
        metric.name,
        metric.title,
        metric.unit,
        metric.scale,
        events,
        exposure,
        f"({PARTS[metric.base].of_view}) > 0",
        metric,
        is_count=metric.denominator == (metric.base,) and metric.unit == "fraction",
    )


#: By name: every ratio of sums that is worse when it is higher.
OF_METRICS: Final[Mapping[str, Measured]] = {
    metric.name: _of_metric(metric)
    for metric in METRICS.values()
    if metric.kind == "ratio" and metric.worse == "higher"
}


def read_with(measured: Measured) -> tuple[Measured, ...]:
    """The metrics that are read where one of them is asked for: somebody who looks at one looks at others too."""
    return tuple(OF_METRICS.values()) if measured.name in OF_METRICS else (measured,)


class AskedWith(msgspec.Struct, frozen=True):
    """How `/v1/suspects` is asked for a metric: its `metric`, and the parameter that says which values are bad, if any."""

    metric: str
    threshold: str | None


def asked_with(metric: Metric) -> AskedWith | None:
    """How a question for suspects names this metric; None: it cannot be asked for.

    A percentile is asked for by its field: it is worse where more views are above a threshold.
    """
    if metric.name in OF_METRICS:
        return AskedWith(metric.name, None)
    if metric.field is not None and metric.worse == "higher":
        return AskedWith(metric.field, "above_ms")
    return None


def above(field: str, above_ms: int) -> Measured:
    """The share of views, of those with a value, whose value is above a threshold, ms."""
    return Measured(
        field,
        f"{FIELDS[field]} above {above_ms:,} ms",
        "fraction",
        1.0,
        f"CASE WHEN {field} > ? THEN 1 ELSE 0 END",
        f"CASE WHEN {field} IS NOT NULL THEN 1 ELSE 0 END",
        f"{field} IS NOT NULL",
        METRICS["views"],
        field=field,
        parameters=(above_ms,),
        is_count=True,
    )
