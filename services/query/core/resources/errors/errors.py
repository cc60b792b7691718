"""Errors: the codes of a range, each with its texts, its share of views, where it occurs, and whether it is new or rose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import msgspec

from services.accounts.core.pages import MEANT
from services.query.core import cursors
from services.query.core.answer import About, Figure, Span
from services.query.core.calendar import Range
from services.query.core.customers import Admit
from services.query.core.dimensions import DIMENSIONS
from services.query.core.metrics import METRICS
from services.query.core.parts import VIEWER
from services.query.core.problems import wrong
from services.query.core.question import AskedWithin, Compare, Question, compared_with, moment_of, selected, zone_of
from services.query.core.resources.errors.seen import CODE, SEEN, parameters_of, seen_before
from services.query.core.sql import statements
from services.query.core.sql.statements import TIME_FIELDS, Statement
from shared.measures import COUNTED_MS

ERRORS_MAX: Final = 500
#: Of an error: texts, values of each dimension, and views that are named.
_TOP: Final = 5
#: By what an error is broken down, besides its texts.
BY: Final = ("video_title", "player_version", "player_name", "device", "cdn")
_FIELDS: Final = ("view_id", "day", "error_code", "error_message", "playback_failed", "startup_failed", *TIME_FIELDS)

OrderBy = Literal["views", "change", "first_seen", "last_seen"]
#: By what codes are ordered, of each code's counts.
_ORDERS: Final[dict[OrderBy, str]] = {
    "views": "views",
    "change": "coalesce(later / nullif((SELECT later_n FROM totals), 0), 0)"
    " - coalesce(earlier / nullif((SELECT earlier_n FROM totals), 0), 0)",
    "first_seen": "first_ms",
    "last_seen": "last_ms",
}

Row = Mapping[str, Any]


class AskedErrors(AskedWithin, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of the list of errors."""

    since: Annotated[
        str,
        msgspec.Meta(description="a moment within the range, as of a release: what is new since; not with `compare`"),
    ] = ""
    compare: Compare = ""
    order_by: Annotated[
        OrderBy, msgspec.Meta(description="`change`: by how much the share of views rose, with `since` or `compare`")
    ] = "views"
    order: Literal["descending", "ascending"] = "descending"
    limit: Annotated[int, msgspec.Meta(ge=1, le=ERRORS_MAX, description="codes, the first ones in this order")] = 50
    cursor: Annotated[str, msgspec.Meta(description=MEANT)] = ""


class Occurrence(msgspec.Struct, frozen=True):
    """A text or a value, and of how many views with the error it is; null is an unknown value."""

    value: str | None
    views: int


class Sample(msgspec.Struct, frozen=True):
    """A view that had the error; `at_ms` is when it counts, at its end."""

    customer_id: str
    view_id: str
    day: int
    at_ms: int
    viewer: str | None


class ErrorCode(msgspec.Struct, frozen=True, omit_defaults=True):
    """One code. Times are those of views, at their ends. `first_ms` is of the range or since `seen_from_ms` of the list."""

    code: str
    views: int
    share: Figure
    viewers: int
    #: Views that failed: playback or start-up.
    failed: int
    first_ms: int
    last_ms: int
    texts: list[Occurrence]
    #: The most frequent values of each dimension.
    by: dict[str, list[Occurrence]]
    #: Empty for callers without the scope `read_views`.
    samples: list[Sample]
    #: With `since`: whether no view before it had the code, from `seen_from_ms` of the list on; and its share of views of the range
    #: before and since. With `compare`: whether none before the range or in the one that is compared with had it; and both shares.
    is_new: bool | None = None
    before: Figure | None = None
    after: Figure | None = None


class ErrorList(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of codes. `n` counts all views of the range, `with_error` those with any code, `codes` all codes there are."""

    about: About
    n: int
    with_error: int
    codes: int
    errors: list[ErrorCode]
    #: From when on codes were looked for: some weeks before the range. Where those have too many views, the range alone.
    seen_from_ms: int
    since_ms: int | None = None
    #: With `compare`: the range that is compared with.
    compared: Span | None = None
    #: The cursor of the next page; absent on the last one.
    next: str | None = None


@dataclass(frozen=True)
class ErrorsQuestion:
    """What is asked, checked."""

    #: What is read: the range, and the one that it is compared with.
    question: Question
    range: Range
    limit: int
    #: What comes before `since`, and what from then on.
    since_ms: int | None
    compared: Range | None
    order_by: OrderBy
    is_ascending: bool
    #: The days before the range in which codes are looked for.
    seen: Question
    #: Names the list, so that a cursor of another one is refused.
    name: str
    #: Of the last code of the page before: by what it is ordered, and the code.
    after: tuple[float, str] | None = None

    @property
    def direction(self) -> str:
        """The order, in SQL."""
        return "ASC" if self.is_ascending else "DESC"


def without_samples(found: ErrorList) -> ErrorList:
    """The same list without single views."""
    codes = [msgspec.structs.replace(code, samples=[]) for code in found.errors]
    return msgspec.structs.replace(found, errors=codes)


def understood(asked: AskedErrors, admit: Admit, now_ms: int, *, days_max: int) -> ErrorsQuestion:
    """The question; raises `Wrong`, and what `admit` raises."""
    name, after = cursors.name_of(asked, limit=1), None
    if asked.cursor:
        place = (float if asked.order_by == "change" else int, str)
        within, (value, code) = cursors.opened(asked, name, place)
        asked, after = msgspec.structs.replace(asked, **within), (value, code)
    given = selected(asked, admit, now_ms, days_max=days_max)
    within_range: Range = given["range"]
    since_ms = moment_of("since", asked.since, zone_of(asked.tz)) if asked.since else None
    if since_ms is not None and not within_range.from_ms < since_ms < within_range.to_ms:
        raise wrong("since", "a moment after `from` and before `to`")
    if since_ms is not None and asked.compare:
        raise wrong("compare", "either `since` or `compare`")
    compared = compared_with(asked.compare, within_range, zone_of(asked.tz))
    if asked.order_by == "change" and since_ms is None and compared is None:
        raise wrong("order_by", "`change` needs `since` or `compare`")
    by = tuple(DIMENSIONS[name] for name in BY)
    question = Question(shape="rows", metrics=(METRICS["viewers"],), by=by, fields=_FIELDS, **given)
    seen = seen_before(question)
    if compared is not None:
        both, between = within_range.with_other(compared), within_range.hours_between(compared)
        question = replace(question, range=both, unread=between)
    return ErrorsQuestion(
        question=question,
        range=within_range,
        limit=asked.limit,
        since_ms=since_ms,
        compared=compared,
        order_by=asked.order_by,
        is_ascending=asked.order == "ascending",
        seen=seen,
        name=name,
        after=after,
    )


def asked_of(asked: ErrorsQuestion, seen: Sequence[Row]) -> list[Statement]:
    """The statements: all views; the codes; their texts and values; their samples. `seen`: what was seen before."""
    condition, parameters = statements.conditions_of(asked.question)
    found, place = _listed(asked, condition, seen)
    values = {"": "error_message"} | {one.name: statements.value_of(asked.question, one) for one in asked.question.by}
    apart = " UNION ALL ".join(
        f"SELECT error_code AS code, '{name}' AS dimension, {value} AS value, count(*) AS views FROM listed GROUP BY ALL"  # noqa: S608
        for name, value in values.items()
    )
    counted, earlier, later = _spans(asked)
    # Names and numbers of ours alone.
    totals = f"""
        SELECT count(*) FILTER ({counted}), count(error_code) FILTER ({counted}), count(DISTINCT error_code) FILTER ({counted}),
               count(*) FILTER ({earlier}), count(*) FILTER ({later})
        FROM (SELECT {CODE} AS error_code, {COUNTED_MS} AS at_ms FROM views WHERE {condition}) AS chosen
    """  # noqa: S608
    codes = f"""{found}
        SELECT code, views, viewers, failed, first_ms, last_ms, earlier, later, seen_ms, place
        FROM codes JOIN (SELECT error_code, count(DISTINCT viewer) AS viewers FROM listed GROUP BY error_code) AS known
        ON code = error_code ORDER BY place {asked.direction}, code
    """  # noqa: S608
    tops = f"""{found}
        SELECT * FROM ({apart}) AS apart
        QUALIFY row_number() OVER (PARTITION BY code, dimension ORDER BY views DESC, value) <= {_TOP} ORDER BY views DESC, value
    """  # noqa: S608
    samples = f"""{found}
        SELECT error_code, customer_id, view_id, day, at_ms, viewer FROM listed
        QUALIFY row_number() OVER (PARTITION BY error_code ORDER BY at_ms DESC, customer_id, view_id, day) <= {_TOP}
        ORDER BY at_ms DESC, customer_id, view_id, day
    """  # noqa: S608
    columns = (
        ("views", "with_error", "codes", "earlier", "later"),
        ("code", "views", "viewers", "failed", "first_ms", "last_ms", "earlier", "later", "seen_ms", "place"),
        ("code", "dimension", "value", "views"),
        ("code", "customer_id", "view_id", "day", "at_ms", "viewer"),
    )
    asked_in_turn = zip((totals, codes, tops, samples), columns, strict=True)
    return [Statement(sql, (*parameters, *(() if sql is totals else place)), names) for sql, names in asked_in_turn]


def _spans(asked: ErrorsQuestion) -> tuple[str, str, str]:
    """What holds of the views of the range, of those before, and of those since; `at_ms` is when a view counts."""
    within = asked.range
    later = within if asked.since_ms is None else Range(asked.since_ms, within.to_ms)
    earlier = asked.compared or Range(within.from_ms, later.from_ms)
    counted, before, since = (f"at_ms >= {one.from_ms:d} AND at_ms < {one.to_ms:d}" for one in (within, earlier, later))
    return counted, before, since


def _listed(asked: ErrorsQuestion, condition: str, seen: Sequence[Row]) -> tuple[str, list[Any]]:
    """What statements begin with: `codes` of the page, and `listed`, their views in the range. And its own parameters."""
    counted, earlier, later = _spans(asked)
    behind, place = "true", parameters_of(seen)
    if asked.after is not None:
        value, code = asked.after
        behind = f"place {'>' if asked.is_ascending else '<'} ? OR place = ? AND code > ?"
        place += [value, value, code]
    # All that any order needs: what one does not use is not computed.
    return (
        f"""
        WITH chosen AS (
            SELECT * REPLACE ({CODE} AS error_code), {COUNTED_MS} AS at_ms, {VIEWER} AS viewer FROM views WHERE {condition}
        ),
        found AS (SELECT * FROM chosen WHERE error_code IS NOT NULL),
        totals AS (SELECT count(*) FILTER ({earlier}) AS earlier_n, count(*) FILTER ({later}) AS later_n FROM chosen),
        counts AS (
            SELECT error_code AS code, count(*) FILTER ({counted}) AS views,
                   count(*) FILTER ({counted} AND (playback_failed OR startup_failed)) AS failed,
                   min(at_ms) FILTER ({counted}) AS first_ms, max(at_ms) FILTER ({counted}) AS last_ms,
                   count(*) FILTER ({earlier}) AS earlier, count(*) FILTER ({later}) AS later
            FROM found GROUP BY error_code
        ),
        seen AS ({SEEN}),
        dated AS (
            SELECT counts.* REPLACE (least(first_ms, seen_ms) AS first_ms), seen_ms FROM counts LEFT JOIN seen USING (code)
            WHERE views > 0
        ),
        placed AS (SELECT *, {_ORDERS[asked.order_by]} AS place FROM dated),
        codes AS (SELECT * FROM placed WHERE {behind} ORDER BY place {asked.direction}, code LIMIT {asked.limit + 1:d}),
        listed AS (SELECT * FROM found WHERE {counted} AND error_code IN (SELECT code FROM codes))
        """,  # noqa: S608 - names and numbers of ours alone
        place,
    )
