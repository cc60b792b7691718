"""The statement that Postgres answers from sums of hours: rollups, and sums of hot rows for slices that have changed since.

Each slice (a customer's hour) has one owner: the rollup, or, while it is hot, the sums of its hot rows. A range that is not divided
by time or client is read from blocks of hours (`blocks`).
"""

from typing import Any, Final

from services.query.core.dimensions import CUSTOMER
from services.query.core.parts import OF_SUMS, Part
from services.query.core.question import Question
from services.query.core.sql import blocks
from shared.measures import SOURCE

#: What sums are kept by.
_BY: Final = frozenset({CUSTOMER, SOURCE})


def suffice(question: Question) -> bool:
    """Whether sums of hours answer a question exactly."""
    return (
        question.shape not in {"distribution", "rows"}
        and question.filter is None
        and question.pinned is None
        and {dimension.name for dimension in question.by} <= _BY
        and question.range.is_of_hours
        and (question.buckets is None or question.buckets.is_of_hours)
        and all(part.name in OF_SUMS for part in question.parts)
    )


def columns_of(question: Question) -> tuple[str, ...]:
    """The columns of `statement`."""
    return (*_key(question), *(part.name for part in question.parts))


def statement(question: Question) -> tuple[str, dict[str, Any]]:
    """One row a group, with its parts as `numeric`; the placeholders are psycopg's."""
    key = _key(question)
    of_customers = (
        "{}.customer_id <> ALL(%(but)s)" if question.customers.only is None else "{}.customer_id = ANY(%(customers)s)"
    )
    hot = f"""hot AS (
            SELECT h.hour, h.customer_id FROM serving.hot_slices AS h, serving.coverage AS c
            WHERE c.is_whole AND h.hour >= %(first)s AND h.hour < %(end)s AND {of_customers.format("h")}
        )"""  # noqa: S608 - names of ours
    within = {
        "first": question.range.first_hour,
        "end": question.range.end_hour,
        "customers": question.customers.listed,
        "but": list(question.customers.but),
    }
    if set(key) <= {"customer_id"} and all(part.name in blocks.OF_BLOCKS for part in question.parts):
        sql, listed = blocks.statement(
            question.range.first_hour,
            question.range.end_hour,
            question.parts,
            hot=hot,
            of_customers=of_customers,
            by_customer=bool(key),
        )
        return sql, within | listed
    return _of_hours(key, question.parts, hot, of_customers), within


def _of_hours(key: tuple[str, ...], parts: tuple[Part, ...], hot: str, of_customers: str) -> str:
    """The same from each hour."""
    is_by_source = "source" in key
    sums = ", ".join(f"sum(f.{part.name})::numeric" for part in parts)
    listed = ", ".join((*(f"f.{name}" for name in key), sums))
    return f"""
        WITH {hot}, found AS (
            SELECT extract(epoch FROM r.start)::bigint / 3600 AS hour, r.customer_id,
                   {"r.members[1]" if is_by_source else "NULL"} AS source, {_of("r", parts)}
            FROM serving.rollups AS r
            WHERE r.grain = 'hour' AND r.dimensions = '{SOURCE if is_by_source else ""}' AND {of_customers.format("r")}
              AND r.start >= to_timestamp(%(first)s * 3600) AND r.start < to_timestamp(%(end)s * 3600)
              AND NOT EXISTS (SELECT FROM hot WHERE hot.customer_id = r.customer_id
                                AND hot.hour = extract(epoch FROM r.start)::bigint / 3600)
            UNION ALL
            SELECT s.start, s.customer_id, {"s.source" if is_by_source else "NULL"}, {_of("s", parts)}
            FROM hot JOIN serving.sums AS s ON s.grain = 'hour' AND s.start = hot.hour AND s.customer_id = hot.customer_id
        )
        SELECT {listed} FROM found AS f {f"GROUP BY {', '.join(f'f.{name}' for name in key)}" if key else ""}
    """  # noqa: S608 - names of ours


def _key(question: Question) -> tuple[str, ...]:
    names = {dimension.name for dimension in question.by}
    return (
        *(("hour",) if question.buckets is not None else ()),
        *(("customer_id",) if CUSTOMER in names else ()),
        *(("source",) if SOURCE in names else ()),
    )


def _of(table: str, parts: tuple[Part, ...]) -> str:
    return ", ".join(f"{table}.{part.name}" for part in parts)
