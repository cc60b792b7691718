"""Codes of errors that were seen in the days before a range: when first. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from services.query.core.calendar import DAY_MS, Range
from services.query.core.dimensions import DIMENSIONS
from services.query.core.limits import FIRST_MS
from services.query.core.metrics import METRICS
from services.query.core.question import Question
from services.query.core.sql import statements
from services.query.core.sql.statements import TIME_FIELDS, Statement
from shared.measures import COUNTED_MS

#: A code is looked for in so many days before the range, as far as views are kept.
LOOK_BACK_DAYS: Final = 30
#: Codes of those days that are known, those with the most views: more no question takes along.
CODES_MAX: Final = 100_000
#: A code as the dimension has it: what a filter by it finds is what is listed.
CODE: Final = DIMENSIONS["error_code"].sql
#: The same as a table of a statement, of two parameters.
SEEN: Final = "SELECT unnest(CAST(? AS varchar[])) AS code, unnest(CAST(? AS bigint[])) AS seen_ms"

Row = Mapping[str, Any]


def seen_before(question: Question) -> Question:
    """What those days are read by, for the same views: their codes and times alone."""
    from_ms = question.range.from_ms
    return replace(
        question,
        metrics=(METRICS["views"],),
        range=Range(max(FIRST_MS, from_ms - LOOK_BACK_DAYS * DAY_MS), from_ms),
        by=(),
        fields=("error_code", *TIME_FIELDS),
    )


def asked_of(question: Question) -> Statement:
    """When each code was seen first, of a question that `seen_before` makes."""
    condition, parameters = statements.conditions_of(question)
    sql = f"""
        SELECT {CODE} AS code, min({COUNTED_MS}) FROM views WHERE {condition} AND error_code IS NOT NULL
        GROUP BY code ORDER BY count(*) DESC, code LIMIT {CODES_MAX}
    """  # noqa: S608 - names and numbers of ours alone
    return Statement(sql, tuple(parameters), ("code", "first_ms"))


def parameters_of(seen: Sequence[Row]) -> list[Any]:
    """The parameters of `SEEN`, of the rows of `asked_of`."""
    return [[row["code"] for row in seen], [row["first_ms"] for row in seen]]
