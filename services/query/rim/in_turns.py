"""Connections to Postgres that organisations share: however much one asks at a time, others find one."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg

from services.query.rim.engine import CALLER
from services.rim.database.pool import Asks
from services.rim.turns.fair_turns import FairTurns

T = TypeVar("T")


class InTurns:
    """Questions to Postgres, `at_once` at a time: organisations take turns, and the callers of each. Belongs to one event loop.

    An organisation leaves one of several turns to others. The pool below would refuse everybody's where one has too many waiting.
    """

    def __init__(self, postgres: Asks, at_once: int) -> None:
        self._postgres = postgres
        self._turns = FairTurns(at_once, of_one=max(1, at_once - 1))

    async def ask(self, read: Callable[[psycopg.AsyncConnection], Awaitable[T]]) -> T:
        """As `Postgres.ask`, in a turn of the present caller."""
        async with self._turns.turn(*CALLER.get()):
            return await self._postgres.ask(read)
