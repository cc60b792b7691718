"""What every resource of the API is given: who asks, their turn, the deadline, and the problem that an error is."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

from services.accounts.core.roles import Permission
from services.accounts.http.guard import principal_of, refused
from services.accounts.looks import Audit
from services.accounts.store.audit import Actor
from services.query.answering import TooManyRows, Unsettled
from services.query.core.problems import Wrong
from services.query.core.question import Question
from services.query.rim.engine import CALLER, TooLarge
from services.query.rim.warehouse import WarehouseAway, WarehouseNew
from services.query.scope import Caller, UnknownCustomer
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.problems import TOO_MANY_QUESTIONS, UNKNOWN_CUSTOMER, problem_response, rate_response
from services.rim.telemetry import metrics
from services.rim.turns.question_limits import QuestionLimit, TooManyQuestions
from services.rim.turns.rates import TooManyRequests
from shared.http.peer import Network, client_address
from shared.http.problems import Problem
from shared.metrics import QUERY_ANSWER_SECONDS


class NotAllowed(Exception):
    """The caller may not ask this. It has the permission that is needed."""

    def __init__(self, needed: Permission) -> None:
        super().__init__(needed)
        self.needed: Final = needed


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: Of what a question may raise, the problem that its answer is.
_PROBLEMS: Final[dict[type[Exception], Problem]] = {
    UnknownCustomer: UNKNOWN_CUSTOMER,
    TooManyRows: Problem(422, "The question reads too many views", "too-many-views", "Ask for a shorter range."),
    TooLarge: Problem(
        422, "The question needs too much memory", "too-large", "Ask for fewer groups or a shorter range."
    ),
    TooManyQuestions: TOO_MANY_QUESTIONS,
    PostgresAway: Problem(503, "Postgres does not answer", "postgres-away"),
    NotPublished: Problem(503, "Finished views are not counted yet", "not-published"),
    # Before the kind that it is of.
    WarehouseNew: Problem(
        503, "No finished view is stored yet", "warehouse-new", "The store for them is made at the first start."
    ),
    WarehouseAway: Problem(503, "The warehouse cannot be read", "warehouse-away"),
    Unsettled: Problem(503, "The warehouse changes too fast", "unsettled"),
    QueryRefused: Problem(500, "Postgres refuses the statement", "refused"),
    TimeoutError: Problem(504, "The question took too long", "too-slow", "Ask for a shorter range."),
}


class Desk:
    """Shared by the resources of one application."""

    def __init__(
        self,
        limit: QuestionLimit,
        audit: Audit,
        *,
        seconds_max: float,
        days_max: int,
        now_ms: Callable[[], int],
        proxies: Sequence[Network] = (),
    ) -> None:
        self._limit = limit
        self._audit = audit
        self._seconds_max = seconds_max
        self._proxies = tuple(proxies)
        self.days_max: Final = days_max
        self.now_ms: Final = now_ms

    def caller(self, request: web.Request) -> Caller:
        """Who asks."""
        return Caller.of(principal_of(request))

    def actor(self, request: web.Request) -> Actor:
        """Who asks, as the audit log has it."""
        address = client_address(request.remote, request.headers.getall("X-Forwarded-For", []), self._proxies)
        # A proxy passes on what a client claims.
        shown = address[:64] if address and address.isascii() and address.isprintable() else None
        return Actor.of(principal_of(request), shown)

    async def look(self, request: web.Request, question: Question) -> None:
        """Notes at which viewers the caller looks. What tells viewers apart is for those who may see single views.

        Raises `NotAllowed`, and as `Audit.note`: what cannot be noted is not shown.
        """
        if question.is_of_viewers:
            need(request, Permission.READ_VIEWS)
        await self._audit.note(self.actor(request), "looked_at_viewer", *question.viewers)

    @asynccontextmanager
    async def turn(self, caller: Caller, shape: str) -> AsyncIterator[None]:
        """A turn of the caller's until the deadline, measured by its shape. Raises `TooManyQuestions` or `TimeoutError`."""
        began = time.perf_counter()
        with self._limit.of(caller.name):
            # What the engine is asked meanwhile takes the caller's turns.
            known = CALLER.set((caller.organisation, caller.name))
            try:
                async with asyncio.timeout(self._seconds_max):
                    yield
            finally:
                CALLER.reset(known)
        metrics.histogram(QUERY_ANSWER_SECONDS).labels(shape).observe(time.perf_counter() - began)

    def answering(self, handler: Handler) -> Handler:
        """`handler`, whose errors are problems."""

        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                return await handler(request)
            except Wrong as error:
                return problem_response(error.problem())
            except NotAllowed as error:
                return refused(403, "permission", f"this needs the permission {error.needed}")
            except TooManyRequests as error:
                return rate_response(error)
            except tuple(_PROBLEMS) as error:
                return problem_response(next(one for cause, one in _PROBLEMS.items() if isinstance(error, cause)))

        return answer


def need(request: web.Request, permission: Permission) -> None:
    """Raises `NotAllowed` for a caller without the permission."""
    if not principal_of(request).may(permission):
        raise NotAllowed(permission)


def sent(what: msgspec.Struct, *, status: int = 200) -> web.Response:
    """An answer as JSON."""
    return web.Response(body=msgspec.json.encode(what), content_type="application/json", status=status)
