"""A question for suspects as it is asked (the query parameters) and as it is understood. Pure."""

from dataclasses import dataclass
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
from services.query.core.suspects.measured import ABOVE_MS, OF_METRICS, Measured, above, read_with
from shared.statistics.suspects.counts import DIMENSIONS_MAX

SUSPECTS_MAX: Final = 10
#: What a cohort is held against: itself at another time, or all other views of the same time.
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
            description=f"one of {', '.join(OF_METRICS)}; or a value in ms, with above_ms: {', '.join(MEASURED)}"
        ),
    ]
    above_ms: Annotated[
        int,
        msgspec.Meta(ge=0, le=86_400_000, description="of a value in ms: views with more than this are the bad ones"),
    ] = ABOVE_MS
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

    def held_against(self, views: int, usual_views: int) -> Against:
        """What cohorts are held against, by the views of the range and of its baseline."""
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
            field=measured.field,
        )

    return SuspectsQuestion(measured, of(now), of(usual), asked.limit, _against(asked), asked.order_by)


def _against(asked: AskedSuspects) -> Against | None:
    has_baseline = bool(asked.baseline_from or asked.baseline_to)
    if asked.against == "rest" and has_baseline:
        raise wrong("against", "the rest has no baseline: one of the two")
    # Who names a baseline wants that one.
    return asked.against or ("usual" if has_baseline else None)


def _measured(asked: AskedSuspects) -> Measured:
    if asked.metric in MEASURED:
        return above(asked.metric, asked.above_ms)
    if (found := OF_METRICS.get(asked.metric)) is None:
        raise wrong("metric", f"no suspects of {asked.metric[:100]!r}: one of {', '.join((*OF_METRICS, *MEASURED))}")
    return found


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
