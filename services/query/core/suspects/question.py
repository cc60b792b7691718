"""A question for suspects as it is asked (the query parameters) and as it is understood. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from services.query.core import filters, limits
from services.query.core.calendar import DAY_MS, HOUR_MS, Range
from services.query.core.customers import Admit
from services.query.core.dimensions import CUSTOMER
from services.query.core.metrics import MEASURED
from services.query.core.problems import wrong
from services.query.core.question import ALL, Question, customers_of, dimensions_of, moment_of, zone_of
from services.query.core.suspects.measured import Measured, Threshold, beyond, ratio_of, read_with
from services.query.core.suspects.values import LARGEST, PARAMETERS, VALUES, Side, Value
from shared.statistics.suspects.counts import DIMENSIONS_MAX

SUSPECTS_MAX: Final = 10
#: What a cohort is compared with: itself at another time, or all other views of the same time.
Against = Literal["usual", "rest"]
#: What suspects are ranked by: how much a cohort explains, or how sure it is that the cohort changed.
OrderBy = Literal["excess", "surprise"]
#: What is usual is known from so many views, or from fewer where the range has not `_TIMES_MORE` as many.
USUAL_VIEWS_MIN: Final = 1_000
_TIMES_MORE: Final = 4
#: What views are distinguished by, where a question does not say: what an operator can act on.
DIMENSIONS: Final = (
    "cdn",
    "country",
    "asn",
    "device",
    "os",
    "browser",
    "player_name",
    "player_version",
    "stream_type",
    "video_title",
)


class AskedSuspects(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a question for suspects. A list is written with commas, a time as ISO 8601 or ms since 1970."""

    metric: Annotated[
        str,
        msgspec.Meta(
            description="a metric that can be worse: `suspects` of /v1/metrics says how it is asked for; or a value in ms,"
            f" with above_ms: {', '.join(MEASURED)}"
        ),
    ]
    above_ms: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=LARGEST["ms"])] | None,
        msgspec.Meta(
            description="of a value in ms that is worse when higher: views with more than this are the bad ones; by default"
            " the worst tenth of the usual ones, of a percentile those above the usual percentile",
        ),
    ] = None
    below: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=max(LARGEST.values()))] | None,
        msgspec.Meta(
            description="of a value that is worse when lower, in its unit: views with less than this are the bad ones; by"
            " default the worst tenth of the usual ones",
        ),
    ] = None
    customer: Annotated[str, msgspec.Meta(description="a customer, several, or * for all that you may see")] = ALL
    from_: Annotated[str, msgspec.Meta(description="the first moment; by default an hour before `to`")] = msgspec.field(
        name="from", default=""
    )
    to: Annotated[str, msgspec.Meta(description="the moment after the last; by default now")] = ""
    baseline_from: Annotated[
        str, msgspec.Meta(description="the first moment of what is usual; by default a day before its end")
    ] = ""
    baseline_to: Annotated[
        str,
        msgspec.Meta(
            description="the moment after the last of what is usual; by default `from`, or its full hour without baseline_from"
        ),
    ] = ""
    against: Annotated[
        Against | Literal[""],
        msgspec.Meta(
            description="`usual`: the baseline; `rest`: all other views of the range. By default the baseline, and the rest"
            " where it has too few views"
        ),
    ] = ""
    tz: Annotated[str, msgspec.Meta(description="IANA time zone of times without one")] = "UTC"
    filter: Annotated[str, msgspec.Meta(description="JSON: and, or, not, or dimension with in")] = ""
    dimensions: Annotated[
        str,
        msgspec.Meta(
            description=f"2 to {DIMENSIONS_MAX} by which cohorts are made; by default {', '.join(DIMENSIONS)}"
        ),
    ] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=SUSPECTS_MAX, description="suspects: those found first")] = 5
    order_by: Annotated[
        OrderBy,
        msgspec.Meta(
            description="what suspects are ranked by, the largest first: `excess`, how many events they explain, or"
            " `surprise`, how far their evidence is beyond chance"
        ),
    ] = "excess"


@dataclass(frozen=True)
class SuspectsQuestion:
    """What is asked, checked. Both questions read the same of two ranges."""

    measured: Measured
    now: Question
    usual: Question
    limit: int
    #: None: what the baseline's views allow.
    against: Against | None = None
    order_by: OrderBy = "excess"

    @property
    def sides(self) -> tuple[Question, Question]:
        """The question of its range, and that of its baseline."""
        return self.now, self.usual

    @property
    def needs_threshold(self) -> bool:
        """Whether views are to say what the threshold is."""
        threshold = self.measured.threshold
        return threshold is not None and threshold.value is None

    def with_threshold(self, threshold: Threshold) -> "SuspectsQuestion":
        """The same with a threshold of its value."""
        assert self.measured.of_value is not None
        return replace(self, measured=beyond(self.measured.of_value, threshold))

    def held_against(self, views: int, usual_views: int) -> Against:
        """What cohorts are compared with, by the views of the range and of its baseline."""
        is_known = usual_views >= min(USUAL_VIEWS_MIN, views / _TIMES_MORE)
        return self.against or ("usual" if is_known else "rest")


def understood(asked: AskedSuspects, admit: Admit, now_ms: int, *, days_max: int = limits.DAYS_MAX) -> SuspectsQuestion:
    """The question that is asked; raises `Wrong`, and what `admit` raises."""
    zone = zone_of(asked.tz)
    to_ms = moment_of("to", asked.to, zone) if asked.to else now_ms
    from_ms = moment_of("from", asked.from_, zone) if asked.from_ else to_ms - HOUR_MS
    now = _range("from", from_ms, to_ms, days_max)
    usual = _baseline(asked, now, zone, days_max)
    customers = admit(customers_of(asked.customer))
    measured = _measured(asked)
    names = list(DIMENSIONS)
    if customers.only is None or len(customers.only) > 1:
        names.append(CUSTOMER)
    if asked.dimensions:
        names = [name.strip() for name in asked.dimensions.split(",", 10 * DIMENSIONS_MAX)]
    by = dimensions_of("dimensions", ",".join(names), most=DIMENSIONS_MAX)
    if len(by) < 2:
        raise wrong("dimensions", f"2 to {DIMENSIONS_MAX} names with commas between them")

    def of(within: Range) -> Question:
        return Question(
            shape="suspects",
            customers=customers,
            metrics=tuple(one.metric for one in read_with(measured)),
            range=within,
            filter=filters.parsed(asked.filter) if asked.filter else None,
            by=by,
            fields=measured.fields,
        )

    return SuspectsQuestion(measured, of(now), of(usual), asked.limit, _against(asked), asked.order_by)


def _against(asked: AskedSuspects) -> Against | None:
    has_baseline = bool(asked.baseline_from or asked.baseline_to)
    if asked.against == "rest" and has_baseline:
        raise wrong("against", "the rest has no baseline: one of the two")
    # Who names a baseline wants that one.
    return asked.against or ("usual" if has_baseline else None)


def _measured(asked: AskedSuspects) -> Measured:
    both: dict[Side, float | None] = {"above": asked.above_ms, "below": asked.below}
    given = {side: threshold for side, threshold in both.items() if threshold is not None}
    if (value := VALUES.get(asked.metric)) is not None:
        return beyond(value, _threshold(value, given))
    if (found := ratio_of(asked.metric)) is None:
        detail = (
            f"no suspects of {asked.metric[:100]!r}: a metric of /v1/metrics with `suspects`, or {', '.join(MEASURED)}"
        )
        raise wrong("metric", detail)
    for side in given:
        raise wrong(PARAMETERS[side], "only of a value with a threshold: this metric is a ratio")
    return found


def _threshold(value: Value, given: Mapping[Side, float]) -> Threshold:
    """The threshold that is given, or one whose value is still to be found."""
    for side, threshold in given.items():
        if value.side not in {None, side}:
            raise wrong(PARAMETERS[side], f"the views {value.side} a threshold are the bad ones of this metric")
        if len(given) > 1:
            raise wrong(PARAMETERS[side], f"one of {' and '.join(PARAMETERS.values())}")
        if threshold > value.largest:
            raise wrong(PARAMETERS[side], f"at most {value.largest:,} {value.unit}")
        return Threshold(side, threshold, value.unit, "given")
    if value.side is None:
        raise wrong("above_ms", "neither more nor less is worse by itself: above_ms or below")
    return Threshold(value.side, None, value.unit, "usual")


def _baseline(asked: AskedSuspects, now: Range, zone: ZoneInfo, days_max: int) -> Range:
    to_ms = moment_of("baseline_to", asked.baseline_to, zone) if asked.baseline_to else now.from_ms
    if not (asked.baseline_from or asked.baseline_to):
        # Whole hours are counted without the time of each view.
        to_ms -= to_ms % HOUR_MS
    # Of a day at least: what is usual must be better known than what is not.
    length = max(DAY_MS, now.to_ms - now.from_ms)
    from_ms = moment_of("baseline_from", asked.baseline_from, zone) if asked.baseline_from else max(0, to_ms - length)
    found = _range("baseline_from", from_ms, to_ms, days_max)
    if found.from_ms < now.to_ms and now.from_ms < found.to_ms:
        raise wrong("baseline_to", "what is usual does not overlap with the range")
    return found


def _range(parameter: str, from_ms: int, to_ms: int, days_max: int) -> Range:
    if from_ms >= to_ms:
        raise wrong(parameter, "before its end")
    if to_ms - from_ms > days_max * DAY_MS:
        raise wrong(parameter, f"a range has at most {days_max} days")
    return Range(from_ms, to_ms)
