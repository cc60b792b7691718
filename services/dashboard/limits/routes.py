"""`/limits?customer=...`: the page of one customer's limits; and `/v1/limits`, the question that it asks."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from services.accounts.http.access import METRICS_OF_ONE, PAGE, Routing
from services.accounts.http.guard import principal_of, unknown_customer
from services.dashboard.limits.queries import AskedLimits, CustomerLimits, LimitsSource
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import TOO_MANY_QUESTIONS, problem_response
from services.rim.turns.question_limits import InTurn, TooManyQuestions
from shared.http.problems import Problem

#: Questions of one organisation go to Postgres one after another; of one caller so many may wait.
QUESTIONS_MAX: Final = 16
_PAGE: Final = Path(__file__).parents[1] / "static" / "pages" / "limits.html"
OPERATIONS: Final = [
    Operation(
        "/v1/limits",
        "The limits of a customer, and what each of them refused in the last 24 hours",
        CustomerLimits,
        AskedLimits,
        statuses=(400, *GUARDED),
        tag="customers",
    )
]


class LimitsRoutes:
    """HTTP to and from the limits; nothing is computed here."""

    def __init__(self, source: LimitsSource, now_ms: Callable[[], int]) -> None:
        self._source = source
        self._now_ms = now_ms
        self._questions = InTurn(at_once=1, most=QUESTIONS_MAX)

    def add_to(self, routing: Routing) -> None:
        """Adds the routes."""
        routing.get("/limits", self.page, PAGE, name="limits-page")
        routing.get("/v1/limits", self.limits, METRICS_OF_ONE, name="limits")

    async def page(self, _: web.Request) -> web.FileResponse:
        """The page of one `customer`."""
        return web.FileResponse(_PAGE)

    async def limits(self, request: web.Request) -> web.Response:
        """The limits of one `customer`, and what they refused in the last 24 hours."""
        try:
            asked = msgspec.convert(dict(request.query), AskedLimits, strict=False)
        except msgspec.ValidationError as error:
            return problem_response(Problem(400, "The question is wrong", "question", str(error)))
        try:
            async with self._questions.of(*principal_of(request).asker):
                found = await self._source.of(asked.customer, self._now_ms())
        except TooManyQuestions:
            return problem_response(TOO_MANY_QUESTIONS)
        except PostgresAway:
            return problem_response(Problem(503, "Postgres does not answer", "postgres-away"))
        except NotPublished:
            detail = "Collectors let every key in, or DASHBOARD_CUSTOMERS_DSN names another database than they read."
            return problem_response(Problem(404, "There is no table of customers", "customers-off", detail))
        except QueryRefused:
            return problem_response(Problem(503, "Postgres refuses the query", "refused"))
        if found is None:
            return unknown_customer()
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")
