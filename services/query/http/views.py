"""`/v1/views`, `/v1/views/{view_id}` and what its beacons say: views, found by search or by id. Each look at one is noted."""

import csv
import io
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec
import structlog
from aiohttp import web

from services.accounts.http.access import VIEWS, VIEWS_OF_ONE, Routing
from services.accounts.looks import Audit
from services.query.core.question import parsed
from services.query.core.resources import search
from services.query.core.resources.search import AskedViews, ViewList
from services.query.core.resources.view import one_view, requests_of_view, timeline_of_view
from services.query.core.resources.view.one_view import (
    AskedBeacons,
    AskedView,
    BeaconList,
    FoundIn,
    Recording,
    State,
    ViewDetail,
)
from services.query.core.resources.view.requests_of_view import AskedRequests, RequestList
from services.query.core.resources.view.timeline_of_view import TimelineOfView
from services.query.http.desk import Desk, sent
from services.query.http.questions import QUESTION
from services.query.http.resources import Reader
from services.query.rim.processor import FoundView, ProcessorAway
from services.query.rim.single import OfBeacons, Place, Wanted
from services.query.rim.warehouse import WarehouseAway, WarehouseNew
from services.rim.database.pool import NotPublished, PostgresAway
from services.rim.http.cells import plain
from services.rim.http.openapi import Operation
from services.rim.http.problems import problem_response
from services.rim.turns.question_limits import OneAtATime
from services.rim.turns.thread_work import CpuTime
from shared.http.problems import Problem

log = structlog.get_logger(__name__)

T = TypeVar("T")

CSV: Final = "text/csv"
VIEW_CHARS_MAX: Final = 100
#: So long a fold waits for another one.
FOLD_WAIT_SECONDS: Final = 2.0
_VIEWS: Final = Operation(
    "/v1/views", "Search for views", ViewList, AskedViews, media=(CSV,), statuses=QUESTION, tag="views"
)
_VIEW: Final = Operation("/v1/views/{view_id}", "One view", ViewDetail, AskedView, statuses=QUESTION, tag="views")
_BEACONS: Final = Operation(
    "/v1/views/{view_id}/beacons", "The beacons behind a view", BeaconList, AskedBeacons, statuses=QUESTION, tag="views"
)
_REQUESTS: Final = Operation(
    "/v1/views/{view_id}/requests",
    "The player's requests for media, from the beacons behind a view",
    RequestList,
    AskedRequests,
    statuses=QUESTION,
    tag="views",
)
_TIMELINE: Final = Operation(
    "/v1/views/{view_id}/timeline",
    "The whole timeline of a view, from the beacons behind it",
    TimelineOfView,
    AskedView,
    statuses=QUESTION,
    tag="views",
)
OPERATIONS: Final = [_VIEWS, _VIEW, _BEACONS, _REQUESTS, _TIMELINE]


class Lookup(Protocol):
    """Who knows open views."""

    async def view(self, customer_id: str, view_id: str) -> FoundView | None:
        """The view as it is now; raises `ProcessorAway`."""
        ...


class Single(Protocol):
    """Where rows of finished views are: see `services.query.rim.single`."""

    async def hot(self, place: Place) -> dict[str, Any] | None: ...
    async def landed(self, place: Place) -> dict[str, Any] | None: ...
    async def beacons(self, wanted: Wanted, make: OfBeacons[T]) -> T: ...
    async def recording(self, customer_id: str, session_id: str) -> tuple[int, int, int] | None: ...


class ViewRoutes:
    """The routes. `lookup` None: the processor's lookups are off, and open views are not found."""

    def __init__(self, desk: Desk, reader: Reader, single: Single, lookup: Lookup | None, audit: Audit) -> None:
        self._desk = desk
        self._reader = reader
        self._single = single
        self._lookup = lookup
        self._audit = audit
        #: Threads share one interpreter: several folds at a time would take the time of each other, and of all who ask.
        self._folds = OneAtATime(FOLD_WAIT_SECONDS)

    def add_to(self, routing: Routing) -> None:
        """Adds them."""
        routing.get(_VIEWS.path, self._desk.answering(self.search), VIEWS, name=_VIEWS.name)
        routing.get(_VIEW.path, self._desk.answering(self.view), VIEWS_OF_ONE, name=_VIEW.name)
        routing.get(_BEACONS.path, self._desk.answering(self.beacons), VIEWS_OF_ONE, name=_BEACONS.name)
        routing.get(_REQUESTS.path, self._desk.answering(self.requests), VIEWS_OF_ONE, name=_REQUESTS.name)
        routing.get(_TIMELINE.path, self._desk.answering(self.timeline), VIEWS_OF_ONE, name=_TIMELINE.name)

    async def search(self, request: web.Request) -> web.Response:
        """A page of views."""
        caller = self._desk.caller(request)
        given = parsed(AskedViews, list(request.query.items()))
        asked = search.understood(given, caller.admit, self._desk.now_ms(), days_max=self._desk.days_max)
        is_csv = given.format == "csv" or (not given.format and _wants_csv(request))
        async with self._desk.turn(caller, "views"):
            if is_csv:
                await self._audit.note(self._desk.actor(request), "exported_views", given.customer or "")
            await self._desk.look(request, asked.question)
            rows, about = await self._reader.first_rows(asked.question, search.in_parts(asked), asked.limit + 1)
        found = search.page(asked, rows, about)
        if is_csv:
            return as_csv(request, found)
        return sent(found)

    async def view(self, request: web.Request) -> web.Response:
        """One view, open or finished."""
        caller, given = self._desk.caller(request), parsed(AskedView, list(request.query.items()))
        place = Place(given.customer, request.match_info["view_id"], given.day)
        if not 0 < len(place.view_id) <= VIEW_CHARS_MAX:
            return _no_view()
        async with self._desk.turn(caller, "view"):
            away: list[str] = []
            found = await self._found(place, away)
            if found is None:
                return problem_response(_away(away)) if away else _no_view()
            # What cannot be noted is not shown.
            await self._audit.note(self._desk.actor(request), "looked_at_view", f"{place.customer_id}/{place.view_id}")
            row, state, found_in = found
            recording = await self._recording(place.customer_id, row, away)
        return sent(one_view.detail(row, state, found_in, recording, away))

    async def beacons(self, request: web.Request) -> web.Response:
        """The beacons behind a view, as they came."""
        given = parsed(AskedBeacons, list(request.query.items()))
        place = Place(given.customer, request.match_info["view_id"], given.day)
        page, behind = one_view.page_of(place.view_id, given)

        async def read(row: dict[str, Any]) -> BeaconList:
            wanted = _beacons_of(place, row, given.limit, one_view.BEACONS_BYTES_MAX, behind)
            return await self._single.beacons(wanted, partial(one_view.beacon_list, place.view_id, page))

        return await self._of_beacons(request, place, "beacons", read)

    async def requests(self, request: web.Request) -> web.Response:
        """The player's requests for media, of the first beacons behind a view."""
        given = parsed(AskedRequests, list(request.query.items()))
        place = Place(given.customer, request.match_info["view_id"], given.day)
        page, behind = requests_of_view.page_of(place.view_id, given)

        async def read(row: dict[str, Any]) -> RequestList:
            wanted = _beacons_of(place, row, one_view.BEACONS_READ_MAX, one_view.BYTES_READ_MAX)
            return await self._single.beacons(wanted, partial(requests_of_view.request_list, row, page, behind))

        return await self._of_beacons(request, place, "requests", read)

    async def timeline(self, request: web.Request) -> web.Response:
        """The timeline of a view, of the first beacons behind it."""
        given = parsed(AskedView, list(request.query.items()))
        place = Place(given.customer, request.match_info["view_id"], given.day)

        async def read(row: dict[str, Any]) -> TimelineOfView:
            wanted = _beacons_of(place, row, one_view.BEACONS_READ_MAX, one_view.BYTES_READ_MAX)
            time = CpuTime(timeline_of_view.FOLD_SECONDS_MAX)
            async with self._folds.held():
                rows, is_cut = await self._single.beacons(wanted, _as_read)
                # Not on a thread of the engine's: figures need them.
                return await time.spend(timeline_of_view.timeline, row, time.is_left, rows, is_cut)

        return await self._of_beacons(request, place, "timeline", read)

    async def _of_beacons(
        self, request: web.Request, place: Place, what: str, read: Callable[[dict[str, Any]], Awaitable[msgspec.Struct]]
    ) -> web.Response:
        """What `read` makes of the beacons behind a row, once the look at them is noted. Raises `WarehouseNew`."""
        away: list[str] = []
        async with self._desk.turn(self._desk.caller(request), what):
            found = await self._found(place, away) if 0 < len(place.view_id) <= VIEW_CHARS_MAX else None
            if found is None:
                return problem_response(_away(away)) if away else _no_view()
            await self._audit.note(
                self._desk.actor(request), f"looked_at_{what}", f"{place.customer_id}/{place.view_id}"
            )
            made = await read(found[0])
        return sent(made)

    async def _found(self, place: Place, away: list[str]) -> tuple[dict[str, Any], State, FoundIn] | None:
        """The newest row there is, its state, and where it was; `away` gets who did not answer. Raises `WarehouseNew`."""
        # Where nobody says that a view is closed, its row may still change.
        state: State = "finished"
        if self._lookup is not None:
            try:
                known = await self._lookup.view(place.customer_id, place.view_id)
                if known is not None and known.row is not None:
                    if place.day in (None, known.row.get("day")):
                        return known.row, known.state, "processor"
                    # It is another view of this id, so that of the day is over.
                    known = None
                state = "closed" if known is None else known.state
            except ProcessorAway:
                away.append("processor")
        try:
            if (row := await self._single.hot(place)) is not None:
                return row, state, "hot_rows"
        except (PostgresAway, NotPublished):
            away.append("postgres")
        try:
            if (row := await self._single.landed(place)) is not None:
                return row, state, "warehouse"
        except WarehouseAway as error:
            # Of a new installation the desk says so, unless somebody else is to blame.
            if isinstance(error, WarehouseNew) and not away:
                raise
            away.append("warehouse")
        return None

    async def _recording(self, customer_id: str, row: dict[str, Any], away: list[str]) -> Recording | None:
        session = one_view.session_of(row)
        if session is None:
            return None
        try:
            found = await self._single.recording(customer_id, session)
        except WarehouseAway:
            away.append("warehouse")
            return None
        if found is None:
            return None
        href = f"/replay?{urlencode({'customer': customer_id, 'session': session}, quote_via=quote)}"
        return Recording(session, *found, href)


def _beacons_of(
    place: Place, row: dict[str, Any], rows_max: int, bytes_max: int, after: tuple[int, int] | None = None
) -> Wanted:
    view_id = one_view.beacons_key(row)
    return Wanted(place.customer_id, view_id, row["first_append_ms"], row["last_append_ms"], rows_max, bytes_max, after)


def _as_read(rows: list[dict[str, Any]], is_cut: bool) -> tuple[list[dict[str, Any]], bool]:
    return rows, is_cut


def _no_view() -> web.Response:
    return problem_response(Problem(404, "There is no such view", "unknown-view"))


def _away(parts: Sequence[str]) -> Problem:
    """None was found, but not everybody was asked."""
    return Problem(503, f"Not known: no answer from {', '.join(parts)}", f"{parts[0]}-away")


def _wants_csv(request: web.Request) -> bool:
    """Whether CSV is accepted, and JSON is not preferred."""
    accepted = [one.partition(";")[0].strip().lower() for one in request.headers.get("Accept", "").split(",")]
    return CSV in accepted and "application/json" not in accepted[: accepted.index(CSV)]


def as_csv(request: web.Request, found: ViewList) -> web.Response:
    """A page as CSV (RFC 4180); the next one is a link (RFC 8288)."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(found.columns)
    for view in found.views:
        writer.writerow([_cell(view[column]) for column in found.columns])
    headers = {}
    if found.next is not None:
        following = request.rel_url.update_query(cursor=found.next)
        headers["Link"] = f'<{following}>; rel="next"'
    return web.Response(body=text.getvalue().encode(), content_type=CSV, charset="utf-8", headers=headers)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    return str(value).lower() if isinstance(value, bool) else value
