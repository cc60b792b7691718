"""Earlier figures that Postgres adds up: of any number of customers, and of one value of one, they are a row or two a minute."""

from typing import Any, Final

import psycopg
from psycopg import AsyncCursor, sql
from psycopg.rows import tuple_row

from services.accounts.core.customer_scope import CustomerScope
from services.dashboard.live.landed.adding_values import added_by_value, has_more_values
from services.dashboard.live.landed.past import AskedPast, Row, Wrong, minutes_of, orders_of, turned
from shared.schemas.live import BUCKET_MS
from shared.schemas.live_minute import GATHERED, STEPS, VIEWERS_MAX, WHOLE

#: Numbers that Postgres adds up for one answer: it takes about two seconds. To read a minute of a customer costs as much as five.
NUMBERS_MAX: Final = 1_500_000
_A_MINUTE: Final = 5
#: From one customer to the next by the index: it does not read their minutes.
_KNOWN: Final = sql.SQL("""
    WITH RECURSIVE known(id) AS (
        SELECT min(customer_id) FROM serving.{table}
        UNION ALL
        SELECT (SELECT min(customer_id) FROM serving.{table} WHERE customer_id > known.id) FROM known WHERE known.id IS NOT NULL
    )
    SELECT id FROM known WHERE id IS NOT NULL AND id <> ALL(%(hidden)s) AND (id <> %(gathered)s OR %(is_everything)s) AND
""")
_OWN: Final = sql.SQL("SELECT id FROM unnest(%(own)s::text[]) AS own(id) WHERE")
_WITH_FIGURES: Final = sql.SQL("""
    EXISTS (
        SELECT FROM serving.{table}
        WHERE customer_id = id AND dimension = ANY(%(dimensions)s) AND minute >= %(first)s AND minute < %(end)s
    )
    LIMIT %(customers_max)s
""")
#: Of a minute as many steps are known as of the customer of whom most are. `OFFSET 0`: each figure is taken out of a document once.
_ADDED: Final = sql.SQL("""
    SELECT %(dimension)s, minute,
        jsonb_build_object({known}, 'values', jsonb_build_object(%(value)s::text, jsonb_build_object({sums})))::text
    FROM (
        SELECT minute, {columns} FROM serving.{table}
        WHERE customer_id = ANY(%(customers)s) AND dimension = ANY(%(orders)s) AND minute >= %(first)s AND minute < %(end)s
        OFFSET 0
    ) AS minutes
    GROUP BY minute
""")

#: Rows may name a pair in either order: those of the question's have the value as it is, others have it turned.
_FIGURE: Final = sql.SQL(
    "document->'values'->(CASE dimension WHEN %(dimension)s THEN %(value)s ELSE %(turned)s END)->{field}::text AS {column}"
)


async def read_all(connection: psycopg.AsyncConnection, asked: AskedPast, scope: CustomerScope) -> list[Row]:
    """The sums of all customers of a scope: a row a minute, and another of a dimension. Raises `Wrong` where they are too many."""
    first, end = minutes_of(asked)
    table = sql.Identifier("live_steps" if asked.step_ms == BUCKET_MS else "live_minutes")
    customers_max = max(1, NUMBERS_MAX // ((end - first) * (_A_MINUTE + _numbers_of_value(asked))))
    found = _OWN if scope.all_but is None else _KNOWN
    values: dict[str, Any] = {
        "own": sorted(scope.own),
        "hidden": sorted(scope.all_but or ()),
        # They are of several customers together, which no scope names.
        "gathered": GATHERED,
        "is_everything": scope.is_everything,
        "whole": WHOLE,
        "dimensions": list({WHOLE, *orders_of(asked.dimension)}),
        "first": first,
        "end": end,
        "customers_max": customers_max + 1,
    }
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(found.format(table=table) + _WITH_FIGURES.format(table=table), values)
        customers = values["customers"] = [row[0] for row in await cursor.fetchall()]
        if len(customers) > customers_max:
            raise Wrong(
                f"more than {customers_max} customers have figures in these {end - first} minutes:"
                " ask for a shorter time, or for one customer"
            )
        rows = await _of_whole(cursor, table, asked, values)
        if asked.value:
            rows += await _of_value(cursor, table, asked, values)
        elif asked.dimension != WHOLE:
            numbers_left = NUMBERS_MAX - len(customers) * (end - first) * _A_MINUTE
            values_max = numbers_left // _numbers_of_value(asked)
            if await has_more_values(cursor, table, asked.dimension, values, values_max):
                raise Wrong(
                    f"the {len(customers)} customers with figures in these {end - first} minutes have too many values:"
                    " ask for a shorter time, for one value, or for one customer"
                )
            rows += await added_by_value(cursor, table, asked, values)
        return [Row(*row) for row in rows]


async def read_value(connection: psycopg.AsyncConnection, asked: AskedPast) -> list[Row]:
    """The figures of one value of one customer: a row a minute, and another that says of how many steps anything is known."""
    first, end = minutes_of(asked)
    table = sql.Identifier("live_steps" if asked.step_ms == BUCKET_MS else "live_minutes")
    values = {"customers": [asked.customer], "first": first, "end": end}
    async with connection.cursor(row_factory=tuple_row) as cursor:
        rows = [*await _of_whole(cursor, table, asked, values), *await _of_value(cursor, table, asked, values)]
        return [Row(*row) for row in rows]


def _numbers_of_value(asked: AskedPast) -> int:
    figures = 1 + len(set(asked.names))
    return figures * (STEPS if asked.step_ms == BUCKET_MS else 1)


async def _of_whole(
    cursor: AsyncCursor[Any], table: sql.Identifier, asked: AskedPast, values: dict[str, Any]
) -> list[tuple[Any, ...]]:
    """The figures of all viewers; by a dimension only of how many steps anything is known."""
    fields = set(asked.names) if asked.dimension == WHOLE else set()
    given = {"dimension": WHOLE, "orders": [WHOLE], "value": "", "turned": ""}
    await cursor.execute(_added(asked, table, fields), values | given)
    return await cursor.fetchall()


async def _of_value(
    cursor: AsyncCursor[Any], table: sql.Identifier, asked: AskedPast, values: dict[str, Any]
) -> list[tuple[Any, ...]]:
    """The figures of one value: it is taken out of each minute, and nothing else of it is read."""
    given = {
        "dimension": asked.dimension,
        "orders": orders_of(asked.dimension),
        "value": asked.value,
        "turned": turned(asked.value),
    }
    await cursor.execute(_added(asked, table, set(asked.names)), values | given)
    return await cursor.fetchall()


def _added(asked: AskedPast, table: sql.Identifier, fields: set[str]) -> sql.Composed:
    """The statement that adds up fields of one value."""
    if asked.step_ms != BUCKET_MS:
        known, added = sql.SQL("'steps', {}").format(sql.SQL("max(steps::bigint)")), _whole
    else:
        known, added = sql.SQL("'heard', {}").format(_by_step(sql.Identifier("heard"))), _by_step
        # The most viewers of a step are those of the step.
        fields = {"viewers_now" if field == VIEWERS_MAX else field for field in fields}
    columns = [sql.SQL("document->'heard' AS heard, document->'steps' AS steps").format()]
    sums = []
    for field in sorted(fields):
        column = sql.Identifier(f"of_{field}")
        columns.append(_FIGURE.format(field=field, column=column))
        sums.append(sql.SQL("{}::text, {}").format(field, added(column)))
    comma = sql.SQL(", ")
    return _ADDED.format(known=known, sums=comma.join(sums), columns=comma.join(columns), table=table)


def _whole(column: sql.Identifier) -> sql.Composed:
    """A number's sum."""
    return sql.SQL("coalesce(sum({}::bigint), 0)").format(column)


def _by_step(column: sql.Identifier) -> sql.Composed:
    """The sums of a number for each step of a minute."""
    one = sql.SQL("coalesce(sum(({column}->{at})::bigint), 0)")
    sums = [one.format(column=column, at=sql.Literal(at)) for at in range(STEPS)]
    return sql.SQL("jsonb_build_array({})").format(sql.SQL(", ").join(sums))
