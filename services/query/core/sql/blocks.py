"""Blocks of hours: table `serving.blocks` has the sums of 1, 2, 4 … 8192 hours, so that any range is a few rows of a customer.

A customer's hour that is hot has its views summed beside its rollup: then its sums are added, and its rollup is taken away.
"""

from typing import Any, Final

from services.query.core.parts import Part

#: Of the longest blocks: of 2^13 hours. Block b of level n is the 2^n hours from b * 2^n on.
LEVEL_MAX: Final = 13
#: The sums that blocks have.
OF_BLOCKS: Final = frozenset(
    {"views", "started", "startup_failures", "playback_failures", "exits_before_start"}
    | {"watch_ms", "playing_ms", "rebuffer_ms", "bitrate_integral", "bitrate_time_ms"}
)


def blocks_of(first_hour: int, end_hour: int) -> list[tuple[int, int]]:
    """The fewest blocks that together are the hours from one to before another (since 1970), as (level, block)."""
    found = []
    hour = first_hour
    while hour < end_hour:
        level = LEVEL_MAX
        while hour % (1 << level) or hour + (1 << level) > end_hour:
            level -= 1
        found.append((level, hour >> level))
        hour += 1 << level
    return found


def statement(
    first_hour: int, end_hour: int, parts: tuple[Part, ...], *, hot: str, of_customers: str, by_customer: bool
) -> tuple[str, dict[str, Any]]:
    """One row, or one of each customer with views, with its parts as `numeric`; and the placeholders of the blocks.

    `hot` defines the common table of that name, `of_customers` is a condition on the customers of a table.
    """
    blocks = blocks_of(first_hour, end_hour)
    sums = ", ".join(f"sum(f.{part.name})::numeric" for part in parts)
    key = "f.customer_id, " if by_customer else ""
    # A customer whose views have all been taken away has none.
    groups = "GROUP BY f.customer_id HAVING sum(f.views) <> 0" if by_customer else ""
    sql = f"""
        WITH {hot}, found AS (
            SELECT b.customer_id, {_of("b", parts)}
            FROM unnest(%(levels)s::smallint[], %(blocks)s::bigint[]) AS one (level, block)
            JOIN serving.blocks AS b ON b.level = one.level AND b.block = one.block
            WHERE {of_customers.format("b")}
            UNION ALL
            SELECT s.customer_id, {_of("s", parts)}
            FROM hot JOIN serving.sums AS s ON s.grain = 'hour' AND s.start = hot.hour AND s.customer_id = hot.customer_id
            UNION ALL
            SELECT r.customer_id, {_of("r", parts, "-")}
            FROM hot JOIN serving.rollups AS r ON r.customer_id = hot.customer_id AND r.dimensions = '' AND r.grain = 'hour'
                                              AND r.start = to_timestamp(hot.hour * 3600)
        )
        SELECT {key}{sums} FROM found AS f {groups}
    """  # noqa: S608 - names of ours
    return sql, {"levels": [level for level, _ in blocks], "blocks": [block for _, block in blocks]}


def _of(table: str, parts: tuple[Part, ...], sign: str = "") -> str:
    return ", ".join(f"{sign}{table}.{part.name} AS {part.name}" for part in parts)
