"""For how many days customers keep data of their own accord: what of a table is too old then, and objects of recordings."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import psycopg
import structlog
from pyspark.sql import SparkSession

from services.finalizer.serving.database import Serving
from services.finalizer.settings import ROLLUP_DAYS_FROM_VIEW, FinalizerSettings
from services.finalizer.transforms.views import DAY_MS
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.recorded_objects import delete_named
from services.finalizer.warehouse.tables import Table
from services.finalizer.warehouse.views_table import read
from shared.schemas.beacon import CUSTOMER_ID

log = structlog.get_logger(__name__)

_CONNECT_SECONDS_MAX: Final = 5
_IS_THERE: Final = "SELECT to_regclass('accounts.retention') IS NOT NULL"
_READ: Final = "SELECT kind, customer_id, days FROM accounts.retention"
_OBJECTS_AT_ONCE: Final = 1_000

#: By kind, days by customer.
Days = Mapping[str, Mapping[str, int]]


def kind_of(table: Table) -> str | None:
    """Which kind of data a table has; None: it is of no customer, or expires for all alike."""
    if table in (tables.VIEWS, tables.REPROCESSED, tables.REPLACED, tables.ROLLUPS):
        return "views"
    if table in tables.RAW.values():
        return "beacons"
    if table.name == tables.RECORDING_INDEX:
        return "recordings"
    is_rows = table.name in tables.ROWS and {"customer_id", "day"} <= set(table.schema.fieldNames())
    return "applications" if is_rows else None


def condition(table: Table, days: Days, now_ms: int) -> str | None:
    """Which rows are too old for their customers; None when none can be."""
    own = days.get(kind_of(table) or "", {})
    by_day: dict[int, list[str]] = defaultdict(list)
    # Sums rest on views: were some of these gone, a late revision would count too few.
    fewer = ROLLUP_DAYS_FROM_VIEW if table is tables.ROLLUPS else 0
    for customer_id, kept in own.items():
        if CUSTOMER_ID.fullmatch(customer_id):
            by_day[now_ms // DAY_MS - kept + fewer].append(customer_id)
    parts = [f"(day < {day} AND ({_of(table, customers)}))" for day, customers in sorted(by_day.items())]
    return " OR ".join(parts) or None


def _of(table: Table, customers: list[str]) -> str:
    if table in tables.RAW.values():
        keys = [f"{one}:".encode().hex() for one in sorted(customers)]
        return " OR ".join(f"startswith(key, X'{key}')" for key in keys)
    return f"customer_id IN ({', '.join(repr(one) for one in sorted(customers))})"


class OwnRetention:
    """What customers have set, and what is done besides deleting rows of the warehouse."""

    def __init__(self, settings: FinalizerSettings) -> None:
        self._dsn = settings.accounts_database
        self._objects = settings.objects
        self._location = settings.warehouse_dir

    def days(self) -> Days | None:
        """What is set now, nothing where the database has no accounts; None if it is away: the next round asks again."""
        try:
            with psycopg.connect(self._dsn, connect_timeout=_CONNECT_SECONDS_MAX) as connection:
                if connection.execute(_IS_THERE).fetchone() != (True,):
                    return {}
                rows = connection.execute(_READ).fetchall()
        except psycopg.Error as error:
            log.warning("own_retention_unknown", kind=type(error).__name__)
            return None
        days: dict[str, dict[str, int]] = defaultdict(dict)
        for kind, customer_id, kept in rows:
            days[kind][customer_id] = kept
        return days

    def deletable(self, spark: SparkSession, table: Table, too_old: str) -> Iterator[str]:
        """Which rows may be deleted now, a part after the other: of recordings the objects go first, by their rows they are found.

        A day at a time: what is cut off goes on where it was. Raises `ObjectsFailed`.
        """
        if table.name != tables.RECORDING_INDEX:
            yield too_old
            return
        if not self._objects:
            # There are no objects that this service could reach: the index stays, and names them.
            return
        rows = read(spark, self._location, table).where(too_old)
        for (day,) in sorted(rows.select("day").distinct().collect()):
            of_day = f"({too_old}) AND day = {day}"
            objects = rows.where(f"day = {day} AND object <> ''").select("object").distinct()
            names: list[str] = []
            for row in objects.toLocalIterator():
                names.append(row["object"])
                if len(names) >= _OBJECTS_AT_ONCE:
                    delete_named(self._objects, names)
                    names = []
            delete_named(self._objects, names)
            yield of_day

    def expire_served(self, serving: Serving, days: Days, now_ms: int) -> None:
        """The same in Postgres: hot rows and sums."""
        for customer_id, kept in days.get("views", {}).items():
            today = now_ms // DAY_MS
            serving.expire_customer(
                customer_id,
                views_before_day=today - kept,
                rollups_before_ms=(today - kept + ROLLUP_DAYS_FROM_VIEW) * DAY_MS,
            )
