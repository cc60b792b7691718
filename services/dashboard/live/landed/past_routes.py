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
from services.dashboard.live.landed.past_of_all import read_all, read_value
from services.rim.database.pool import NotPublished, Postgres, PostgresAway, QueryRefused
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import TOO_MANY_QUESTIONS, problem_response
from services.rim.turns.fair_turns import FairTurns
from services.rim.turns.question_limits import InTurn, TooManyQuestions
from services.rim.turns.thread_work import until_over
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
#: Of the minutes of one customer by all values of a dimension, for one answer: a day by hundreds of values. A megabyte takes up to
#: 40 ms of CPU.
BYTES_MAX: Final = 128 * 1024 * 1024
#: What one statement reads: a few megabytes, as a rule.
_MINUTES_AT_ONCE: Final = 4 * 60
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
        if asked.customer == ALL:
            return await ask_in_time(self._postgres, partial(read_all, asked=asked, scope=scope))
        return await ask_in_time(self._postgres, partial(read_value if asked.value else read_values, asked=asked))


class PastRoutes:
    """HTTP to and from the past."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._questions = InTurn(at_once=QUESTIONS_AT_ONCE, most=QUESTIONS_MAX)
        #: Of what answers are made of. Threads are shared with what checks passwords.
        self._making = FairTurns(1, of_one=1)

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
                # Seconds of CPU, where much is asked for: others are answered meanwhile.
                async with self._making.turn(*principal.asker):
                    body = await until_over(_encoded, asked, fields, rows)
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
        return web.Response(body=body, content_type="application/json")


def _encoded(asked: AskedPast, fields: list[str], rows: list[Row]) -> bytes:
    return msgspec.json.encode(assembled(asked, fields, rows))


async def read_values(connection: psycopg.AsyncConnection, asked: AskedPast) -> list[Row]:
    """The minutes of one customer, by all values. Raises `Wrong` where these are too much."""
    statement = _READ.format(table="live_steps" if asked.step_ms == BUCKET_MS else "live_minutes")
    dimensions, (first, end) = [WHOLE, *orders_of(asked.dimension)], minutes_of(asked)
    rows: list[Row] = []
    size = 0
    async with connection.cursor(row_factory=tuple_row) as cursor:
        for minute in range(first, end, _MINUTES_AT_ONCE):
            await cursor.execute(statement, (asked.customer, dimensions, minute, min(end, minute + _MINUTES_AT_ONCE)))
            found = [Row(*row) for row in await cursor.fetchall()]
            rows += found
            size += sum(len(row.document) for row in found)
            if size > BYTES_MAX:
                raise Wrong(
                    f"{asked.customer} has too many values of {asked.dimension} in these {end - first} minutes:"
                    " ask for a shorter time, or for one value"
                )
    return rows
