"""The customers table in Postgres, read again when it changes. If the new one is invalid, the last valid one stays in force."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
import structlog
from psycopg.rows import dict_row

from services.collector.intake.sender.customers import Customer, Customers, CustomersWrong, WriteKey, listed
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_CUSTOMERS_RELOADS

log = structlog.get_logger(__name__)

MIGRATIONS_DIR: Final = Path(__file__).parent / "migrations"
#: No key is a customer: of a table that never had one.
_NOBODY: Final = Customers({})
CUSTOMERS_MAX: Final = 200_000
KEYS_MAX: Final = 500_000
#: A query that takes longer is abandoned; the next one follows.
CONNECT_SECONDS_MAX: Final = 5
STATEMENT_SECONDS_MAX: Final = 10

_COLUMNS: Final = ("customer_id", *Customer.__struct_fields__)
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM collector.customers LIMIT {CUSTOMERS_MAX + 1}"  # noqa: S608
_KEYS: Final = f"""
    SELECT key, customer_id, origins, beacons_per_second, bytes_per_second,
        revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AS is_valid
    FROM collector.keys LIMIT {KEYS_MAX + 1}
"""  # noqa: S608 - a number of ours
#: It changes with the table, and with each key that expires.
_VERSION: Final = """
    SELECT version, (SELECT max(expires_at) FROM collector.keys WHERE expires_at <= now()) FROM collector.customers_version
"""


class TableAway(ConnectionError):
    """The table cannot be read; the message says the kind of error, and nothing that the connection string holds."""


class CustomersTable:
    """The customers of table `collector.customers`: nobody while it never had one.

    Raises `CustomersWrong` or `TableAway` if it has no valid customers.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._version: tuple[int, datetime | None] = (-1, None)
        self._problem = ""
        self.customers: Customers = self._newer() or _NOBODY
        log.info("customers_loaded", table_version=self._version[0], keys=len(self.customers))

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
            log.info("customers_loaded", table_version=self._version[0], keys=len(self.customers))
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
                version = connection.execute(_VERSION).fetchone()
                if version is None:
                    raise CustomersWrong("collector.customers_version has lost its row")
                if version == self._version:
                    return None
                rows = connection.cursor(row_factory=dict_row).execute(_SELECT).fetchall()
                keys = connection.cursor(row_factory=dict_row).execute(_KEYS).fetchall()
        except psycopg.Error as error:
            # The driver's texts name hosts and users, and may quote a password.
            raise TableAway(f"{type(error).__name__} ({error.sqlstate or 'no connection'})") from None
        # Of a new installation nobody is a customer yet. A table that had some and is empty is probably a mistake.
        customers = _customers(rows, keys) if rows or version[0] else _NOBODY
        self._version = version
        return customers


def _customers(rows: list[dict[str, Any]], keys: list[dict[str, Any]]) -> Customers:
    if len(rows) > CUSTOMERS_MAX:
        raise CustomersWrong(f"more than {CUSTOMERS_MAX} customers")
    if len(keys) > KEYS_MAX:
        raise CustomersWrong(f"more than {KEYS_MAX} keys")
    customers: dict[str, Customer] = {}
    for row in rows:
        customer_id = row.pop("customer_id")
        try:
            customers[customer_id] = msgspec.convert(row, Customer)
        except msgspec.ValidationError as error:
            raise CustomersWrong(f"customer {customer_id}: {error}") from error
    return listed(customers, [_write_key(row) for row in keys])


def _write_key(row: dict[str, Any]) -> WriteKey:
    try:
        return msgspec.convert(row, WriteKey)
    except msgspec.ValidationError as error:
        raise CustomersWrong(f"key {row['key']}: {error}") from error
