"""`/v1/errors`, `/v1/titles`, `/v1/titles/{video_id}`, `/v1/concurrency`: what is read from rows and figures together."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from aiohttp import web

from services.accounts.core.roles import Permission
from services.accounts.http.access import METRICS, Routing
from services.accounts.http.guard import principal_of
from services.query.core.answer import About, Overall, Timeseries
from services.query.core.problems import wrong
from services.query.core.question import Question, parsed
from services.query.core.resources.errors import errors
from services.query.core.resources.errors.errors import AskedErrors, ErrorList
from services.query.core.resources.titles import concurrency, title, titles
from services.query.core.resources.titles.concurrency import AskedConcurrency, Concurrency
from services.query.core.resources.titles.title import AskedTitle, TitleDetail
from services.query.core.resources.titles.titles import AskedTitles, TitleList
from services.query.core.sql.statements import Statement
from services.query.http.desk import Desk, sent
from services.query.http.questions import QUESTION
from services.query.listing import Lists
from services.query.listing import Reader as ListsReader
from services.rim.http.openapi import Operation

_ERRORS: Final = Operation(
    "/v1/errors", "Error codes: share, texts, where, new since", ErrorList, AskedErrors, statuses=QUESTION, tag="errors"
)
_TITLES: Final = Operation(
    "/v1/titles", "Videos by audience and quality", TitleList, AskedTitles, statuses=QUESTION, tag="titles"
)
_TITLE: Final = Operation(
    "/v1/titles/{video_id}", "One video over time", TitleDetail, AskedTitle, statuses=QUESTION, tag="titles"
)
_CONCURRENCY: Final = Operation(
    *("/v1/concurrency", "Viewers at a time of several videos", Concurrency, AskedConcurrency),
    statuses=QUESTION,
    tag="titles",
)
OPERATIONS: Final = [_ERRORS, _TITLES, _TITLE, _CONCURRENCY]


class Reader(ListsReader, Protocol):
    """What answers questions, and reads rows."""

    async def first_rows(
        self, question: Question, asked: Sequence[Statement], rows_max: int
    ) -> tuple[list[dict[str, Any]], About]:
        """The rows of statements one after the other until there are so many, all of one moment; raises the same."""
        ...


class Resources:
    """The routes."""

    def __init__(self, desk: Desk, reader: Reader) -> None:
        self._desk = desk
        self._reader = reader

    def add_to(self, routing: Routing) -> None:
        """Adds them."""
        handlers = (
            (_ERRORS, self.errors),
            (_TITLES, self.titles),
            (_TITLE, self.title),
            (_CONCURRENCY, self.concurrency),
        )
        for operation, handler in handlers:
            routing.get(operation.path, self._desk.answering(handler), METRICS, name=operation.name)

    async def errors(self, request: web.Request) -> web.Response:
        """A page of codes, those with the most views first; with single views for callers that may see these."""
        caller, may_see_views = self._desk.caller(request), principal_of(request).may(Permission.READ_VIEWS)
        given = parsed(AskedErrors, list(request.query.items()))
        asked = errors.understood(given, caller.admit, self._desk.now_ms(), days_max=self._desk.days_max)
        async with self._desk.turn(caller, "errors"):
            await self._desk.look(request, asked.question)
            found = await Lists(self._reader).errors(asked)
        return sent(found if may_see_views else errors.without_samples(found))

    async def titles(self, request: web.Request) -> web.Response:
        """A page of titles by one of their figures."""
        caller = self._desk.caller(request)
        given = parsed(AskedTitles, list(request.query.items()))
        asked = titles.understood(given, caller.admit, self._desk.now_ms(), days_max=self._desk.days_max)
        async with self._desk.turn(caller, "titles"):
            await self._desk.look(request, asked.question)
            return sent(await Lists(self._reader).titles(asked))

    async def title(self, request: web.Request) -> web.Response:
        """One title."""
        caller, video = self._desk.caller(request), request.match_info["video_id"]
        if not video:
            raise wrong("video_id", "the id of a video")
        given = parsed(AskedTitle, list(request.query.items()))
        asked = title.understood_title(video, given, caller.admit, self._desk.now_ms(), days_max=self._desk.days_max)
        async with self._desk.turn(caller, "title"):
            await self._desk.look(request, asked.rows)
            overall, quality = await self._reader.answer(asked.overall), await self._reader.answer(asked.quality)
            rows, about = await self._reader.rows(asked.rows, lambda _: title.asked_of(asked))
        assert isinstance(overall, Overall)
        assert isinstance(quality, Timeseries)
        return sent(title.answer(asked, overall, quality, rows, about))

    async def concurrency(self, request: web.Request) -> web.Response:
        """How many views of several titles were open at a time."""
        caller = self._desk.caller(request)
        given = parsed(AskedConcurrency, list(request.query.items()))
        asked = concurrency.understood(given, caller.admit, self._desk.now_ms(), days_max=self._desk.days_max)
        async with self._desk.turn(caller, "concurrency"):
            await self._desk.look(request, asked.rows)
            (rows,), about = await self._reader.rows(asked.rows, lambda _: [concurrency.asked_of(asked)])
            videos = concurrency.videos_of(asked, rows)
            (names,), _ = await self._reader.rows(
                titles.names_question(asked.rows), lambda one: [titles.names_of(one, videos)]
            )
        return sent(concurrency.answer(asked, rows, names, about))
