"""`/v1/live`: the newest figures, once or whenever they change."""

from typing import Final

import msgspec
from aiohttp import web

from services.accounts.http.access import METRICS, Routing
from services.accounts.http.guard import Guard, principal_of, unknown_customer
from services.dashboard.live.board import LiveBoard
from services.dashboard.live.picture import AskedLive, LivePicture
from services.dashboard.live.streams import LiveStreams, may_see
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import TOO_MANY_QUESTIONS, problem_response
from services.rim.turns.question_limits import QuestionLimit, TooManyQuestions
from shared.http.problems import Problem

#: Of one organisation: so many wait for their pictures.
QUESTIONS_MAX: Final = 32
_STATUSES: Final = (400, *GUARDED)
#: As the API's document describes them.
OPERATIONS: Final = [
    Operation("/v1/live", "The newest figures", LivePicture, AskedLive, statuses=_STATUSES, tag="live"),
    Operation(
        "/v1/live/stream",
        "The newest figures whenever they change: an event with the answer of /v1/live each",
        LivePicture,
        AskedLive,
        media=("text/event-stream",),
        statuses=_STATUSES,
        tag="live",
    ),
]


class LiveRoutes:
    """HTTP to and from the board."""

    def __init__(self, board: LiveBoard, guard: Guard, *, streams_max: int) -> None:
        self._board = board
        self._questions = QuestionLimit(QUESTIONS_MAX)
        self._streams = LiveStreams(board, guard, streams_max=streams_max)

    def add_to(self, routing: Routing) -> None:
        """Adds the routes."""
        routing.get("/v1/live", self.live, METRICS, name="live")
        routing.get("/v1/live/stream", self.stream, METRICS, name="stream")

    async def live(self, request: web.Request) -> web.Response:
        """The newest picture, once."""
        try:
            asked = _asked(request)
        except msgspec.ValidationError as error:
            return problem_response(Problem(400, "The question is wrong", "question", str(error)))
        principal = principal_of(request)
        scope = principal.scope
        if not may_see(asked, scope):
            return unknown_customer()
        await self._board.wait_for_slices(scope, asked.customer, asked.slice)
        try:
            with self._questions.of(principal.organisation_id):
                picture = await self._board.picture(principal.asker, scope, asked.customer, asked.slice, asked.order)
        except TooManyQuestions:
            return problem_response(TOO_MANY_QUESTIONS)
        return web.Response(body=picture, content_type="application/json")

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """The picture whenever it changes, as server-sent events."""
        try:
            asked = _asked(request)
        except msgspec.ValidationError as error:
            return problem_response(Problem(400, "The question is wrong", "question", str(error)))
        if not may_see(asked, principal_of(request).scope):
            return unknown_customer()
        if self._board.is_closed:
            return problem_response(Problem(503, "The server is stopping", "stopping"))
        return await self._streams.send(request, asked)


def _asked(request: web.Request) -> AskedLive:
    return msgspec.convert(dict(request.query), AskedLive, strict=False)
