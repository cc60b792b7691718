"""The statements of a question for suspects, over relation `views` of one of its ranges. Pure."""

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from services.query.core import filters
from services.query.core.dimensions import Dimension
from services.query.core.filters import Codes, Filter
from services.query.core.question import Question
from services.query.core.sql.coded import MASK, PLACE
from services.query.core.sql.lots import IS_OF_FEW, one_in
from services.query.core.sql.statements import Statement, conditions_of, value_of
from services.query.core.suspects.measured import Measured, Threshold
from services.query.core.suspects.values import Side, Value
from shared.statistics.suspects.sampling import FEW_OF, Sampling

TOTALS: Final = ("rows", "views", "bad")
FIGURES: Final = (MASK, "events", "exposure", "views", "counted")
_SUMS: Final = (
    "sum(events)::double AS events, sum(exposure)::double AS exposure,"
    " count(*) FILTER (is_base) AS views, count(*) FILTER (events > 0 OR exposure > 0) AS counted"
)


def _found(question: Question, measured: Measured, codes: Codes | None) -> tuple[str, list[Any]]:
    """Views of the question that count for the metric, with their events and exposure."""
    condition, parameters = conditions_of(question, codes)
    sql = (
        f"SELECT *, {measured.events} AS events, {measured.exposure} AS exposure"  # noqa: S608 - names of ours
        f" FROM views WHERE {condition}"
    )
    return sql, [*measured.parameters, *parameters]


def totals(question: Question, measured: Measured, each: int, codes: Codes | None = None) -> Statement:
    """How many rows there are, how many of them have events or exposure, and how many have events, by one in `each`."""
    found, parameters = _found(question, measured, codes)
    sql = f"""
        SELECT {each} * count(*) AS rows, {each} * count(*) FILTER (events > 0 OR exposure > 0) AS views,
               {each} * count(*) FILTER (events > 0) AS bad
        FROM ({found}) AS found WHERE {one_in(each)}
    """  # noqa: S608
    return Statement(sql, tuple(parameters), TOTALS)


def rows(question: Question, measures: Sequence[Measured], most: int) -> Statement:
    """A row a view, `most` of them: the values of all dimensions, then what `columns_of` names."""
    condition, parameters = conditions_of(question)
    values = {_column(number): value_of(question, one) for number, one in enumerate(question.by)}
    measured = {name: expression for expression, name in columns_of(measures).items()}
    listed = ", ".join(f"{expression} AS {name}" for name, expression in (values | measured).items())
    given = dict.fromkeys((one.events, one.parameters) for one in measures)
    return Statement(
        f"SELECT {listed} FROM views WHERE {condition} LIMIT {most:d}",  # noqa: S608 - names of ours
        (*(value for _, of_events in given for value in of_events), *parameters),
        (*values, *measured),
    )


def columns_of(measures: Sequence[Measured]) -> dict[str, str]:
    """The column of each expression that the events, exposure or base of these metrics are; several have some in common."""
    expressions = dict.fromkeys(part for one in measures for part in (one.events, one.exposure, one.base))
    return {expression: f"m{number}" for number, expression in enumerate(expressions)}


def known(question: Question, value: Value, codes: Codes | None = None) -> Statement:
    """How many views have a value."""
    condition, parameters = conditions_of(question, codes)
    return Statement(
        f"SELECT count({value.sql}) AS known FROM views WHERE {condition}",  # noqa: S608 - names of ours
        tuple(parameters),
        ("known",),
    )


def ranked(question: Question, value: Value, side: Side, one_of: int, codes: Codes | None = None) -> Statement:
    """The value at the rank of `value`, the next better one, and the shares of views beyond each; of one of so many views."""
    condition, parameters = conditions_of(question, codes)
    is_worse, is_better, nearest = ("<", ">", "min") if side == "below" else (">", "<", "max")
    sql = f"""
        WITH found AS MATERIALIZED (
            SELECT {value.sql} AS value FROM views WHERE {condition} AND {one_in(one_of)}
        ), at_rank AS (SELECT quantile_disc(value, {value.rank}) AS ranked FROM found)
        SELECT any_value(ranked)::double AS ranked, {nearest}(value) FILTER (value {is_better} ranked)::double AS better,
            avg((value {is_worse} ranked)::integer)::double AS beyond,
            avg((value {is_worse} ranked OR value = ranked)::integer)::double AS beyond_better
        FROM found, at_rank
    """  # noqa: S608
    return Statement(sql, tuple(parameters), ("ranked", "better", "beyond", "beyond_better"))


def share_beyond(question: Question, value: Value, threshold: Threshold, codes: Codes | None = None) -> Statement:
    """The share of views with a value that are beyond a threshold."""
    condition, parameters = conditions_of(question, codes)
    is_worse = "<" if threshold.side == "below" else ">"
    sql = f"SELECT avg((({value.sql}) {is_worse} ?)::integer)::double AS beyond FROM views WHERE {condition}"  # noqa: S608
    return Statement(sql, (threshold.value, *parameters), ("beyond",))


def sampled(question: Question, measured: Measured, how: Sampling, codes: Codes | None = None) -> Statement:
    """Some views that have events or exposure: those with events and the others as `how` says.

    A row a view: the values of all dimensions, events and exposure.
    """
    found, parameters = _found(question, measured, codes)
    found = f"SELECT * FROM ({found}) AS all_views WHERE {_is_sampled(how)}"  # noqa: S608
    names = [_column(number) for number in range(len(question.by))]
    by_name = dict(zip(names, question.by, strict=True))
    texts_of = {} if codes is None else {name: one.column for name, one in by_name.items() if one.column}
    # Values are made of the chosen views alone.
    values = ", ".join(
        f"{f'code_{texts_of[name]}' if name in texts_of else value_of(question, one)} AS {name}"
        for name, one in by_name.items()
    )
    sql = f"SELECT {values}, events, exposure FROM ({found}) AS found"  # noqa: S608
    return Statement(sql, tuple(parameters), (*names, "events", "exposure"), texts_of)


def places(question: Question, measured: Measured, how: Sampling, codes: Codes | None = None) -> Statement:
    """The places of the views of `sampled` in columns in memory."""
    return _places(question, measured, _is_sampled(how), codes)


def places_beside_few(question: Question, measured: Measured, how: Sampling, codes: Codes | None = None) -> Statement:
    """The same of those that are not among the few, where these have all of the sample that are without events."""
    assert how.good_of % FEW_OF == 0
    return _places(question, measured, f"events > 0 AND {one_in(how.bad_of)} AND ({IS_OF_FEW}) IS NOT TRUE", codes)


def _places(question: Question, measured: Measured, condition: str, codes: Codes | None) -> Statement:
    found, parameters = _found(question, measured, codes)
    sql = f"SELECT {PLACE} FROM ({found}) AS found WHERE {condition}"  # noqa: S608 - names of ours
    return Statement(sql, tuple(parameters), (PLACE,))


def _is_sampled(how: Sampling) -> str:
    return f"CASE WHEN events > 0 THEN {one_in(how.bad_of)} ELSE exposure > 0 AND {one_in(how.good_of)} END"


def figures(question: Question, measured: Measured, marked: Sequence[Filter]) -> Statement:
    """Events, exposure and views by the cohorts that views are in: `figures_by_cohort` adds them up."""
    found, given = _measured(question, measured, None)
    return _figures(found, given, marked, lambda one: value_of(question, one))


def figures_of_marked(question: Question, measured: Measured, codes: Codes | None = None) -> Statement:
    """The same of the views that are in some cohort: column `mask` has the cohorts of each."""
    found, given = _measured(question, measured, codes)
    return Statement(_added_up(f"SELECT * FROM ({found}) AS of_all WHERE {MASK} <> 0"), given, FIGURES)  # noqa: S608


def figures_of_all(question: Question, measured: Measured, codes: Codes | None = None) -> Statement:
    """The same of all views, as if they were in no cohort: one row."""
    found, given = _measured(question, measured, codes)
    return Statement(f"SELECT 0 AS {MASK}, {_SUMS} FROM ({found}) AS found", given, FIGURES)  # noqa: S608 - names of ours


def _measured(question: Question, measured: Measured, codes: Codes | None) -> tuple[str, tuple[Any, ...]]:
    """All views of the question, with events, exposure and base."""
    condition, parameters = conditions_of(question, codes)
    found = (
        f"SELECT *, {measured.events} AS events, {measured.exposure} AS exposure, {measured.base} AS is_base"  # noqa: S608
        f" FROM views WHERE {condition}"
    )
    return found, (*measured.parameters, *parameters)


def beside_others(marked: Sequence[Mapping[str, Any]], of_all: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of `figures`: those of marked views, and what they leave of all views."""
    others = {name: (of_all[name] or 0) - sum(row[name] or 0 for row in marked) for name in FIGURES[1:]}
    return [{MASK: 0, **others}, *map(dict, marked)]


def figures_of_rows(question: Question, marked: Sequence[Filter]) -> Statement:
    """As `figures`, over relation `found`: the values of all dimensions, events, exposure and base of each view."""
    columns = {one.name: _column(number) for number, one in enumerate(question.by)}
    # A filter names stored texts by their column.
    stored = "".join(f", {columns[one.name]} AS {one.column}" for one in question.by if one.column)
    return _figures(f"SELECT *{stored} FROM found", (), marked, lambda one: columns[one.name])  # noqa: S608


def _column(number: int) -> str:
    return f"d{number}"


def _figures(
    found: str, parameters: Sequence[Any], cohorts: Sequence[Filter], expression: Callable[[Dimension], str]
) -> Statement:
    """The same over any query; `expression` names a dimension's value in it."""
    bits, values = ["0"], []
    for number, one in enumerate(cohorts):
        condition, of_condition = filters.sql_of(one, expression)
        bits.append(f"CASE WHEN {condition} THEN {1 << number:d} ELSE 0 END")
        values += of_condition
    marked = f"SELECT events, exposure, is_base, {' + '.join(bits)} AS {MASK} FROM ({found}) AS views_found"  # noqa: S608
    return Statement(_added_up(marked), (*values, *parameters), FIGURES)


def _added_up(marked: str) -> str:
    """A row for each set of cohorts that views are in together, with its events, exposure and views."""
    return f"SELECT {MASK}, {_SUMS} FROM ({marked}) AS marked GROUP BY {MASK} ORDER BY {MASK}"  # noqa: S608 - names of ours


def reordered(rows: Sequence[Mapping[str, Any]], order: Sequence[int]) -> list[dict[str, Any]]:
    """The rows of `figures` with the cohorts in another order: the bit at each place is that of the cohort at `order[place]`."""
    return [{**row, MASK: sum((row[MASK] >> old & 1) << new for new, old in enumerate(order))} for row in rows]


def figures_by_cohort(rows: Sequence[Mapping[str, Any]], left_out: Sequence[int]) -> dict[str, float]:
    """What the rows of `figures` add up to, of each cohort and of all views: `events_0`, `exposure_0` …, `events`, …

    `left_out` has of each cohort the bits of those whose views it leaves out.
    """
    found: dict[str, float] = {}
    for number, others in enumerate(left_out):
        own = [row for row in rows if row[MASK] >> number & 1 and not row[MASK] & others]
        found |= {f"{name}_{number}": sum(row[name] or 0 for row in own) for name in FIGURES[1:]}
    return found | {name: sum(row[name] or 0 for row in rows) for name in FIGURES[1:]}


def together(rows: Sequence[Mapping[str, Any]], left_out: Sequence[int]) -> list[int]:
    """Of each cohort the bits of those with which it has views of `figures` in common, as they are there with `left_out`."""
    found = []
    for number, others in enumerate(left_out):
        own = [row[MASK] for row in rows if row[MASK] >> number & 1 and not row[MASK] & others]
        found.append(functools.reduce(operator.or_, own, 0) & ~(1 << number))
    return found
