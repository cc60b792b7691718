"""The search for views: chosen columns, sorted, in pages that continue after a cursor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec

from services.accounts.core.pages import MEANT
from services.query.core import cursors, filters
from services.query.core.answer import About
from services.query.core.calendar import HOUR_MS
from services.query.core.customers import Admit
from services.query.core.dimensions import VIEWER_ID, Dimension, dimension
from services.query.core.fields import NUMBERS, SINGLE
from services.query.core.filters import Filter
from services.query.core.metrics import METRICS
from services.query.core.problems import wrong
from services.query.core.question import AskedWithin, Question, listed, selected
from services.query.core.sql import statements
from services.query.core.sql.statements import TIME_FIELDS, Statement
from shared.measures import COUNTED_MS

#: Of a row, always: what names a view, and when it counts.
NAMED_BY: Final = ("customer_id", "view_id", "day", "counted_ms")
COLUMNS: Final = (
    "view_start_ms,video_title,viewer,country,device,cdn,player_version,"
    "watch_ms,startup_ms,rebuffer_ms,score_view,error_code"
)
COLUMNS_MAX: Final = 60
#: Columns that say how many values a list of a view has, each with the list; null where it has none.
COUNTS: Final = {"playback_ranges_count": "playback_ranges"}
VIEWS_MAX: Final = 1_000
#: Of a page by time: the hours that are looked through first, and how many times longer each further part is.
_FIRST_HOURS: Final = 24
_TIMES_LONGER: Final = 4
#: What views are sorted by besides numbers: when they count.
BY_TIME: Final = "time"
#: Of the last view of a page: its value of `order_by`, when it counts, and its key.
_PLACE: Final = (int | float | None, int, str, str, int)


class AskedViews(AskedWithin, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a search. `viewer`, `title`, `error` and the scores are short for parts of `filter`."""

    viewer: Annotated[str, msgspec.Meta(description="the id of a viewer, whole")] = ""
    title: Annotated[str, msgspec.Meta(description="a part of the video's title")] = ""
    error: Annotated[str, msgspec.Meta(description="an error code, whole")] = ""
    score_at_least: Annotated[float | None, msgspec.Meta(description="of the experience score, 0 to 100")] = None
    score_below: Annotated[float | None, msgspec.Meta(description="of the experience score, 0 to 100")] = None
    columns: Annotated[
        str,
        msgspec.Meta(description="fields of a view, dimensions, and playback_ranges_count, with commas between them"),
    ] = COLUMNS
    order_by: Annotated[str, msgspec.Meta(description="`time`, or a number of a view")] = BY_TIME
    order: Literal["descending", "ascending"] = "descending"
    limit: Annotated[int, msgspec.Meta(ge=1, le=VIEWS_MAX, description="views of a page")] = 50
    cursor: Annotated[str, msgspec.Meta(description=MEANT)] = ""
    format: Annotated[
        Literal["json", "csv", ""], msgspec.Meta(description="csv as by `Accept: text/csv`; by default JSON")
    ] = ""


class ViewList(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of views, each with its columns; an unknown value is null.

    A view that is still open has no row, and is not listed: `/v1/open-views` has it, and `/v1/views/{view_id}` by its id.
    """

    about: About
    columns: list[str]
    views: list[dict[str, Any]]
    #: The cursor of the next page; absent on the last one.
    next: str | None = None


@dataclass(frozen=True)
class Search:
    """A search, checked."""

    question: Question
    columns: tuple[str, ...]
    order_by: str
    is_ascending: bool
    limit: int
    #: Names the search, so that a cursor of another one is refused.
    name: str
    #: Of the last row of the page before: its value of `order_by`, and its place.
    after: tuple[Any, ...] | None = None


def understood(asked: AskedViews, admit: Admit, now_ms: int, *, days_max: int) -> Search:
    """The search that is asked for; raises `Wrong`, and what `admit` raises."""
    name = cursors.name_of(asked, limit=1, format="", columns="")
    after = None
    if asked.cursor:
        # Without `to` the range ends now: all pages have that of the first one.
        within, after = cursors.opened(asked, name, _PLACE)
        asked = msgspec.structs.replace(asked, **within)
    columns = listed("columns", asked.columns, COLUMNS_MAX)
    fields, dimensions = [], []
    for column in columns:
        if column in SINGLE:
            fields.append(column)
        elif column in COUNTS:
            fields.append(COUNTS[column])
        elif (found := dimension(column)) is not None:
            dimensions.append(found)
        elif column not in NAMED_BY:
            raise wrong("columns", f"neither a field of a view nor a dimension is named {column[:100]!r}")
    if asked.order_by not in {BY_TIME, *NUMBERS}:
        raise wrong("order_by", f"`{BY_TIME}`, or a number of a view")
    given = selected(asked, admit, now_ms, days_max=days_max)
    given["filter"] = filters.both([one for one in (given["filter"], *_short(asked)) if one is not None])
    order_fields = [] if asked.order_by == BY_TIME else [asked.order_by]
    question = Question(
        shape="rows",
        metrics=(METRICS["views"],),
        by=tuple(dimensions),
        fields=tuple(dict.fromkeys(("view_id", "day", *TIME_FIELDS, *fields, *order_fields))),
        **given,
    )
    return Search(
        question,
        tuple(dict.fromkeys((*NAMED_BY, *columns))),
        asked.order_by,
        asked.order == "ascending",
        asked.limit,
        name,
        None if after is None else tuple(after),
    )


def _short(asked: AskedViews) -> list[Filter]:
    found = [
        Filter(dimension=name, values=(value,))
        for name, value in ((VIEWER_ID, asked.viewer), ("error_code", asked.error))
        if value
    ]
    if asked.title:
        found.append(Filter(dimension="video_title", contains=asked.title))
    if asked.score_at_least is not None or asked.score_below is not None:
        found.append(Filter(number="score_view", at_least=asked.score_at_least, below=asked.score_below))
    for one in found:
        filters.check(one)
    return found


def in_parts(search: Search) -> list[Statement]:
    """The rows of a page and one more, if there is one: those of each statement come before those of the next.

    By time the first part is the day where the page begins, and each further part is four times as long. A page that is full
    after some parts needs no row of the others. Each opens the files of the whole range, and reads rows of those whose bounds
    allow it.
    """
    within = search.question.range
    if search.order_by != BY_TIME:
        return [statement(search)]
    first, end = within.first_hour, within.end_hour
    if search.after is not None:
        hour = int(search.after[1]) // HOUR_MS
        first, end = (max(first, hour), end) if search.is_ascending else (first, min(end, hour + 1))
    found: list[Statement] = []
    hours = _FIRST_HOURS
    while first < end or not found:
        if search.is_ascending:
            part = range(first, min(end, first + hours))
            first = part.stop
        else:
            part = range(max(first, end - hours), end)
            end = part.start
        found.append(statement(search, part))
        hours *= _TIMES_LONGER
    return found


def statement(search: Search, hours: range | None = None) -> Statement:
    """The rows of a page and one more, if there is one; with `hours` (since 1970) of these alone."""
    condition, parameters = statements.conditions_of(search.question)
    if hours is not None:
        condition, parameters = f"{condition} AND hour >= ? AND hour < ?", [*parameters, hours.start, hours.stop]
    by_time = search.order_by == BY_TIME
    order = "counted_ms" if by_time else search.order_by
    direction = "ASC" if search.is_ascending else "DESC"
    # By the hour first, which says the same and is a column: files whose hours cannot be on the page are not read.
    first = f"hour {direction}, " if by_time else ""
    shown = ", ".join(f"{_expression(search, column)} AS c{number}" for number, column in enumerate(search.columns))
    behind, values = _behind(search, order)
    sql = f"""
        SELECT {shown}, {order} AS ordered FROM (SELECT *, {COUNTED_MS} AS counted_ms FROM views WHERE {condition}) AS found
        WHERE {behind}
        ORDER BY {first}{order} {direction} NULLS LAST, counted_ms DESC, customer_id, view_id, day LIMIT {search.limit + 1:d}
    """  # noqa: S608 - names of ours
    return Statement(sql, (*parameters, *values), (*search.columns, "ordered"))


def page(search: Search, rows: Sequence[Mapping[str, Any]], about: About) -> ViewList:
    """The page that the rows of `in_parts` make."""
    views = [{column: row[column] for column in search.columns} for row in rows[: search.limit]]
    following = None
    if len(rows) > search.limit:
        last = rows[search.limit - 1]
        place = [last["ordered"], *(last[name] for name in ("counted_ms", "customer_id", "view_id", "day"))]
        following = cursors.closed(search.name, search.question.range, place)
    return ViewList(about, list(search.columns), views, following)


def _expression(search: Search, column: str) -> str:
    if column in SINGLE or column == "counted_ms":
        return column
    if column in COUNTS:
        return f"nullif(len({COUNTS[column]}), 0)"
    found = dimension(column)
    assert found is not None
    return _of(search.question, found)


def _of(question: Question, one: Dimension) -> str:
    return statements.value_of(question, one)


def _behind(search: Search, order: str) -> tuple[str, list[Any]]:
    """The condition that a row comes after the last one of the page before."""
    if search.after is None:
        return "true", []
    ordered, counted_ms, *key = search.after
    same = "counted_ms < ? OR counted_ms = ? AND (customer_id, view_id, day) > (?, ?, ?)"
    same_values = [counted_ms, counted_ms, *key]
    if search.order_by == BY_TIME:
        # Of equal times the order is that of the key, in both directions.
        sign = ">" if search.is_ascending else "<"
        return f"(counted_ms {sign} ? OR counted_ms = ? AND (customer_id, view_id, day) > (?, ?, ?))", same_values
    if ordered is None:
        return f"({order} IS NULL AND ({same}))", same_values
    sign = ">" if search.is_ascending else "<"
    return f"({order} {sign} ? OR {order} IS NULL OR {order} = ? AND ({same}))", [ordered, ordered, *same_values]
