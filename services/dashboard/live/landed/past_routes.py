"""`/v1/live/history`: the live picture of earlier, from Postgres."""

from functools import partial
from typing import Final, Protocol

import msgspec
import psycopg
from aiohttp import web
from psycopg.rows import tuple_row

from services.accounts.core.customer_scope import CustomerScope
from services.accounts.http.access import METRICS_OF_ONE_OR_ALL, Routing
from services.accounts.http.guard import principal_of
from services.dashboard.live.history import ALL
from services.dashboard.live.landed.in_time import ask_in_time
from services.dashboard.live.landed.past import (
    AskedPast,
    PastPicture,
    Row,
    Wrong,
    assembled,
    checked,
    minutes_of,
    orders_of,
)
from services.dashboard.live.landed.past_of_all import read_all
from services.rim.database.pool import NotPublished, Postgres, PostgresAway, QueryRefused
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import TOO_MANY_QUESTIONS, problem_response
from services.rim.turns.question_limits import InTurn, TooManyQuestions
from shared.http.problems import Problem
from shared.schemas.live import BUCKET_MS
from shared.schemas.live_minute import WHOLE

OPERATIONS: Final = [
    Operation(
        "/v1/live/history",
        "The live figures of earlier, by any live dimension or pair",
        PastPicture,
        AskedPast,
        statuses=(400, *GUARDED, 504),
        tag="live",
    )
]
#: Of one organisation so many go to Postgres at a time, fewer than it has connections; others wait.
QUESTIONS_AT_ONCE: Final = 2
#: Of one caller, those that wait and those under way.
QUESTIONS_MAX: Final = 16
_TOO_SLOW: Final = Problem(
    504, "The question took too long", "too-slow", "Ask for a shorter time, for one value, or for one customer."
)
_READ: Final = """
    SELECT dimension, minute, document::text FROM serving.{table}
    WHERE customer_id = %s AND dimension = ANY(%s) AND minute >= %s AND minute < %s
"""


class Past(Protocol):
    """Where minutes come from."""

    async def rows(self, asked: AskedPast, scope: CustomerScope) -> list[Row]:
        """The rows that an answer needs, of all customers those of the scope.

        Raises `PostgresAway`, `NotPublished` or `QueryRefused`, `Wrong` where so much may not be read, and `TimeoutError` where
        Postgres answers and needs too long.
        """
        ...


class PostgresPast:
    """`Past` in the serving database."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def rows(self, asked: AskedPast, scope: CustomerScope) -> list[Row]:
        """See `Past`."""
        read = partial(read_all, asked=asked, scope=scope) if asked.customer == ALL else partial(_read, asked=asked)
        return await ask_in_time(self._postgres, read)


class PastRoutes:
    """HTTP to and from the past."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._questions = InTurn(at_once=QUESTIONS_AT_ONCE, most=QUESTIONS_MAX)

    def add_to(self, routing: Routing) -> None:
        """Adds the route."""
        routing.get("/v1/live/history", self.history, METRICS_OF_ONE_OR_ALL, name="live-history")

    async def history(self, request: web.Request) -> web.Response:
        """The figures of a customer, or of all that the asker may see, in a range of time."""
        try:
            asked = msgspec.convert(dict(request.query), AskedPast, strict=False)
            fields = checked(asked)
            principal = principal_of(request)
            async with self._questions.of(*principal.asker):
                rows = await self._past.rows(asked, principal.scope)
        except (msgspec.ValidationError, Wrong) as error:
            return problem_response(Problem(400, "The question is wrong", "question", str(error)))
        except TooManyQuestions:
            return problem_response(TOO_MANY_QUESTIONS)
        except TimeoutError:
            return problem_response(_TOO_SLOW)
        except PostgresAway:
            return problem_response(Problem(503, "Postgres does not answer", "postgres-away"))
        except NotPublished:
            return problem_response(Problem(503, "Nothing has been landed yet", "unpublished"))
        except QueryRefused:
            return problem_response(Problem(503, "Postgres refuses the query", "refused"))
        return web.Response(body=msgspec.json.encode(assembled(asked, fields, rows)), content_type="application/json")


async def _read(connection: psycopg.AsyncConnection, asked: AskedPast) -> list[Row]:
    statement = _READ.format(table="live_steps" if asked.step_ms == BUCKET_MS else "live_minutes")
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(statement, (asked.customer, [WHOLE, *orders_of(asked.dimension)], *minutes_of(asked)))
        return [Row(*row) for row in await cursor.fetchall()]
