"""Questions to Postgres whose statements are cancelled while Postgres can still say so."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import psycopg

from services.rim.database.pool import Postgres, PostgresAway

#: Of the seconds of a question, those after which its statement is cancelled: the rest is for Postgres to say so, which it would
#: not if it were away.
_SHARE: Final = 0.8

T = TypeVar("T")


async def ask_in_time(postgres: Postgres, read: Callable[[psycopg.AsyncConnection], Awaitable[T]]) -> T:
    """What `read` finds. Raises what `Postgres.ask` does, and `TimeoutError` where Postgres answers and needs too long."""

    async def in_time(connection: psycopg.AsyncConnection) -> T:
        try:
            async with asyncio.timeout(_SHARE * postgres.seconds_max):
                return await read(connection)
        except TimeoutError as error:
            if connection.closed:
                raise PostgresAway("deadline") from error
            raise

    return await postgres.ask(in_time)
