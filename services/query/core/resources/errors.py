"""Errors: the codes of a range, each with its texts, its share of views, where it occurs, and whether it is new since a moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from services.accounts.core.pages import MEANT
from services.query.core import cursors
from services.query.core.answer import About, Figure
from services.query.core.customers import Admit
from services.query.core.dimensions import DIMENSIONS
from services.query.core.metrics import METRICS, VIEWER
from services.query.core.problems import wrong
from services.query.core.question import Question, moment_of, selected, zone_of
from services.query.core.sql import statements
from services.query.core.sql.statements import TIME_FIELDS, Statement
from shared.measures import COUNTED_MS

ERRORS_MAX: Final = 500
#: Of an error: texts, values of each dimension, and views that are named.
_TOP: Final = 5
#: By what an error is broken down, besides its texts.
_BY: Final = ("video_title", "player_version", "player_name", "device", "cdn")
_FIELDS: Final = ("view_id", "day", "error_code", "error_message", "playback_failed", "startup_failed", *TIME_FIELDS)

#: Of the last code of a page: its views, and the code.
_PLACE: Final = (int, str)

Row = Mapping[str, Any]


class AskedErrors(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of the list of errors."""

    customer: Annotated[str, msgspec.Meta(description="a customer, several, or * for all that you may see")] = "*"
    from_: Annotated[str, msgspec.Meta(description="the first moment; by default a day before `to`")] = msgspec.field(
        name="from", default=""
    )
    to: Annotated[str, msgspec.Meta(description="the moment after the last; by default the end of this hour")] = ""
    tz: Annotated[str, msgspec.Meta(description="IANA time zone of times without one")] = "UTC"
    filter: Annotated[str, msgspec.Meta(description="as of any question")] = ""
    since: Annotated[str, msgspec.Meta(description="a moment within the range, as of a release: what is new since")] = (
        ""
    )
    limit: Annotated[int, msgspec.Meta(ge=1, le=ERRORS_MAX, description="codes, those with the most views")] = 50
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
    """One code. Times are those of views, at their ends, within the range."""

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
    samples: list[Sample]
    #: With `since`: whether no view before it had the code, and its share of views before and since.
    is_new: bool | None = None
    before: Figure | None = None
    after: Figure | None = None


class ErrorList(msgspec.Struct, frozen=True, omit_defaults=True):
    """The codes with the most views. `n` counts all views, `with_error` those with any code, `codes` all codes there are."""

    about: About
    n: int
    with_error: int
    codes: int
    errors: list[ErrorCode]
    since_ms: int | None = None
    #: The cursor of the next page; absent on the last one.
    next: str | None = None


@dataclass(frozen=True)
class ErrorsQuestion:
    """What is asked, checked."""

    question: Question
    limit: int
    since_ms: int | None
    #: Names the list, so that a cursor of another one is refused.
    name: str
    #: Of the last code of the page before: its views, and the code.
    after: tuple[int, str] | None = None


def understood(asked: AskedErrors, admit: Admit, now_ms: int, *, days_max: int) -> ErrorsQuestion:
    """The question; raises `Wrong`, and what `admit` raises."""
    name, after = cursors.name_of(asked, limit=1), None
    if asked.cursor:
        within, (views, code) = cursors.opened(asked, name, _PLACE)
        asked, after = msgspec.structs.replace(asked, **within), (views, code)
    given = selected(asked, admit, now_ms, days_max=days_max)
    since_ms = moment_of("since", asked.since, zone_of(asked.tz)) if asked.since else None
    if since_ms is not None and not given["range"].from_ms < since_ms < given["range"].to_ms:
        raise wrong("since", "a moment after `from` and before `to`")
    question = Question(
        shape="rows",
        metrics=(METRICS["viewers"],),
        by=tuple(DIMENSIONS[name] for name in _BY),
        fields=_FIELDS,
        **given,
    )
    return ErrorsQuestion(question, asked.limit, since_ms, name, after)


def asked_of(asked: ErrorsQuestion) -> list[Statement]:
    """The statements: all views; the codes; their texts and values; their samples."""
    condition, parameters = statements.conditions_of(asked.question)
    since_ms = -1 if asked.since_ms is None else asked.since_ms
    values = {"": "error_message"} | {one.name: statements.value_of(asked.question, one) for one in asked.question.by}
    apart = " UNION ALL ".join(
        f"SELECT error_code AS code, '{name}' AS dimension, {value} AS value, count(*) AS views FROM listed GROUP BY ALL"  # noqa: S608
        for name, value in values.items()
    )
    behind, place = "true", []
    if asked.after is not None:
        views, code = asked.after
        behind, place = "count(*) < ? OR count(*) = ? AND error_code > ?", [views, views, code]
    # Names and numbers of ours alone.
    found = f"""
        WITH found AS (
            SELECT *, {COUNTED_MS} AS at_ms, {VIEWER} AS viewer FROM views WHERE {condition} AND error_code IS NOT NULL
        ), codes AS (
            SELECT error_code AS code FROM found GROUP BY error_code HAVING {behind}
            ORDER BY count(*) DESC, code LIMIT {asked.limit + 1:d}
        ), listed AS (SELECT * FROM found WHERE error_code IN (SELECT code FROM codes))
    """  # noqa: S608
    totals = f"""
        SELECT count(*), count(error_code), count(DISTINCT error_code), count(*) FILTER ({COUNTED_MS} < {since_ms:d})
        FROM views WHERE {condition}
    """  # noqa: S608
    codes = f"""{found}
        SELECT error_code, count(*) AS views, count(DISTINCT viewer), count(*) FILTER (playback_failed OR startup_failed),
               min(at_ms), max(at_ms), count(*) FILTER (at_ms < {since_ms:d})
        FROM listed GROUP BY error_code ORDER BY views DESC, error_code
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
        ("views", "with_error", "codes", "before"),
        ("code", "views", "viewers", "failed", "first_ms", "last_ms", "before"),
        ("code", "dimension", "value", "views"),
        ("code", "customer_id", "view_id", "day", "at_ms", "viewer"),
    )
    asked_in_turn = zip((totals, codes, tops, samples), columns, strict=True)
    return [Statement(sql, (*parameters, *(() if sql is totals else place)), names) for sql, names in asked_in_turn]


def answer(asked: ErrorsQuestion, rows: Sequence[Sequence[Row]], about: About) -> ErrorList:
    """The list that the rows of the statements make."""
    (totals,), codes, values, samples = rows
    listed = codes[: asked.limit]
    errors = [_code(asked, row, totals, values, samples) for row in listed]
    following = None
    if len(codes) > asked.limit:
        following = cursors.closed(asked.name, asked.question.range, (listed[-1]["views"], listed[-1]["code"]))
    return ErrorList(about, totals["views"], totals["with_error"], totals["codes"], errors, asked.since_ms, following)


def _code(asked: ErrorsQuestion, row: Row, totals: Row, values: Sequence[Row], samples: Sequence[Row]) -> ErrorCode:
    code, own = row["code"], [one for one in values if one["code"] == row["code"]]
    new: dict[str, Any] = {}
    if asked.since_ms is not None:
        later = totals["views"] - totals["before"]
        new = {
            "is_new": row["before"] == 0,
            "before": _share(row["before"], totals["before"]),
            "after": _share(row["views"] - row["before"], later),
        }
    return ErrorCode(
        code=code,
        views=row["views"],
        share=_share(row["views"], totals["views"]),
        viewers=row["viewers"],
        failed=row["failed"],
        first_ms=row["first_ms"],
        last_ms=row["last_ms"],
        texts=[_occurrence(one) for one in own if not one["dimension"] and one["value"] is not None],
        by={name: [_occurrence(one) for one in own if one["dimension"] == name] for name in _BY},
        samples=[
            Sample(one["customer_id"], one["view_id"], one["day"], one["at_ms"], one["viewer"])
            for one in samples
            if one["code"] == code
        ],
        **new,
    )


def _occurrence(row: Row) -> Occurrence:
    return Occurrence(row["value"], row["views"])


def _share(of: int, n: int) -> Figure:
    return Figure(of / n if n else None, n)
