"""Requests that data be deleted (schema `accounts`), as the finalizer takes them up: which are open, and what is noted of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from services.accounts.core.deletions import Step
from services.accounts.store.customers.deletions import TURN
from services.accounts.store.tenants.organisations import DELETION_UNDER_WAY

T = TypeVar("T")

#: How a connection to the database of requests is made.
OPTIONS: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "application_name": "playhead-finalizer-deletions",
    "options": "-c statement_timeout=60000",
}
_IS_THERE: Final = "SELECT to_regclass('accounts.deletion_steps') IS NOT NULL"
_OPEN: Final = f"""
    SELECT d.id::text AS id, d.customer_id, d.viewer, d.sessions, (extract(epoch FROM d.asked_at) * 1000)::bigint AS asked_ms,
        (SELECT (extract(epoch FROM s.ended_at) * 1000)::bigint FROM accounts.deletion_steps AS s
            WHERE s.deletion_id = d.id AND s.step = 'state') AS state_deleted_ms,
        array(SELECT step FROM accounts.deletion_steps AS s WHERE s.deletion_id = d.id AND s.state = 'done') AS done
    FROM (SELECT *, {TURN} AS turn FROM accounts.deletions WHERE {DELETION_UNDER_WAY}) AS d
    ORDER BY d.turn, d.number LIMIT 100
"""  # noqa: S608 - SQL of ours
_BEGIN: Final = """
    WITH begun AS (UPDATE accounts.deletions SET state = 'running' WHERE id::text = %(id)s AND state = 'pending')
    UPDATE accounts.deletion_steps SET state = 'running', began_at = coalesce(began_at, now())
    WHERE deletion_id::text = %(id)s AND step = %(step)s AND state = 'pending'
"""
_END_STEP: Final = """
    UPDATE accounts.deletion_steps SET state = 'done', found = %s, ended_at = now()
    WHERE deletion_id::text = %s AND step = %s AND state <> 'done'
"""
_ADD_TO_STEP: Final = """
    UPDATE accounts.deletion_steps SET found = found || %s WHERE deletion_id::text = %s AND step = %s
"""
_FOUND: Final = "SELECT found FROM accounts.deletion_steps WHERE deletion_id::text = %s AND step = %s FOR UPDATE"
#: The hash still says whose request it was.
_FAIL: Final = """
    UPDATE accounts.deletions SET state = 'failed', problem = %s, ended_at = now(), viewer = NULL, sessions = '{}'
    WHERE id::text = %s
"""
_PROBLEM: Final = "UPDATE accounts.deletions SET problem = %s WHERE id::text = %s AND problem <> %s"
_SESSIONS: Final = "UPDATE accounts.deletions SET sessions = %s WHERE id::text = %s"


@dataclass(frozen=True)
class Work:
    """An open request. `viewer` None: the whole customer."""

    id: str
    customer_id: str
    viewer: str | None = field(repr=False)
    sessions: list[str] = field(repr=False)
    asked_ms: int
    #: When the processor had deleted its state, ms since 1970; None before.
    state_deleted_ms: int | None
    done: list[str]


class DeletionRequests:
    """The requests in one database. Each call is one transaction; all raise psycopg's errors."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def open(self) -> list[Work]:
        """Those that are not over, in the order of their turns, a hundred; none where the database has no accounts."""

        def read(connection: psycopg.Connection) -> list[Work]:
            if connection.execute(_IS_THERE).fetchone() != (True,):
                return []
            with connection.cursor(row_factory=class_row(Work)) as cursor:
                return cursor.execute(_OPEN).fetchall()

        return self._do(read)

    def begin(self, work: Work, step: Step) -> None:
        """The step is being done."""
        self._do(lambda connection: connection.execute(_BEGIN, {"id": work.id, "step": step}))

    def end_step(self, work: Work, step: Step, found: Mapping[str, int]) -> None:
        """The step is done."""
        self._do(lambda connection: connection.execute(_END_STEP, (Jsonb(dict(found)), work.id, step)))

    def delete(
        self, work: Work, step: Step, delete: Callable[[psycopg.Connection], Mapping[str, int]]
    ) -> Mapping[str, int]:
        """Deletes rows of this database in one transaction with the note of how many; returns those of all repetitions."""

        def write(connection: psycopg.Connection) -> Mapping[str, int]:
            row = connection.execute(_FOUND, (work.id, step)).fetchone()
            found: dict[str, int] = {} if row is None else row[0]
            counts = {name: found.get(name, 0) + count for name, count in delete(connection).items()}
            connection.execute(_ADD_TO_STEP, (Jsonb(counts), work.id, step))
            return found | counts

        return self._do(write)

    def keep_sessions(self, work: Work, sessions: Sequence[str]) -> None:
        """Recorded sessions that were found: once the views are deleted, nothing names them."""
        self._do(lambda connection: connection.execute(_SESSIONS, (list(sessions), work.id)))

    def waits(self, work: Work, problem: str) -> None:
        """The reason why it waits; empty if it does not wait."""
        self._do(lambda connection: connection.execute(_PROBLEM, (problem, work.id, problem)))

    def fail(self, work: Work, problem: str) -> None:
        """It cannot be done."""
        self._do(lambda connection: connection.execute(_FAIL, (problem, work.id)))

    def _do(self, work: Callable[[psycopg.Connection], T]) -> T:
        with psycopg.connect(self._dsn, **OPTIONS) as connection:
            return work(connection)
