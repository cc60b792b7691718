"""How many views are open at a time: the steps of a curve, and the most at once within each. Pure."""

import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from services.query.core.calendar import DAY_MS, WIDTHS_MS, Range, fitting
from shared.measures import BEGAN_MS, COUNTED_MS

#: A view that was watched in the range may end, and so count, this much later.
_LATER_MS: Final = DAY_MS
#: What `Steps.open` reads, besides the times by which a view counts.
BEGAN_FIELD: Final = "view_start_ms"
#: Into how many cells a step is divided, and each of those, to find the most at once; the last ones are single ms. Steps of every
#: width divide so.
_DIVIDED: Final = (240, 10)

Row = Mapping[str, Any]


class Audience(msgspec.Struct, frozen=True):
    """A number of views that were open at once: begun, and not ended."""

    at_ms: int
    views: int


@dataclass(frozen=True)
class Steps:
    """The steps of a curve: from the first ms of a range on, up to its end or the present."""

    range: Range
    step_ms: int
    until_ms: int

    @property
    def starts_ms(self) -> list[int]:
        """Where each begins; none of a range in the future."""
        return list(range(self.range.from_ms, self.until_ms, self.step_ms))

    @property
    def open(self) -> str:
        """When a row of relation `views` was open, as columns `began` and `ended`: ms of the curve, cut to it."""
        first, length = self.range.from_ms, max(0, self.until_ms - self.range.from_ms)
        return (
            f"CAST(greatest({BEGAN_MS} - {first:d}, 0) AS bigint) AS began,"
            f" CAST(least({COUNTED_MS} - {first:d}, {length:d}) AS bigint) AS ended"
        )

    @property
    def touches(self) -> str:
        """Whether it was open at some time of the curve. One that ended when it began, or before, never was."""
        is_open = f"{COUNTED_MS} > greatest({BEGAN_MS}, {self.range.from_ms:d})"
        return f"{BEGAN_MS} < {self.until_ms:d} AND {is_open}"

    def most_at_once(self, limit: int) -> str:
        """Tables, the last one `most`: of each curve with one of the `limit` highest peaks, the most at once within each step.

        They are made of tables `numbers` (of curves: `number`) and `spans` (`number`, `began`, `ended`: see `open`). `most` has
        columns `number`, `step`, `views` and `at_ms`: where in the step there were so many first, in ms of the curve. A view counts
        from the ms in which it begins to before that in which it ends.

        At the end of a cell as many are open as the sum of changes says, and within it never more than those and the ones that
        ended in it. So cells, and curves, that cannot have the most are left out, and what is left is divided into smaller cells.
        """
        tables = [
            # What is open at the beginning of a step is counted there: no step is without a row.
            f"""moved_0 AS NOT MATERIALIZED (
                SELECT number, 0 AS parent, 0 AS before, began AS at_ms, 1 AS change FROM spans
                UNION ALL SELECT number, 0, 0, ended, -1 FROM spans
                UNION ALL SELECT number, 0, 0, step * {self.step_ms:d}, 0
                FROM numbers, range({len(self.starts_ms):d}) AS steps(step)
            )"""  # noqa: S608 - numbers of ours
        ]
        _, *widths_ms = itertools.accumulate(_DIVIDED, operator.floordiv, initial=self.step_ms)
        for level, cell_ms in enumerate(widths_ms):
            tables += [*self._counted(level, cell_ms), *self._narrowed(level, cell_ms, limit)]
        level = len(widths_ms)
        tables += self._counted(level, 1)
        tables.append(f"""most AS (
            SELECT number, step, low AS views, min(cell) AS at_ms FROM counted_{level} JOIN bounds_{level} USING (number, step)
            WHERE after = low AND step < {len(self.starts_ms):d} GROUP BY number, step, low
        )""")  # noqa: S608 - numbers of ours
        return ", ".join(tables)

    def _counted(self, level: int, cell_ms: int) -> list[str]:
        """What is open after each cell of a level, and of each step the most after one, and the bound of the most within one."""
        return [
            f"""counted_{level} AS MATERIALIZED (
                SELECT number, cell, cell * {cell_ms:d} // {self.step_ms:d} AS step, gone, change,
                       before + CAST(
                           sum(change) OVER (PARTITION BY number, parent ORDER BY cell ROWS UNBOUNDED PRECEDING) AS bigint
                       ) AS after
                FROM (
                    SELECT number, at_ms // {cell_ms:d} AS cell, any_value(parent) AS parent, any_value(before) AS before,
                           CAST(sum(change) AS bigint) AS change, count(*) FILTER (change < 0) AS gone
                    FROM moved_{level} GROUP BY number, cell
                ) AS cells
            )""",  # noqa: S608 - numbers of ours
            f"""bounds_{level} AS MATERIALIZED (
                SELECT number, step, max(after) AS low, max(after + gone) AS high FROM counted_{level} GROUP BY number, step
            )""",  # noqa: S608 - numbers of ours
        ]

    def _narrowed(self, level: int, cell_ms: int, limit: int) -> list[str]:
        """The changes in cells of a level that may have the most, for the next level."""
        return [
            f"""tops_{level} AS MATERIALIZED (
                SELECT number, max(low) AS low, max(high) AS high FROM bounds_{level} GROUP BY number
            )""",  # noqa: S608 - numbers of ours
            f"""near_{level} AS MATERIALIZED (
                SELECT number, cell, after - change AS before FROM counted_{level} JOIN bounds_{level} USING (number, step)
                WHERE after + gone >= low AND number IN (
                    SELECT number FROM tops_{level} WHERE high >= (
                        SELECT min(low) FROM (SELECT low FROM tops_{level} ORDER BY low DESC LIMIT {limit:d}) AS highest
                    )
                )
            )""",  # noqa: S608 - numbers of ours
            f"""moved_{level + 1} AS MATERIALIZED (
                SELECT number, cell AS parent, near.before, at_ms, moved.change FROM near_{level} AS near JOIN (
                    SELECT number, at_ms // {cell_ms:d} AS cell, at_ms, change FROM moved_{level}
                ) AS moved USING (number, cell)
            )""",  # noqa: S608 - numbers of ours
        ]

    def curve(self, most: Sequence[Row]) -> list[Audience]:
        """The most at once within each step, with the step's beginning, from rows of `most` of one curve; without rows zeros."""
        by_step = {row["step"]: row["views"] for row in most}
        return [Audience(at_ms, by_step.get(step, 0)) for step, at_ms in enumerate(self.starts_ms)]

    def peak(self, most: Sequence[Row]) -> Audience | None:
        """The most at once of the whole curve, from the same rows, and when that was first; None of a range in the future."""
        if not self.starts_ms:
            return None
        highest = max(most, key=lambda row: (row["views"], -row["step"]), default={"at_ms": 0, "views": 0})
        return Audience(self.range.from_ms + highest["at_ms"], highest["views"])


def steps_of(within: Range, now_ms: int) -> Steps:
    """The steps of a range, as fine as some hundred of them allow."""
    return Steps(within, WIDTHS_MS.get(fitting(within), DAY_MS), min(within.to_ms, now_ms))


def read_for(within: Range, now_ms: int) -> Range:
    """The range in which views count that were open in another one."""
    return Range(within.from_ms, min(within.to_ms + _LATER_MS, max(now_ms, within.to_ms)))
