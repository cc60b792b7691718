"""What all statements over views have in common: fields, conditions, buckets. Pure.

Views come from relation `views`: files of the warehouse and hot rows together (`relation`). Over it stand the conditions of the
question, its groups and its aggregates (`figures`). Names come from the registries; every value of a client is a placeholder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from services.query.core import filters
from services.query.core.calendar import HOUR_MS, WIDTHS_MS, Buckets
from services.query.core.dimensions import Dimension, normal
from services.query.core.filters import Codes
from services.query.core.parts import Part
from services.query.core.question import Question
from services.query.core.sql.lots import SAMPLED_BY
from shared.measures import COUNTED_MS

#: What `COUNTED_MS` reads.
TIME_FIELDS: Final = ("view_end_ms", "last_append_ms", "first_append_ms")
#: The rank of what is added up.
OTHER_RANK: Final = -1
#: Of groups on pages before.
SKIPPED_RANK: Final = -2
UNKNOWN_RANK: Final = 0


@dataclass(frozen=True)
class Statement:
    """SQL and the values of its placeholders, in their order."""

    sql: str
    parameters: tuple[Any, ...]
    #: The columns of its rows.
    columns: tuple[str, ...]
    #: Of those the ones with numbers instead of texts, and the field whose texts the numbers stand for.
    texts_of: Mapping[str, str] = field(default_factory=dict)


def fields_of(question: Question) -> tuple[str, ...]:
    """The fields of a view that the question reads, without those that every view is found by."""
    wanted = [name for part in question.parts for name in part.fields]
    wanted += [name for dimension in question.dimensions for name in dimension.fields if dimension.key is None]
    wanted += [question.field] if question.field else []
    wanted += [*question.fields, *(filters.numbers_of(question.filter) if question.filter else ())]
    if not is_of_hours(question):
        wanted += TIME_FIELDS
    elif question.shape == "suspects":
        wanted.append(SAMPLED_BY)
    return tuple(dict.fromkeys(name for name in wanted if name != "customer_id"))


def keys_of(question: Question) -> tuple[str, ...]:
    """The names of custom dimensions that the question reads: `custom_0`, `custom_1` … are their values."""
    return tuple(dimension.key for dimension in question.dimensions if dimension.key is not None)


def columns_of(question: Question) -> tuple[str, ...]:
    """The columns of relation `views`."""
    return (
        "hour",
        "customer_id",
        *fields_of(question),
        *(f"custom_{number}" for number in range(len(keys_of(question)))),
    )


def is_of_hours(question: Question) -> bool:
    """Whether hours suffice to tell which views it is about, and in which bucket each is."""
    return question.range.is_of_hours and (question.buckets is None or question.buckets.is_of_hours)


def counted_at(question: Question) -> str:
    """When a view counts, as exactly as the question wants it."""
    return f"(hour * {HOUR_MS})" if is_of_hours(question) else f"({COUNTED_MS})"


def value_of(question: Question, dimension: Dimension) -> str:
    """A dimension of a row of relation `views`."""
    if dimension.key is None:
        return dimension.sql
    return normal(f"custom_{keys_of(question).index(dimension.key)}")


def conditions_of(question: Question, codes: Codes | None = None) -> tuple[str, list[Any]]:
    """What holds of the views of relation `views` that a question is about, and its parameters."""
    conditions, parameters = ["true"], []
    if not question.range.is_of_hours:
        conditions.append(f"{counted_at(question)} >= ? AND {counted_at(question)} < ?")
        parameters += [question.range.from_ms, question.range.to_ms]
    if question.filter is not None:
        condition, values = filters.sql_of(question.filter, lambda dimension: value_of(question, dimension), codes)
        conditions.append(condition)
        parameters += values
    return " AND ".join(conditions), parameters


def bucket_key(buckets: Buckets, at: str) -> str:
    """What names the bucket of a view, of the numbers `buckets.keys`. All numbers in it are ours."""
    *later, first = reversed(buckets.offsets)
    whens = " ".join(f"WHEN {at} >= {one.from_ms:d} THEN {one.offset_ms:d}" for one in later)
    local = f"({at} + {f'CASE {whens} ELSE {first.offset_ms:d} END' if whens else f'{first.offset_ms:d}'})"
    if buckets.bucket in WIDTHS_MS:
        return f"{local} // {WIDTHS_MS[buckets.bucket]:d}"
    day = f"({local} // 86400000)"
    if buckets.bucket == "day":
        return day
    if buckets.bucket == "week":
        return f"({day} + 3) // 7"
    date = f"(DATE '1970-01-01' + CAST({day} AS integer))"
    return f"(year({date}) * 12 + month({date}) - 1)"


def aggregates(parts: Sequence[Part]) -> str:
    """The aggregates of parts, each under its name."""
    return ", ".join(f"{part.sql} AS {part.name}" for part in parts)
