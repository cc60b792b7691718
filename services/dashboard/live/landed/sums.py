"""The figures of slices of many customers together, of one minute that has been landed. Postgres adds them up; bounded."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import psycopg
from psycopg import AsyncCursor
from psycopg.rows import tuple_row

from services.accounts.core.customer_scope import CustomerScope
from services.dashboard.live.landed.in_time import ask_in_time
from services.dashboard.live.landed.past import orders_of, others_of, turned
from services.dashboard.live.slices import FIELDS, GAUGES, Sums, first_of, is_unknown
from services.rim.database.pool import Postgres
from shared.schemas.live import DIMENSIONS, OTHER, PAIR_SEPARATOR, SLICE_VALUES_MAX, UNKNOWN
from shared.schemas.live_minute import GATHERED, WHOLE

#: How far back a minute with slices is looked for: what is older is not the present.
BACK_MINUTES: Final = 60
#: Minutes of the lines of one slice.
SERIES_MINUTES: Final = 10

_NEWEST: Final = """
    SELECT minute FROM serving.live_minutes
    WHERE minute > %(after)s AND minute <= %(until)s AND dimension = ANY(%(dimensions)s)
    ORDER BY minute DESC LIMIT 1
"""
_OWN: Final = "customer_id = ANY(%(own)s)"
#: Customers without room have no figures by dimension: those of their whole are taken apart.
_ALL_BUT: Final = "customer_id <> ALL(%(hidden)s) AND customer_id <> %(gathered)s"
_STEPS: Final = """
    SELECT max((document->>'steps')::bigint) FROM serving.live_minutes
    WHERE minute = %(minute)s AND dimension = %(whole)s AND {scope}
"""
_GATHERED: Final = """
    SELECT {figures} FROM (
        SELECT document->'values'->%(whole)s::text AS figures FROM serving.live_minutes
        WHERE minute = %(minute)s AND dimension = %(whole)s AND customer_id = %(gathered)s
    ) AS one
"""
#: Of every dimension the values with the most viewers; all others are one.
_RANKED: Final = """
    WITH found AS MATERIALIZED (
        SELECT dimension, value, {figures} FROM ({source}) AS each_value GROUP BY dimension, value
    ), ranked AS (
        SELECT *, row_number() OVER (
            PARTITION BY dimension, value = ANY(%(apart)s) ORDER BY viewers_now DESC, views_finished DESC, value COLLATE "C"
        ) AS place FROM found
    )
    SELECT dimension, CASE WHEN value = ANY(%(apart)s) OR place <= %(values_max)s THEN value ELSE %(others)s END AS name, {again}
    FROM ranked GROUP BY dimension, name
"""
_BY_DIMENSION: Final = """
    SELECT dimension, key AS value, figures
    FROM serving.live_minutes, LATERAL jsonb_each(document->'values') AS one(key, figures)
    WHERE minute = %(minute)s AND dimension = ANY(%(dimensions)s) AND {scope}
"""
#: Of a slice its own figures, and those of its pairs by their other value. A pair names its dimensions in either order.
_WITHIN: Final = """
    SELECT %(own_dimension)s::text AS dimension, %(value)s::text AS value, document->'values'->%(value)s::text AS figures
    FROM serving.live_minutes WHERE minute = %(minute)s AND dimension = %(own_dimension)s AND {scope}
    UNION ALL
    SELECT split_part(dimension, ',', 2), substr(key, char_length(%(begins)s) + 1), figures
    FROM serving.live_minutes, LATERAL jsonb_each(document->'values') AS one(key, figures)
    WHERE minute = %(minute)s AND dimension = ANY(%(firsts)s) AND starts_with(key, %(begins)s) AND {scope}
    UNION ALL
    SELECT split_part(dimension, ',', 1), left(key, -char_length(%(ends)s)), figures
    FROM serving.live_minutes, LATERAL jsonb_each(document->'values') AS one(key, figures)
    WHERE minute = %(minute)s AND dimension = ANY(%(seconds)s) AND right(key, char_length(%(ends)s)) = %(ends)s AND {scope}
"""
#: Minute by minute: of as many steps as of the customer of whom most are, and what has no name of its own.
_SERIES: Final = """
    SELECT minute, max(steps), coalesce(sum(others), 0)::bigint, {figures} FROM (
        SELECT minute, (document->>'steps')::bigint AS steps,
            CASE WHEN dimension <> %(whole)s THEN (document->'values'->%(others)s::text->>'viewers_now')::bigint END AS others,
            CASE dimension WHEN %(whole)s THEN NULL WHEN %(asked)s THEN document->'values'->%(value)s::text
                ELSE document->'values'->%(turned)s::text END AS figures
        FROM serving.live_minutes
        WHERE minute > %(minute)s - %(minutes)s AND minute <= %(minute)s AND dimension = ANY(%(orders)s) AND {scope}
    ) AS one GROUP BY minute
"""
_FIGURES: Final = ", ".join(f"coalesce(sum((figures->>'{field}')::bigint), 0)::bigint AS {field}" for field in FIELDS)
_AGAIN: Final = ", ".join(f"sum({field})::bigint AS {field}" for field in FIELDS)


@dataclass(frozen=True)
class LandedSums:
    """Of one minute (since 1970): figures by the name of each slice of one dimension."""

    minute: int
    #: Of how many steps anything is known: gauges are means over them.
    steps: int
    sums: Sums


@dataclass(frozen=True)
class LandedSlice:
    """What one slice adds to the sums of its minute."""

    #: The figures of its first dimension's value, and of that value's pairs.
    sums: Sums
    #: Its figures minute by minute, the sums' minute last; None where nothing is known.
    series: dict[str, list[int | None]]
    #: At most how many viewers belong to it that have no name of their own.
    others_now: int


class Landed(Protocol):
    """Where sums come from. Both raise what `ask_in_time` does."""

    async def whole(self, scope: CustomerScope, after_minute: int, until_minute: int) -> LandedSums | None:
        """The sums of the newest minute after the one and up to the other; None where none has been landed."""
        ...

    async def of_slice(self, scope: CustomerScope, slice_name: str, whole: LandedSums) -> LandedSlice:
        """What is added for one slice, or for one of a pair."""
        ...


class PostgresLanded:
    """`Landed` in the serving database."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def whole(self, scope: CustomerScope, after_minute: int, until_minute: int) -> LandedSums | None:
        """See `Landed`."""
        return await ask_in_time(self._postgres, lambda one: _whole(one, scope, after_minute, until_minute))

    async def of_slice(self, scope: CustomerScope, slice_name: str, whole: LandedSums) -> LandedSlice:
        """See `Landed`."""
        dimensions, _, value = slice_name.partition("=")
        if not set(dimensions.split(",")) <= set(DIMENSIONS) or "\0" in value:
            # Any text may be asked for. No figures have such a name, and Postgres has no text with a zero character.
            return LandedSlice({}, {field: [0] for field in FIELDS}, 0)
        return await ask_in_time(self._postgres, lambda one: _of_slice(one, scope, slice_name, whole))


async def _whole(
    connection: psycopg.AsyncConnection, scope: CustomerScope, after_minute: int, until_minute: int
) -> LandedSums | None:
    after = max(after_minute, until_minute - BACK_MINUTES)
    values = _scoped(scope) | {"after": after, "until": until_minute, "dimensions": list(DIMENSIONS)}
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(_NEWEST, values)
        found = await cursor.fetchone()
        if found is None:
            return None
        values["minute"] = minute = found[0]
        await cursor.execute(_sql(_STEPS, scope), values)
        steps = max(1, (await cursor.fetchone() or (0,))[0] or 0)
        sums = {
            f"{dimension}={value}": _figures(figures, steps)
            for dimension, value, *figures in await _ranked(cursor, _BY_DIMENSION, scope, values)
        }
        if scope.is_everything:
            await cursor.execute(_sql(_GATHERED, scope), values)
            _add_gathered(sums, _figures(await cursor.fetchone() or (), steps))
        return LandedSums(minute, steps, sums)


async def _of_slice(
    connection: psycopg.AsyncConnection, scope: CustomerScope, slice_name: str, whole: LandedSums
) -> LandedSlice:
    async with connection.cursor(row_factory=tuple_row) as cursor:
        values = _scoped(scope) | {"minute": whole.minute}
        sums = await _within(cursor, scope, first_of(slice_name), whole.steps, values)
        dimension, _, value = slice_name.partition("=")
        given = {
            "asked": dimension,
            "value": value,
            "turned": turned(value),
            "orders": [WHOLE, *orders_of(dimension)],
            "others": others_of(dimension),
            "minutes": SERIES_MINUTES,
        }
        await cursor.execute(_sql(_SERIES, scope), values | given)
        found = {minute: (steps, others, figures) for minute, steps, others, *figures in await cursor.fetchall()}
    known = {minute: _figures(figures, steps) for minute, (steps, _, figures) in found.items() if steps}
    minutes = range(min(known, default=whole.minute), whole.minute + 1)
    series = {field: [known[one][field] if one in known else None for one in minutes] for field in FIELDS}
    others = found[whole.minute][1] // whole.steps if whole.minute in found else 0
    return LandedSlice(sums, series, 0 if is_unknown(slice_name) else others)


async def _within(
    cursor: AsyncCursor[Any], scope: CustomerScope, within: str, steps: int, values: dict[str, Any]
) -> Sums:
    """The figures of a slice and of its pairs, each by the slice's dimension first; none of an empty one."""
    own, _, value = within.partition("=")
    if not within:
        return {}
    given = {
        "own_dimension": own,
        "value": value,
        "begins": f"{value}{PAIR_SEPARATOR}",
        "ends": f"{PAIR_SEPARATOR}{value}",
        "firsts": [f"{own},{other}" for other in DIMENSIONS],
        "seconds": [f"{other},{own}" for other in DIMENSIONS],
    }
    found: Sums = {}
    for dimension, name, *figures in await _ranked(cursor, _WITHIN, scope, values | given):
        pair = f"{own},{dimension}={value}{PAIR_SEPARATOR}{name}"
        found[within if dimension == own else pair] = _figures(figures, steps)
    return found


async def _ranked(
    cursor: AsyncCursor[Any], source: str, scope: CustomerScope, values: dict[str, Any]
) -> list[tuple[Any, ...]]:
    given = {"apart": [OTHER, UNKNOWN], "others": OTHER, "values_max": SLICE_VALUES_MAX}
    await cursor.execute(_sql(_RANKED.replace("{source}", source), scope), values | given)
    return await cursor.fetchall()


def _sql(statement: str, scope: CustomerScope) -> bytes:
    """A statement with the fields of a slice, and the customers of a scope."""
    return statement.format(figures=_FIGURES, again=_AGAIN, scope=_OWN if scope.all_but is None else _ALL_BUT).encode()


def _scoped(scope: CustomerScope) -> dict[str, Any]:
    return {"own": sorted(scope.own), "hidden": sorted(scope.all_but or ()), "gathered": GATHERED, "whole": WHOLE}


def _figures(sums: Iterable[int], steps: int) -> dict[str, int]:
    """Gauges as means over the steps; counts as they are."""
    figures = dict(zip(FIELDS, sums, strict=False))
    return {field: round(sum_ / steps) if field in GAUGES else sum_ for field, sum_ in figures.items()}


def _add_gathered(sums: Sums, gathered: dict[str, int]) -> None:
    """Customers without room are among all others, by whichever dimension."""
    if not any(gathered.values()):
        return
    for dimension in {name.partition("=")[0] for name in sums}:
        others = sums.get(f"{dimension}={OTHER}", {})
        sums[f"{dimension}={OTHER}"] = {field: others.get(field, 0) + figure for field, figure in gathered.items()}
