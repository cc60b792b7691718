"""The values of a dimension of several customers together: Postgres adds them up, names the largest and makes one of all others."""

from collections.abc import Iterable
from typing import Any, Final, LiteralString

from psycopg import AsyncCursor, sql

from services.dashboard.live.landed.past import APART, AskedPast, fields_of, orders_of, others_of, weight_of
from shared.schemas.live import BUCKET_MS, PAIR_SEPARATOR, SLICE_VALUES_MAX
from shared.schemas.live_minute import GATHERED, GATHERED_DIMENSIONS, STEPS, VIEWERS_MAX

#: Minutes differ in how many values they have, so all are counted; the limit ends it where there are too many.
_COUNTED: Final = sql.SQL("""
    SELECT count(*) FROM (
        SELECT FROM serving.{table}, LATERAL jsonb_object_keys(document->'values')
        WHERE customer_id = ANY(%(customers)s) AND dimension = ANY(%(orders)s) AND minute >= %(first)s AND minute < %(end)s
        LIMIT %(most)s + 1
    ) AS one
""")
#: Customers without room have no figures by most dimensions: those of their whole are among all others.
_ADDED: Final = sql.SQL("""
    WITH found AS MATERIALIZED (
        SELECT minute, value, {sums} FROM (
            SELECT minute, {value} AS value, {figures}
            FROM serving.{table}, LATERAL jsonb_each(document->'values') AS one(key, figures)
            WHERE customer_id = ANY(%(customers)s) AND minute >= %(first)s AND minute < %(end)s
                AND (dimension = ANY(%(orders)s) OR customer_id = %(gathered)s AND dimension = %(whole)s)
            OFFSET 0
        ) AS each_value
        GROUP BY minute, value
    ), largest AS (
        SELECT value FROM found WHERE value <> ALL(%(apart)s)
        GROUP BY value ORDER BY sum({weight}) DESC, value COLLATE "C" LIMIT %(values_max)s
    ), named AS (
        SELECT minute, {again},
            CASE WHEN value = ANY(%(apart)s) OR value IN (SELECT value FROM largest) THEN value ELSE %(others)s END AS name
        FROM found GROUP BY minute, name
    )
    SELECT %(dimension)s, minute, jsonb_build_object('values', jsonb_object_agg(name, jsonb_build_object({documents})))::text
    FROM named GROUP BY minute
""")
#: Rows may name a pair in either order: the answer has that of the question.
_VALUE: Final = sql.SQL("""
    CASE dimension WHEN %(dimension)s THEN key WHEN %(whole)s THEN %(others)s ELSE regexp_replace(key, %(pair)s, %(turned)s) END
""")


async def has_more_values(
    cursor: AsyncCursor[Any], table: sql.Identifier, dimension: str, values: dict[str, Any], most: int
) -> bool:
    """Whether the minutes of all customers have more than `most` values; one counts in each minute that has it."""
    await cursor.execute(_COUNTED.format(table=table), values | {"orders": orders_of(dimension), "most": most})
    (count,) = await cursor.fetchone() or (0,)
    return bool(count > most)


async def added_by_value(
    cursor: AsyncCursor[Any], table: sql.Identifier, asked: AskedPast, values: dict[str, Any]
) -> list[tuple[Any, ...]]:
    """A row a minute: the sums of the `SLICE_VALUES_MAX` largest values, of all others, and of what has no value."""
    given = {
        "dimension": asked.dimension,
        "orders": orders_of(asked.dimension),
        "apart": sorted(APART),
        "others": others_of(asked.dimension),
        "pair": f"^([^{PAIR_SEPARATOR}]*){PAIR_SEPARATOR}(.+)$",
        "turned": rf"\2{PAIR_SEPARATOR}\1",
        "values_max": SLICE_VALUES_MAX,
        "gathered": None if asked.dimension in GATHERED_DIMENSIONS else GATHERED,
    }
    await cursor.execute(_statement(asked, table), values | given)
    return await cursor.fetchall()


def _statement(asked: AskedPast, table: sql.Identifier) -> sql.Composed:
    is_by_step = asked.step_ms == BUCKET_MS
    weight = weight_of(asked.dimension)
    # Those of the whole that no value has are no value's, nor of all others.
    asked_fields = fields_of(asked.dimension).intersection(asked.names)
    fields = sorted({weight, *asked_fields} - ({VIEWERS_MAX} if is_by_step else set()))
    steps: list[Any] = [sql.SQL("->{}").format(sql.Literal(at)) for at in range(STEPS)] if is_by_step else [sql.SQL("")]
    columns = {field: [sql.Identifier(f"{field}_{at}") for at in range(len(steps))] for field in fields}
    every = [column for one in columns.values() for column in one]
    figures = [
        sql.SQL("(figures->{}::text{})::bigint AS {}").format(field, step, column)
        for field, of_field in columns.items()
        for step, column in zip(steps, of_field, strict=True)
    ]
    array = sql.SQL("jsonb_build_array({})" if is_by_step else "{}")
    documents = [sql.SQL("{}::text, ").format(field) + array.format(_joined(one)) for field, one in columns.items()]
    summed = [sql.SQL("coalesce(sum({column}), 0)::bigint AS {column}").format(column=column) for column in every]
    return _ADDED.format(
        table=table,
        value=_VALUE,
        figures=_joined(figures),
        sums=_joined(summed),
        again=_joined(summed),
        weight=_joined(columns[weight], " + "),
        documents=_joined(documents),
    )


def _joined(parts: Iterable[sql.Composable], separator: LiteralString = ", ") -> sql.Composed:
    return sql.SQL(separator).join(parts)
