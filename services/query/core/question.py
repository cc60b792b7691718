"""A question as it is asked (`Asked`: the query parameters) and as it is understood (`Question`: checked, with its own buckets)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar, get_args
from zoneinfo import ZoneInfo

import msgspec

from services.query.core import filters, limits
from services.query.core.calendar import DAY_MS, HOUR_MS, Bucket, Buckets, Range, buckets, count, fitting, zones
from services.query.core.customers import Admit, Customers
from services.query.core.dimensions import VIEWER_ID, Dimension, dimension
from services.query.core.distributions import DISTRIBUTED
from services.query.core.filters import Filter
from services.query.core.metrics import METRICS, Metric
from services.query.core.parts import Part
from services.query.core.problems import Wrong, wrong
from shared.http.problems import Fault
from shared.schemas.beacon import CUSTOMER_ID

Shape = Literal["overall", "timeseries", "breakdown", "distribution", "rows", "suspects"]
#: All customers that the caller may see.
ALL: Final = "*"


class AskedWithin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters that every question of a range has. A list is written with commas, a time as ISO 8601 or ms since 1970."""

    customer: Annotated[str, msgspec.Meta(description="a customer, several, or * for all that you may see")] = ALL
    from_: Annotated[str, msgspec.Meta(description="the first moment; by default a day before `to`")] = msgspec.field(
        name="from", default=""
    )
    to: Annotated[str, msgspec.Meta(description="the moment after the last; by default the end of this hour")] = ""
    tz: Annotated[str, msgspec.Meta(description="IANA time zone of days and of times without one")] = "UTC"
    filter: Annotated[str, msgspec.Meta(description="JSON: and, or, not, dimension with in or contains, number")] = ""


#: The parameter `compare` of questions that can be compared with another range.
Compare = Annotated[
    str,
    msgspec.Meta(description="`previous`, or the first moment of a range as long; of whole days, as many days"),
]


class Asked(AskedWithin, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a question about metrics."""

    metrics: Annotated[str, msgspec.Meta(description="names of /v1/metrics")] = "views"
    compare: Compare = ""


class AskedSeries(Asked, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a series."""

    bucket: Annotated[Bucket | Literal[""], msgspec.Meta(description="by default one that fits the range")] = ""
    by: Annotated[str, msgspec.Meta(description="a dimension of /v1/dimensions: a line for each value")] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.SERIES_MAX, description="lines, besides (other)")] = 10


class AskedBreakdown(Asked, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a breakdown."""

    by: Annotated[str, msgspec.Meta(description="one or two dimensions of /v1/dimensions, or custom.<name>")]
    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.GROUPS_MAX, description="groups, besides (other)")] = 10
    order_by: Annotated[str, msgspec.Meta(description="the metric by which groups are ranked")] = "views"
    order: Literal["descending", "ascending"] = "descending"
    views_min: Annotated[
        int, msgspec.Meta(ge=0, le=limits.VIEWS_MAX, description="a group with fewer views is in (other)")
    ] = 0


class AskedDistribution(AskedWithin, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a distribution."""

    of: Annotated[str, msgspec.Meta(description=f"a field of a view: {', '.join(DISTRIBUTED)}")]
    compare: Compare = ""


@dataclass(frozen=True)
class Question:
    """What is asked, checked."""

    shape: Shape
    customers: Customers
    metrics: tuple[Metric, ...]
    range: Range
    filter: Filter | None = None
    by: tuple[Dimension, ...] = ()
    buckets: Buckets | None = None
    limit: int = 10
    #: Groups of a breakdown that rank before those that are listed.
    skipped: int = 0
    order_by: Metric = METRICS["views"]
    is_ascending: bool = False
    views_min: int = 0
    #: Of a distribution.
    field: str | None = None
    #: Of rows, and of suspects by a value: the fields of views that are read, besides those of dimensions in `by`.
    fields: tuple[str, ...] = ()
    compare: Range | None = None
    #: Whole hours within the range of which no view is needed, as between two ranges that are compared: they need not be read.
    unread: Range | None = None
    #: Groups that are listed at any rank: those of the answer that this one is compared with.
    pinned: tuple[tuple[str | None, ...], ...] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Every aggregate that the answer needs, each once; `views` first."""
        wanted = (METRICS["views"], *self.metrics, self.order_by)
        return tuple(dict.fromkeys(part for metric in wanted for part in metric.parts))

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """All that it names."""
        return tuple(dict.fromkeys((*self.by, *(filters.dimensions_of(self.filter) if self.filter else ()))))

    @property
    def is_of_viewers(self) -> bool:
        """Whether it tells viewers apart: then its answer has ids of single ones, or is about those that it names."""
        return any(one.name == VIEWER_ID for one in self.dimensions)

    @property
    def viewers(self) -> tuple[str, ...]:
        """The viewers that it names, by their ids or parts of these: who looks at single ones is noted."""
        return () if self.filter is None else filters.named_of(self.filter, VIEWER_ID)


_SHAPES: Final[dict[type, Shape]] = {
    Asked: "overall",
    AskedSeries: "timeseries",
    AskedBreakdown: "breakdown",
    AskedDistribution: "distribution",
}
AnyAsked = Asked | AskedSeries | AskedBreakdown | AskedDistribution
Parameters = TypeVar("Parameters", bound=msgspec.Struct)


def parsed(kind: type[Parameters], given: list[tuple[str, str]]) -> Parameters:
    """The parameters of a request; raises `Wrong`. `filter` may come several times: all must hold."""
    several = [value for name, value in given if name == "filter"]
    found: dict[str, Any] = {}
    for name, value in given:
        if name in found and name != "filter":
            raise wrong(name[:100], "given twice")
        found[name] = value
    if len(several) > 1:
        # Each is checked by itself: what stands in one cannot end another.
        joined = filters.both([filters.parsed(text) for text in several])
        found["filter"] = msgspec.json.encode(joined).decode()
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$.")
        raise Wrong(Fault(text[: limits.DETAIL_CHARACTERS_MAX], parameter=path.rstrip("`") or None)) from None


def understood(asked: AnyAsked, admit: Admit, now_ms: int, *, days_max: int = limits.DAYS_MAX) -> Question:
    """The question that is asked; raises `Wrong`, and what `admit` raises."""
    zone = zone_of(asked.tz)
    shared: dict[str, Any] = {"shape": _SHAPES[type(asked)], **selected(asked, admit, now_ms, days_max=days_max)}
    within = shared["range"]
    shared["compare"] = compared_with(asked.compare, within, zone)
    if isinstance(asked, AskedDistribution):
        if asked.of not in DISTRIBUTED:
            raise wrong("of", f"one of {', '.join(DISTRIBUTED)}")
        return Question(**shared, metrics=(METRICS["views"],), field=asked.of)
    shared["metrics"] = tuple(_metric("metrics", name) for name in listed("metrics", asked.metrics, limits.METRICS_MAX))
    if isinstance(asked, AskedSeries):
        by = dimensions_of("by", asked.by, most=1) if asked.by else ()
        question = Question(**shared, by=by, limit=asked.limit, buckets=_buckets(asked.bucket, within, zone))
        _check_figures(question)
        return question
    if isinstance(asked, AskedBreakdown):
        return Question(
            **shared,
            by=dimensions_of("by", asked.by, most=limits.DIMENSIONS_MAX),
            limit=asked.limit,
            order_by=_metric("order_by", asked.order_by),
            is_ascending=asked.order == "ascending",
            views_min=asked.views_min,
        )
    return Question(**shared)


def _check_figures(question: Question) -> None:
    """Raises `Wrong` for a series whose answer would be too large."""
    assert question.buckets is not None
    # Beside those that are listed there are (unknown) and (other).
    lines = question.limit + 2 if question.by else 1
    if len(question.buckets.keys) * lines * len(question.metrics) > limits.FIGURES_MAX:
        detail = f"a series has at most {limits.FIGURES_MAX} figures: fewer metrics or lines, longer buckets or a shorter range"
        raise wrong("limit" if question.by else "metrics", detail)


class Selecting(Protocol):
    """The parameters that say which views are meant."""

    @property
    def customer(self) -> str: ...
    @property
    def from_(self) -> str: ...
    @property
    def to(self) -> str: ...
    @property
    def tz(self) -> str: ...
    @property
    def filter(self) -> str: ...


def selected(asked: Selecting, admit: Admit, now_ms: int, *, days_max: int) -> dict[str, Any]:
    """What says which views are meant: customers, range and filter of a `Question`. Raises as `understood`."""
    return {
        "range": _range(asked.from_, asked.to, zone_of(asked.tz), now_ms, days_max),
        "customers": admit(customers_of(asked.customer)),
        "filter": filters.parsed(asked.filter) if asked.filter else None,
    }


def listed(parameter: str, text: str, most: int) -> list[str]:
    """The names of a parameter, with commas between them; raises `Wrong`."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",", 10 * most)))
    if not all(names) or len(names) > most:
        raise wrong(parameter, f"1 to {most} names with commas between them")
    return names


def customers_of(text: str) -> list[str]:
    """The customers that are named; none: all. Raises `Wrong`."""
    if text == ALL:
        return []
    names = listed("customer", text, limits.CUSTOMERS_MAX)
    if not all(map(CUSTOMER_ID.fullmatch, names)):
        raise wrong("customer", "the name of a customer, several with commas between them, or *")
    return names


def _metric(parameter: str, name: str) -> Metric:
    if (found := METRICS.get(name)) is None:
        raise wrong(parameter, f"no metric is named {name[:100]!r}: see /v1/metrics")
    return found


def dimensions_of(parameter: str, text: str, *, most: int) -> tuple[Dimension, ...]:
    """The dimensions that a parameter names, each once; raises `Wrong`."""
    found = []
    for name in listed(parameter, text, most):
        if (one := dimension(name)) is None:
            raise wrong(parameter, f"no dimension is named {name[:100]!r}: see /v1/dimensions")
        found.append(one)
    return tuple(found)


def zone_of(name: str) -> ZoneInfo:
    """The time zone of this name; raises `Wrong`."""
    if name not in zones():
        raise wrong("tz", "the name of a time zone, as Europe/Berlin")
    return ZoneInfo(name)


def _range(from_text: str, to_text: str, zone: ZoneInfo, now_ms: int, days_max: int) -> Range:
    to_ms = moment_of("to", to_text, zone) if to_text else (now_ms // HOUR_MS + 1) * HOUR_MS
    from_ms = moment_of("from", from_text, zone) if from_text else to_ms - DAY_MS
    if from_ms >= to_ms:
        raise wrong("from", "before `to`")
    if to_ms - from_ms > days_max * DAY_MS:
        raise wrong("from", f"a range has at most {days_max} days")
    return Range(from_ms, to_ms)


def moment_of(parameter: str, text: str, zone: ZoneInfo) -> int:
    """A parameter that is a time, ms since 1970; raises `Wrong`."""
    try:
        at_ms = int(text) if text.isascii() and text.isdigit() and len(text) > 8 else _iso_ms(text, zone)
    except (ValueError, OverflowError, OSError):
        raise wrong(parameter, "a time as 2026-02-01T12:00:00+01:00, 2026-02-01, or ms since 1970") from None
    if not limits.FIRST_MS <= at_ms <= limits.LAST_MS:
        raise wrong(parameter, "a time from 1970 to 2255")
    return at_ms


def _iso_ms(text: str, zone: ZoneInfo) -> int:
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp() * 1_000)


def compared_with(text: str, within: Range, zone: ZoneInfo) -> Range | None:
    """The range that parameter `compare` means: beside whole days as many, else as long; None where it is empty. Raises `Wrong`."""
    if not text:
        return None
    if text != "previous":
        return within.beside(moment_of("compare", text, zone), zone)
    before = within.before(zone)
    if before.from_ms < limits.FIRST_MS:
        raise wrong("compare", "a time from 1970 to 2255")
    return before


def _buckets(bucket: Bucket | Literal[""], within: Range, zone: ZoneInfo) -> Buckets:
    chosen = bucket or fitting(within)
    assert chosen in get_args(Bucket)
    if count(within, chosen) > limits.POINTS_MAX:
        raise wrong("bucket", f"a series has at most {limits.POINTS_MAX} points: a longer bucket or a shorter range")
    return buckets(within, chosen, zone)
