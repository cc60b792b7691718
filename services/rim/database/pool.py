"""A pool of connections to Postgres, whose questions end within a deadline, also where the server hangs."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import psycopg
import psycopg_pool
import structlog

from services.rim.database.postgres import log_pool_errors_by_kind

log = structlog.get_logger(__name__)

T = TypeVar("T")


class PostgresAway(RuntimeError):
    """Postgres did not answer, or not in time; ask again later."""


class QueryRefused(RuntimeError):
    """Postgres answers and refuses the query: its tables are not those this version knows."""


class NotPublished(RuntimeError):
    """Postgres answers, but the tables are not there: who makes them has not run yet."""


class Asks(Protocol):
    """What asks Postgres, as `Postgres` does."""

    async def ask(self, read: Callable[[psycopg.AsyncConnection], Awaitable[T]]) -> T:
        """What `read` finds; raises as `Postgres.ask`."""
        ...


class _Asking:
    """One question on its way: the connection that it holds, so that a deadline can end it."""

    def __init__(self) -> None:
        self.connection: psycopg.AsyncConnection | None = None
        self.is_abandoned = False

    def abandon(self) -> None:
        """Ends the question without the server's help, which a stopped server cannot give. The pool discards the connection."""
        self.is_abandoned = True
        if self.connection is None or self.connection.closed:
            return
        with socket.socket(fileno=os.dup(self.connection.fileno())) as same:
            # The waiting statement reads the end of the stream, and fails as with any server that goes away.
            same.shutdown(socket.SHUT_RDWR)


class Postgres:
    """A pool of connections to one database, read-only unless `writes`.

    What reads sees one snapshot; what writes sees at each statement what others have committed by then. A question is answered
    within `seconds_max`, also where Postgres accepts connections and is stopped: the server's own statement timeout does not run
    then.
    """

    def __init__(
        self,
        dsn: str,
        *,
        service: str,
        connections_max: int,
        seconds_max: float,
        writes: bool = False,
    ) -> None:
        #: Within which a question is answered.
        self.seconds_max = seconds_max
        self._connections_max = connections_max
        self._writes = writes
        log_pool_errors_by_kind()
        self._pool = psycopg_pool.AsyncConnectionPool(
            dsn,
            min_size=0,
            max_size=connections_max,
            timeout=seconds_max,
            reconnect_timeout=seconds_max,
            max_waiting=10 * connections_max,
            open=False,
            configure=None if writes else _configure,
            kwargs={
                "application_name": f"playhead-{service}",
                "connect_timeout": max(2, round(seconds_max)),
                "options": f"-c statement_timeout={round(seconds_max * 1_000)}"
                f" -c default_transaction_read_only={'off' if writes else 'on'}",
            },
        )

    async def open(self) -> None:
        """Starts the pool; does not wait for Postgres."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        """Closes all connections."""
        await self._pool.close(timeout=self.seconds_max)

    async def ask(self, read: Callable[[psycopg.AsyncConnection], Awaitable[T]]) -> T:
        """What `read` finds, in one transaction for all its statements. Raises `PostgresAway`, `NotPublished` or `QueryRefused`.

        After `PostgresAway` it is not known whether what writes was committed.
        """
        asking = _Asking()
        task = asyncio.create_task(self._asked(asking, read))
        try:
            done, _ = await asyncio.wait({task}, timeout=self.seconds_max)
        finally:
            # The deadline has passed, or the page that asked has gone.
            if not task.done():
                asking.abandon()
                task.add_done_callback(_forget)
        if not done:
            log.warning("postgres_away", kind="deadline")
            raise PostgresAway("deadline")
        return task.result()

    async def _asked(self, asking: _Asking, read: Callable[[psycopg.AsyncConnection], Awaitable[T]]) -> T:
        try:
            return await self._read_on_a_live_connection(asking, read)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            raise NotPublished(str(error).partition("\n")[0]) from error
        except (psycopg.OperationalError, psycopg_pool.PoolTimeout, psycopg_pool.TooManyRequests) as error:
            # The text may name hosts and users, so it is logged by kind alone. Of an abandoned question the deadline was logged, or
            # nobody waits for it any more: that a page was left says nothing of Postgres.
            if not asking.is_abandoned:
                log.warning("postgres_away", kind=type(error).__name__)
            raise PostgresAway(type(error).__name__) from error
        except psycopg.Error as error:
            log.error("query_refused", kind=type(error).__name__, sqlstate=error.sqlstate)
            raise QueryRefused(type(error).__name__) from error

    async def _read_on_a_live_connection(
        self, asking: _Asking, read: Callable[[psycopg.AsyncConnection], Awaitable[T]]
    ) -> T:
        """Connections that a server's restart has broken are tried once each; each is discarded as it fails.

        What writes is repeated only where its transaction had not begun: of one that had, the commit's outcome is unknown.
        """
        for _ in range(self._connections_max):
            has_begun = False
            try:
                async with self._pool.connection() as asking.connection, asking.connection.transaction():
                    has_begun = True
                    return await read(asking.connection)
            except psycopg.OperationalError:
                if asking.connection is None or not asking.connection.broken or asking.is_abandoned:
                    raise
                if has_begun and self._writes:
                    raise
                asking.connection = None
        async with self._pool.connection() as asking.connection:
            return await read(asking.connection)


def _forget(task: asyncio.Task[T]) -> None:
    """The outcome is not needed any more; its error is that of the abandoned connection."""
    if not task.cancelled():
        task.exception()


async def _configure(connection: psycopg.AsyncConnection) -> None:
    await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
