"""The metric for which suspects are searched, as events over exposure of each view. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import msgspec

from services.query.core.metrics import METRICS, Metric, Unit
from services.query.core.parts import PARTS
from services.query.core.question import Question
from services.query.core.suspects.values import PARAMETERS, VALUES, Side, Value

#: Who says what the threshold is: the question; the usual views of its baseline; or those of its range, where those are too few.
Origin = Literal["given", "usual", "range"]


class Threshold(msgspec.Struct, frozen=True):
    """Views whose value is beyond it are the bad ones, those that equal it are not. `value` null: no view has a value."""

    side: Side
    value: float | None
    unit: Unit
    #: Who says what it is: `given`, the question; `usual`, the baseline; `range`, the range itself.
    origin: Origin


class SuspectsBy(msgspec.Struct, frozen=True):
    """How suspects of a metric are asked for, by its name: `ratio`, as it is; or by the views `above` or `below` a threshold."""

    by: Literal["ratio", "above", "below"]
    #: Of a threshold: the parameter of `/v1/suspects`, in the unit of the metric, and the largest that it may be.
    parameter: str | None = None
    largest: int | None = None
    #: Where the threshold is among the usual values if none is given, 0..1 from the smallest on.
    rank: float | None = None


@dataclass(frozen=True)
class Measured:
    """A metric that adds up, as bad events: Σ events / Σ exposure x scale. More events are worse."""

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
    #: Of a value beyond a threshold.
    of_value: Value | None = None
    threshold: Threshold | None = None
    #: Of the placeholder in `events`.
    parameters: tuple[Any, ...] = ()
    #: Whether a view is an event or none; else events are sums, as ms.
    is_count: bool = False
    #: Whether the figure is the share of views that are no events.
    is_of_good: bool = False

    def value(self, events: float, exposure: float) -> float | None:
        """The figure; None without exposure."""
        counted = exposure - events if self.is_of_good else events
        return counted / exposure * self.scale if exposure > 0 else None

    def alone(self, question: Question) -> Question:
        """A question for several metrics as one for this: it reads no field of another."""
        return replace(question, metrics=(self.metric,))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a view that are read beside those of `metric`."""
        return () if self.of_value is None else self.of_value.fields


def _of_metric(metric: Metric) -> Measured:
    events, exposure = (
        " + ".join(PARTS[name].of_view for name in names) for names in (metric.numerator, metric.denominator)
    )
    return Measured(
        metric.name,
        metric.title,
        metric.unit,
        metric.scale,
        f"({exposure}) - ({events})" if metric.worse == "lower" else events,
        exposure,
        f"({PARTS[metric.base].of_view}) > 0",
        metric,
        is_count=_is_share(metric),
        is_of_good=metric.worse == "lower",
    )


def _is_share(metric: Metric) -> bool:
    """Whether it is a share of views."""
    return metric.denominator == (metric.base,) and metric.unit == "fraction"


#: By name: every ratio of sums that is worse when it is higher, and every share of views that is worse when it is lower.
OF_METRICS: Final[Mapping[str, Measured]] = {
    metric.name: _of_metric(metric)
    for metric in METRICS.values()
    if metric.kind == "ratio" and (metric.worse == "higher" or (metric.worse == "lower" and _is_share(metric)))
}


def ratio_of(name: str) -> Measured | None:
    """The metric of this name; of a sum that is worse when higher, the ratio that says how frequent it is."""
    if (found := OF_METRICS.get(name)) is not None:
        return found
    asked = METRICS.get(name)
    if asked is None or asked.kind != "sum" or asked.worse != "higher":
        return None
    return next((one for one in OF_METRICS.values() if one.metric.numerator == asked.numerator), None)


def suspects_by(metric: Metric) -> SuspectsBy | None:
    """How suspects of a metric are asked for; None where neither direction is worse."""
    value = VALUES.get(metric.name)
    if value is not None and value.side is not None:
        return SuspectsBy(value.side, PARAMETERS[value.side], value.largest, value.rank)
    return SuspectsBy("ratio") if ratio_of(metric.name) is not None else None


def read_with(measured: Measured) -> tuple[Measured, ...]:
    """The metrics that are read where one of them is asked for: somebody who looks at one looks at others too."""
    return tuple(OF_METRICS.values()) if measured.name in OF_METRICS else (measured,)


def beyond(value: Value, threshold: Threshold) -> Measured:
    """The share of views, of those with a value, whose value is beyond a threshold."""
    is_worse = f"({value.sql}) {'>' if threshold.side == 'above' else '<'} ?"
    return Measured(
        value.name,
        value.title if threshold.value is None else f"{value.title} {threshold.side} {_text(threshold)}",
        "fraction",
        1.0,
        f"CASE WHEN {is_worse} THEN 1 ELSE 0 END",
        f"CASE WHEN ({value.sql}) IS NOT NULL THEN 1 ELSE 0 END",
        f"({value.sql}) IS NOT NULL",
        METRICS["views"],
        of_value=value,
        threshold=threshold,
        parameters=(threshold.value,),
        is_count=True,
    )


def _text(threshold: Threshold) -> str:
    value = threshold.value or 0
    if threshold.unit == "bps":
        return f"{_number(value / 1_000)} kbps"
    return f"{_number(value)} ms" if threshold.unit == "ms" else f"{value:g}"


def _number(value: float) -> str:
    """Whole where nothing is lost by it that anybody sees."""
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"
