"""Relation `views` where texts are numbers: a table in memory that answers the questions which pages ask. Pure."""

from collections.abc import Sequence
from typing import Final

from services.query.core.fields import kind_of
from services.query.core.filters import Codes, Filter
from services.query.core.question import Question
from services.query.core.sql.statements import Statement, fields_of, keys_of

#: The table; `values_…` are those of the values of its texts.
TABLE: Final = "kept"
#: Its column that tells cohorts apart.
MASK: Final = "mask"
#: Its column that numbers its rows.
PLACE: Final = "place"
#: Texts that metrics read as they are.
_RAW: Final = frozenset({"startup_unknown"})
_SHAPES: Final = frozenset({"overall", "timeseries", "breakdown", "distribution", "suspects"})
_TYPES: Final = {int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}


def can_answer(question: Question) -> bool:
    """Whether texts as numbers suffice: no text is searched in, none is a viewer's name, no dimension is a customer's own."""
    if question.shape not in _SHAPES or keys_of(question) or _searches(question.filter):
        return False
    # The day is in the names of folders alone.
    if "day" in fields_of(question):
        return False
    coded = {dimension.column for dimension in question.dimensions if dimension.column}
    return all(
        kind_of(field) in _TYPES or (kind_of(field) is str and (field in coded or field in _RAW))
        for field in fields_of(question)
    )


def raw_texts(question: Question) -> tuple[str, ...]:
    """The texts that its metrics read as they are: table `kept` has them beside their numbers, as `text_…`."""
    return tuple(dict.fromkeys(field for part in question.parts for field in part.fields if field in _RAW))


def columns_of(question: Question) -> list[str]:
    """The columns of table `kept` that the relation reads."""
    found = ["hour", "customer_id", *fields_of(question), *(f"text_{field}" for field in raw_texts(question))]
    return list(dict.fromkeys(found))


def relation(question: Question, codes: Codes, beside: Sequence[str] = ()) -> Statement:
    """Relation `views` over table `kept`. A text is `code_…`, its number; those that metrics read are texts as well.

    Table and relation have the columns `beside` too: `MASK`, of each view a bit a cohort; or `PLACE`.
    """
    listed = ["t.hour::BIGINT AS hour", "t.customer_id AS code_customer_id"]
    for field in fields_of(question):
        kind = kind_of(field)
        if kind is not None and kind in _TYPES:
            listed.append(f"t.{field}::{_TYPES[kind]} AS {field}")
        else:
            listed.append(f"t.{field} AS code_{field}")
    listed += [f"t.text_{field}::VARCHAR AS {field}" for field in raw_texts(question)]
    listed += [f"t.{name}" for name in beside]
    conditions = ["t.hour >= ? AND t.hour < ?"]
    only, but = question.customers.only, question.customers.but
    if only is not None:
        conditions.append(_among(codes, only))
    elif but:
        conditions.append(f"NOT {_among(codes, but)}")
    sql = f"SELECT {', '.join(listed)} FROM {TABLE} AS t WHERE {' AND '.join(conditions)}"  # noqa: S608 - names of ours
    return Statement(sql, (question.range.first_hour, question.range.end_hour), ())


def _among(codes: Codes, customers: tuple[str, ...]) -> str:
    known = [str(place) for name in customers if (place := codes.place("customer_id", name)) is not None]
    return f"t.customer_id IN ({', '.join(known)})" if known else "false"


def _searches(one: Filter | None) -> bool:
    if one is None:
        return False
    parts = (*(one.all_of or ()), *(one.any_of or ()), *((one.none_of,) if one.none_of is not None else ()))
    return one.contains is not None or any(map(_searches, parts))
