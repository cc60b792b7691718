"""Limits that customers have of their own, and the counts of each, from schema `limits` of the customers' database.

The collector's migrations make it.
"""

from collections.abc import Collection, Mapping
from typing import Final

import psycopg
import structlog

log = structlog.get_logger(__name__)

_CONNECT_SECONDS_MAX: Final = 5
_STATEMENT_MS: Final = 10_000
#: No such schema, no such table.
_NOT_THERE: Final = frozenset({"3F000", "42P01"})
_OWN: Final = (
    "SELECT customer_id, members_max FROM limits.customers WHERE members_max IS NOT NULL AND customer_id = ANY(%s)"
)
_DELETE: Final = {
    "limits.stored": "DELETE FROM limits.stored WHERE customer_id = %s",
    "limits.refused": "DELETE FROM limits.refused WHERE customer_id = %s",
}
_DEFAULT: Final = (
    "INSERT INTO limits.defaults AS d (name, value) VALUES ('members_max', %s)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE d.value <> excluded.value"
)


class CustomerLimits:
    """`members_max` of customers. Without the database the last known values hold, or none: batches do not wait for it."""

    def __init__(self, dsn: str, default: int) -> None:
        self._dsn = dsn
        self._default = default
        self._known: dict[str, int] = {}
        self._problem = ""
        self._is_default_written = False

    def members_max(self, customers: Collection[str]) -> Mapping[str, int]:
        """Those of these customers that have a number of their own."""
        try:
            with _connect(self._dsn) as connection:
                found: dict[str, int] = dict(connection.execute(_OWN, (sorted(customers),)).fetchall())
                self._known = {name: own for name, own in self._known.items() if name not in customers} | found
                if not self._is_default_written:
                    # The page of limits shows it.
                    connection.execute(_DEFAULT, (self._default,))
                    self._is_default_written = True
            self._problem = ""
        except psycopg.Error as error:
            self._report(error)
        return {name: self._known[name] for name in customers if name in self._known}

    def _report(self, error: psycopg.Error) -> None:
        # By kind: the driver's texts name hosts and users.
        problem = f"{type(error).__name__} ({error.sqlstate or 'no connection'})"
        if problem != self._problem:
            # A database without the customers' schema is an installation whose customers are elsewhere.
            level = "info" if error.sqlstate in _NOT_THERE else "warning"
            getattr(log, level)("customer_limits_unknown", problem=problem)
        self._problem = problem


def delete_counts(dsn: str, customer_id: str) -> dict[str, int]:
    """Deletes what collectors counted of a customer; how many rows of each table. Raises psycopg's errors.

    A database without the schema is an installation whose customers are elsewhere, and has none.
    """
    deleted = {}
    with _connect(dsn) as connection:
        for table, statement in _DELETE.items():
            if connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone() == (True,):
                deleted[table] = connection.execute(statement, (customer_id,)).rowcount
    return deleted


def _connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(
        dsn,
        autocommit=True,
        connect_timeout=_CONNECT_SECONDS_MAX,
        application_name="playhead-finalizer-limits",
        options=f"-c statement_timeout={_STATEMENT_MS}",
    )
