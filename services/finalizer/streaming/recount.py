"""Which views of dirty slices are counted again: those of whole hours, or those of the minutes that have changed. Pure.

An hour is the sum of its minutes, and table `rollups` has these. So of a large hour only the minutes are counted again whose views
have changed, and the others are read.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as sf

from services.finalizer.serving.published import Slice
from services.finalizer.transforms.views import HOUR_MS, MINUTE_MS, minute_of_hour
from services.finalizer.warehouse.views_table import in_slices

_MINUTES = HOUR_MS // MINUTE_MS


@dataclass(frozen=True)
class Part:
    """Customers of one hour of which the same minutes are counted again."""

    hour: int
    customers: tuple[str, ...]
    #: 0 to 59.
    minutes: tuple[int, ...]


@dataclass(frozen=True)
class Recount:
    """Slices that are rebuilt: `whole` from all their views, `parts` from those of some minutes."""

    whole: Sequence[Slice]
    parts: Sequence[Part] = ()

    def views(self) -> Column:
        """Which rows of table `views` are counted."""
        # The hour first: files have bounds of it.
        return self._any([_of(part) & minute_of_hour().isin(*part.minutes) for part in self.parts], whole=True)

    def other_minutes(self) -> Column:
        """Which rows of table `rollups` are minutes of `parts` that are not counted again."""
        minute = sf.floor(sf.col("start_ms") / MINUTE_MS) - sf.col("hour") * _MINUTES
        return (sf.col("grain") == "minute") & self._any(
            [_of(part) & ~minute.isin(*part.minutes) for part in self.parts], whole=False
        )

    def replaced(self) -> str:
        """The same as SQL: which rows of minutes and hours are replaced."""
        conditions = [
            f"(hour IN ({_listed(hours)}) AND customer_id = '{customer}')"
            for customer, hours in _by_customer(self.whole).items()
        ]
        for part in self.parts:
            starts = [(part.hour * _MINUTES + minute) * MINUTE_MS for minute in part.minutes]
            # Customers' names are checked when a view is parsed: letters, digits, _ and -.
            customers = ", ".join(f"'{customer}'" for customer in part.customers)
            conditions.append(
                f"(hour = {part.hour:d} AND customer_id IN ({customers}) AND (grain = 'hour' OR start_ms IN ({_listed(starts)})))"
            )
        return f"grain <> 'day' AND ({' OR '.join(conditions)})"

    def _any(self, conditions: list[Column], *, whole: bool) -> Column:
        if whole and self.whole:
            conditions = [in_slices(self.whole), *conditions]
        return reduce(or_, conditions)


def recount(slices: Sequence[Slice], minutes: Mapping[Slice, Collection[int]]) -> Recount:
    """Counts slices of `minutes` again in these minutes alone, all others whole.

    The slices of an hour share their minutes, so that conditions stay short: some are counted again for nothing.
    """
    by_hour: dict[int, list[Slice]] = defaultdict(list)
    for one in slices:
        if one in minutes:
            by_hour[one.hour].append(one)
    parts = [
        Part(
            hour,
            tuple(sorted(one.customer_id for one in of_hour)),
            tuple(sorted({minute for one in of_hour for minute in minutes[one]})),
        )
        for hour, of_hour in sorted(by_hour.items())
    ]
    return Recount([one for one in slices if one not in minutes], parts)


def _of(part: Part) -> Column:
    return (sf.col("hour") == part.hour) & sf.col("customer_id").isin(*part.customers)


def _by_customer(slices: Sequence[Slice]) -> dict[str, list[int]]:
    hours: dict[str, list[int]] = {}
    for one in slices:
        hours.setdefault(one.customer_id, []).append(one.hour)
    return hours


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(str(int(number)) for number in numbers)
