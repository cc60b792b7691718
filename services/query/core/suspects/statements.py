"""The statements of a question for suspects, over relation `views` of one of its ranges. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from services.query.core import filters
from services.query.core.filters import Filter
from services.query.core.question import Question
from services.query.core.sql.statements import Statement, conditions_of, value_of
from services.query.core.suspects.measured import Measured

#: What samples views: as good as random below a second, and the same in every answer.
_SAMPLED_BY: Final = "first_append_ms"
TOTALS: Final = ("views", "bad", "events", "exposure")


def _found(question: Question, measured: Measured) -> tuple[str, list[Any]]:
    """Views of the question that count for the metric, with their events and exposure."""
    condition, parameters = conditions_of(question)
    sql = (
        f"SELECT *, {measured.events} AS events, {measured.exposure} AS exposure"  # noqa: S608 - names of ours
        f" FROM views WHERE {condition}"
    )
    return sql, [*measured.parameters, *parameters]


def totals(question: Question, measured: Measured) -> Statement:
    """How many views there are, with and without events, and the sums of all."""
    found, parameters = _found(question, measured)
    sql = f"""
        SELECT count(*) FILTER (events > 0 OR exposure > 0) AS views, count(*) FILTER (events > 0) AS bad,
               coalesce(sum(events), 0)::double AS events, coalesce(sum(exposure), 0)::double AS exposure
        FROM ({found}) AS found
    """  # noqa: S608
    return Statement(sql, tuple(parameters), TOTALS)


def rows(question: Question, measured: Measured, *, bad_of: int, good_of: int) -> Statement:
    """A row a view: the values of all dimensions, events and exposure; of views with events one of `bad_of`, of others one of
    `good_of`.
    """
    names = [f"d{number}" for number in range(len(question.by))]
    # Values are made of the sampled views alone.
    values = ", ".join(f"{value_of(question, one)} AS {name}" for one, name in zip(question.by, names, strict=True))
    found, parameters = _found(question, measured)
    sampled = ["events > 0 OR exposure > 0"]
    if bad_of > 1 or good_of > 1:
        sampled.append(f"{_SAMPLED_BY} % CASE WHEN events > 0 THEN {bad_of:d} ELSE {good_of:d} END = 0")
    sql = (
        f"SELECT {values}, events::double AS events, exposure::double AS exposure"  # noqa: S608
        f" FROM ({found}) AS found WHERE {' AND '.join(f'({one})' for one in sampled)}"
    )
    return Statement(sql, tuple(parameters), (*names, "events", "exposure"))


def figures(question: Question, measured: Measured, cohorts: Sequence[Filter]) -> Statement:
    """Events, exposure and views of each cohort, then of all: `events_0`, `exposure_0`, `views_0` … `views`."""
    flags, values = "", []
    for number, one in enumerate(cohorts):
        condition, of_condition = filters.sql_of(one, lambda dimension: value_of(question, dimension))
        flags += f", coalesce({condition}, false) AS is_in_{number}"
        values += of_condition
    condition, parameters = conditions_of(question)
    listed, columns = [], []
    for suffix, is_in in (*((f"_{number}", f"is_in_{number}") for number in range(len(cohorts))), ("", "true")):
        listed += [
            f"sum(events) FILTER ({is_in})::double AS events{suffix}",
            f"sum(exposure) FILTER ({is_in})::double AS exposure{suffix}",
            f"count(*) FILTER ({is_in} AND is_base) AS views{suffix}",
        ]
        columns += [f"{name}{suffix}" for name in ("events", "exposure", "views")]
    sql = f"""
        SELECT {", ".join(listed)} FROM (
            SELECT {measured.events} AS events, {measured.exposure} AS exposure, {measured.base} AS is_base{flags}
            FROM views WHERE {condition}
        ) AS found
    """  # noqa: S608 - names of ours
    return Statement(sql, (*measured.parameters, *values, *parameters), tuple(columns))
