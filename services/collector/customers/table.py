"""The customers table in Postgres, read again when it changes. If the new one is invalid, the last valid one stays in force."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
import structlog
from psycopg.rows import dict_row

from services.collector.intake.sender.customers import Customer, Customers, CustomersWrong, WriteKey, listed
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_CUSTOMERS_LEFT_OUT, COLLECTOR_CUSTOMERS_RELOADS
from shared.write_keys import CUSTOMERS_MAX, ENDED_AT, IN_FORCE, KEY_PLACES_MAX, PLACES

log = structlog.get_logger(__name__)

MIGRATIONS_DIR: Final = Path(__file__).parent / "migrations"
#: No key is a customer: of a table that never had one.
_NOBODY: Final = Customers({})
#: The newest keys that have ended are known as such; older ones are as keys that never were.
ENDED_KEYS_MAX: Final = 100_000
#: Customers that a line of the log names.
_NAMED_MAX: Final = 10
_ROWS_AT_ONCE: Final = 5_000
_UNREAD: Final = (-1, None)
#: A query that takes longer is abandoned; the next one follows.
CONNECT_SECONDS_MAX: Final = 5
STATEMENT_SECONDS_MAX: Final = 10

_COLUMNS: Final = ("customer_id", *Customer.__struct_fields__)
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM collector.customers LIMIT {CUSTOMERS_MAX + 1}"  # noqa: S608
#: Customers for whose keys no place is left, if those with few keys come first.
_LEFT_OUT: Final = f"""
    WITH wanted AS (
        SELECT customer_id, sum({PLACES}) AS places FROM collector.keys WHERE {IN_FORCE} GROUP BY customer_id
    ), filled AS (SELECT customer_id, places, sum(places) OVER (ORDER BY places, customer_id) AS up_to FROM wanted)
    SELECT customer_id FROM filled WHERE up_to > %s ORDER BY places DESC, customer_id
"""  # noqa: S608 - SQL of ours
_HAVE_KEYS: Final = "SELECT DISTINCT customer_id FROM collector.keys"
_KEYS: Final = f"""
    SELECT key, customer_id, origins, beacons_per_second, bytes_per_second, true AS is_valid
    FROM collector.keys WHERE {IN_FORCE} AND customer_id <> ALL(%s)
    UNION ALL (
        SELECT key, customer_id, '{{}}', NULL, NULL, false FROM collector.keys WHERE NOT {IN_FORCE}
        ORDER BY {ENDED_AT} DESC LIMIT %s
    )
"""  # noqa: S608 - SQL of ours
#: It changes with the table, and with each key that expires.
_VERSION: Final = """
    SELECT version, (SELECT max(expires_at) FROM collector.keys WHERE expires_at <= now()) FROM collector.customers_version
"""


class TableAway(ConnectionError):
    """The table cannot be read; the message says the kind of error, and nothing that the connection string holds."""


class CustomersTable:
    """The customers of table `collector.customers`: nobody while it never had one.

    Of more keys than there are places for, those of the customers with the most are in force nowhere.
    Raises `CustomersWrong` or `TableAway` if it has no valid customers.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._version: tuple[int, datetime | None] = _UNREAD
        self._problem = ""
        self.customers: Customers = _NOBODY
        self.customers = self._newer() or _NOBODY
        log.info("customers_loaded", table_version=self._version[0], keys=len(self.customers))

    def reload_when_changed(self) -> None:
        """Reads the table if it has changed. A read error is counted, and logged if it differs from the last one."""
        counter = metrics.counter(COLLECTOR_CUSTOMERS_RELOADS)
        try:
            newer = self._newer()
        except (TableAway, CustomersWrong) as error:
            counter.labels("failed").inc()
            if isinstance(error, CustomersWrong):
                # A table that is made again counts its versions from 0, up to the one that was read last.
                self._version = _UNREAD
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
                customers, left_out = self._read(connection, version[0])
        except psycopg.Error as error:
            # The driver's texts name hosts and users, and may quote a password.
            raise TableAway(f"{type(error).__name__} ({error.sqlstate or 'no connection'})") from None
        metrics.gauge(COLLECTOR_CUSTOMERS_LEFT_OUT).set(len(left_out))
        if left_out:
            log.error(
                "keys_left_out", customers=len(left_out), most_keys=left_out[:_NAMED_MAX], places_max=KEY_PLACES_MAX
            )
        self._version = version
        return customers

    def _read(self, connection: psycopg.Connection, version: int) -> tuple[Customers, list[str]]:
        """The customers, and those of them whose keys are left out."""
        rows = connection.cursor(row_factory=dict_row).execute(_SELECT).fetchall()
        # Of a new installation nobody is a customer yet. A table that had some and is empty is probably a mistake, also where it
        # was made again since.
        if not rows and not version and self.customers is _NOBODY:
            return _NOBODY, []
        left_out = [customer_id for (customer_id,) in connection.execute(_LEFT_OUT, (KEY_PLACES_MAX,))]
        have_keys = frozenset(customer_id for (customer_id,) in connection.execute(_HAVE_KEYS))
        with connection.cursor("keys", row_factory=dict_row) as cursor:
            # All at once they would take several times the memory of what is made of them.
            cursor.itersize = _ROWS_AT_ONCE
            cursor.execute(_KEYS, (left_out, ENDED_KEYS_MAX))
            keys = [_write_key(row) for row in cursor]
        return _customers(rows, keys, have_keys), left_out


def _customers(rows: list[dict[str, Any]], keys: Sequence[WriteKey], have_keys: frozenset[str]) -> Customers:
    if len(rows) > CUSTOMERS_MAX:
        raise CustomersWrong(f"more than {CUSTOMERS_MAX} customers")
    customers: dict[str, Customer] = {}
    for row in rows:
        customer_id = row.pop("customer_id")
        try:
            customers[customer_id] = msgspec.convert(row, Customer)
        except msgspec.ValidationError as error:
            raise CustomersWrong(f"customer {customer_id}: {error}") from error
    return listed(customers, keys, have_keys)


def _write_key(row: dict[str, Any]) -> WriteKey:
    try:
        return msgspec.convert(row, WriteKey)
    except msgspec.ValidationError as error:
        raise CustomersWrong(f"key {row['key']}: {error}") from error
