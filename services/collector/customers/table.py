"""The customers table in Postgres, read again when it changes. If the new one is invalid, the last valid one stays in force."""

import asyncio
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
import structlog
from psycopg.rows import dict_row

from services.collector.intake.sender.customers import Customer, Customers, CustomersWrong, listed
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_CUSTOMERS_RELOADS

log = structlog.get_logger(__name__)

MIGRATIONS_DIR: Final = Path(__file__).parent / "migrations"
CUSTOMERS_MAX: Final = 200_000
#: A query that takes longer is abandoned; the next one follows.
CONNECT_SECONDS_MAX: Final = 5
STATEMENT_SECONDS_MAX: Final = 10

_COLUMNS: Final = ("customer_id", *Customer.__struct_fields__)
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM collector.customers LIMIT {CUSTOMERS_MAX + 1}"  # noqa: S608


class TableAway(ConnectionError):
    """The table cannot be read; the message says the kind of error, and nothing that the connection string holds."""


class CustomersTable:
    """The customers of table `collector.customers`. Raises `CustomersWrong` or `TableAway` if it has no valid customers."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._version = -1
        self._problem = ""
        self.customers: Customers = self._newer() or listed({})
        log.info("customers_loaded", table_version=self._version, keys=len(self.customers))

    def reload_when_changed(self) -> None:
        """Reads the table if it has changed. A read error is counted, and logged if it differs from the last one."""
        counter = metrics.counter(COLLECTOR_CUSTOMERS_RELOADS)
        try:
            newer = self._newer()
        except (TableAway, CustomersWrong) as error:
            counter.labels("failed").inc()
            if str(error) != self._problem:
                self._problem = str(error)
                log.error("customers_not_reloaded", problem=self._problem, keys=len(self.customers))
            return
        if newer is not None:
            self.customers = newer
            counter.labels("ok").inc()
        if newer is not None or self._problem:
            log.info("customers_loaded", table_version=self._version, keys=len(self.customers))
        self._problem = ""

    async def watch(self, seconds: float) -> None:
        """Checks the table at this interval, for ever, on a thread that may wait for it."""
        while True:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.reload_when_changed)

    def _newer(self) -> Customers | None:
        """The customers, if the table is at another version than the one in force."""
        try:
            with psycopg.connect(
                self._dsn, connect_timeout=CONNECT_SECONDS_MAX, fallback_application_name="playhead-collector"
            ) as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                connection.execute(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS_MAX}s'")
                version = connection.execute("SELECT version FROM collector.customers_version").fetchone()
                if version is None:
                    raise CustomersWrong("collector.customers_version has lost its row")
                if version[0] == self._version:
                    return None
                rows = connection.cursor(row_factory=dict_row).execute(_SELECT).fetchall()
        except psycopg.Error as error:
            # The driver's texts name hosts and users, and may quote a password.
            raise TableAway(f"{type(error).__name__} ({error.sqlstate or 'no connection'})") from None
        customers = _customers(rows)
        self._version = version[0]
        return customers


def _customers(rows: list[dict[str, Any]]) -> Customers:
    if len(rows) > CUSTOMERS_MAX:
        raise CustomersWrong(f"more than {CUSTOMERS_MAX} customers")
    customers: dict[str, Customer] = {}
    for row in rows:
        customer_id = row.pop("customer_id")
        try:
            customers[customer_id] = msgspec.convert(row, Customer)
        except msgspec.ValidationError as error:
            raise CustomersWrong(f"customer {customer_id}: {error}") from error
    return listed(customers)
