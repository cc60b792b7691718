"""`/v1/open-views?customer=...`: views that are still open, found by their newest beacons and looked up at the processor."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from aiohttp import web

from services.accounts.http.access import VIEWS_OF_ONE, Routing
from services.accounts.http.guard import principal_of
from services.accounts.looks import Audit
from services.accounts.store.audit import Actor
from services.dashboard.arrivals import open_views
from services.dashboard.arrivals.open_views import PLAYS_MAX, AskedOpenViews, Candidate, OpenViews, Search
from services.dashboard.arrivals.reading import BACK_SECONDS, ArrivalsAway, Newest
from services.query.core.problems import Wrong
from services.query.core.question import parsed
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.lookups import LookupsAway, LookupsRefused
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import TOO_MANY_QUESTIONS, problem_response, rate_response
from services.rim.turns.question_limits import InTurn, TooManyQuestions
from services.rim.turns.rates import TooManyRequests
from services.rim.turns.thread_work import until_over
from shared.http.problems import Problem

#: Lookups under way of all who ask.
_AT_ONCE_MAX: Final = 8
#: Questions of one organisation: one after another, so that nobody waits for more than one of each other's; so many may wait.
QUESTIONS_MAX: Final = 16
OPERATIONS: Final = [
    Operation(
        "/v1/open-views",
        "Views of a customer that are still open, of those with the newest beacons",
        OpenViews,
        AskedOpenViews,
        statuses=(400, *GUARDED),
        tag="views",
    )
]


class OpenViewRoutes:
    """HTTP to and from what has just come, and the processor.

    `newest` raises `ArrivalsAway`; `view` is that of `Views`.
    """

    def __init__(
        self,
        newest: Callable[[], Awaitable[tuple[int, Newest]]],
        view: Callable[[str, str], Awaitable[bytes | None]],
        audit: Audit,
        address: Callable[[web.Request], str | None],
    ) -> None:
        self._newest = newest
        self._view = view
        self._audit = audit
        self._address = address
        self._turns = asyncio.Semaphore(_AT_ONCE_MAX)
        self._questions = InTurn(at_once=1, most=QUESTIONS_MAX)

    def add_to(self, routing: Routing) -> None:
        """Adds the route."""
        routing.get("/v1/open-views", self.listed, VIEWS_OF_ONE, name="open-views")

    async def listed(self, request: web.Request) -> web.Response:
        """The open views of one `customer`. A search for a viewer is noted before it is answered."""
        try:
            search = open_views.understood(parsed(AskedOpenViews, list(request.query.items())))
            actor = Actor.of(principal_of(request), self._address(request))
            await self._audit.note(actor, "looked_at_viewer", *open_views.viewers_of(search))
            async with self._questions.of(principal_of(request).organisation_id):
                now_ms, found = await self._newest()
                wanted = await until_over(open_views.candidates, search, found.beacons)
                rows, looked_up = await self._rows(search, wanted.listed)
        except Wrong as refused:
            return problem_response(refused.problem())
        except TooManyRequests as error:
            return rate_response(error)
        except TooManyQuestions:
            return problem_response(TOO_MANY_QUESTIONS)
        except (PostgresAway, NotPublished, QueryRefused):
            return problem_response(Problem(503, "Postgres does not answer", "postgres-away"))
        except ArrivalsAway:
            return problem_response(Problem(503, "Kafka does not answer", "kafka-away"))
        except LookupsAway:
            return problem_response(Problem(503, "Open views cannot be looked up now", "lookups-away"))
        except LookupsRefused:
            return problem_response(Problem(502, "Open views cannot be looked up", "lookups-refused"))
        following = None
        if wanted.has_more or looked_up < len(wanted.listed):
            following = open_views.cursor_behind(search, wanted.listed[looked_up - 1], wanted.until_ms)
        drawn = OpenViews(now_ms, BACK_SECONDS, wanted.count, found.is_cut, looked_up, rows, following)
        return web.Response(body=msgspec.json.encode(drawn), content_type="application/json")

    async def _rows(self, search: Search, listed: Sequence[Candidate]) -> tuple[list[dict[str, Any]], int]:
        """The rows that match, at most those of a page, and how many candidates were looked up until it was full."""
        rows: list[dict[str, Any]] = []
        for first in range(0, len(listed), _AT_ONCE_MAX):
            some = listed[first : first + _AT_ONCE_MAX]
            found = await asyncio.gather(*(self._open_play(search.asked.customer, one.view_id) for one in some))
            for number, row in enumerate(found):
                if row is not None and open_views.matches(search, row):
                    rows.append(row)
                    if len(rows) == search.asked.limit:
                        return rows, first + number + 1
        return rows, len(listed)

    async def _open_play(self, customer_id: str, view_id: str) -> dict[str, Any] | None:
        """The row of the view of this id, while it is open; of a session with several plays, that of the first that is open."""
        for number in range(1, PLAYS_MAX + 1):
            async with self._turns:
                answer = await self._view(customer_id, view_id if number == 1 else f"{view_id}.{number}")
            if answer is None:
                break
            is_over, row = open_views.row_of(answer)
            if not is_over:
                return row
        return None
