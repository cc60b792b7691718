"""Ranked suspects: the resource."""

from typing import Final, Protocol

from aiohttp import web

from services.accounts.http.access import METRICS, Routing
from services.query.core.question import parsed
from services.query.core.suspects.answer import Suspects
from services.query.core.suspects.question import AskedSuspects, SuspectsQuestion, understood
from services.query.http.desk import Desk, sent
from services.query.http.questions import QUESTION
from services.rim.http.openapi import Operation

SUSPECTS: Final = Operation(
    "/v1/suspects",
    "Which cohorts explain that a metric is worse than usual",
    Suspects,
    AskedSuspects,
    statuses=QUESTION,
)


class Suspecting(Protocol):
    """What finds suspects."""

    async def suspects(self, question: SuspectsQuestion) -> Suspects:
        """The answer; raises what `desk` has a problem for."""
        ...


class SuspectsResource:
    """The route."""

    def __init__(self, desk: Desk, suspecting: Suspecting) -> None:
        self._desk = desk
        self._suspecting = suspecting

    def add_to(self, routing: Routing) -> None:
        """Adds it."""
        routing.get(SUSPECTS.path, self._desk.answering(self._asked), METRICS, name=SUSPECTS.name)

    async def _asked(self, request: web.Request) -> web.Response:
        caller = self._desk.caller(request)
        asked = parsed(AskedSuspects, list(request.query.items()))
        question = understood(asked, caller.admit, self._desk.now_ms(), days_max=self._desk.days_max)
        async with self._desk.turn(caller, "suspects"):
            await self._desk.look(request, question.now)
            answer = await self._suspecting.suspects(question)
        return sent(answer)
