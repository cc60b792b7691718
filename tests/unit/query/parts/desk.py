"""The HTTP application of the query service before answers that a test sets, and a client to it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential
from services.accounts.http.identities import Identities
from services.accounts.looks import Audit
from services.query.core.answer import About, Answer, Figure, Overall, Span
from services.query.core.filters import Filter
from services.query.core.question import Question
from services.query.core.sql.statements import Statement
from services.query.core.suspects.answer import Looked, Suspect, SuspectCondition, Suspects
from services.query.core.suspects.measured import Threshold
from services.query.core.suspects.question import SuspectsQuestion
from services.query.http.app import Sources, make_app
from services.query.rim.engine import CALLER
from tests.unit.dashboard.door import METRICS_TOKEN, Known, cookies
from tests.unit.query.parts.door import NotedLooks, Nowhere, door

NOW_MS = 1_774_569_600_000
Asking = Callable[[Question], list[Statement]]
ABOUT = About(Span(0, 1), ["acme"], [], NOW_MS, is_exact=True, has_hot_rows=True)


_FIGURE = Figure(0.5, 4)
SUSPECT = Suspect(
    [SuspectCondition("cdn", None, "(unknown)")],
    Filter(dimension="cdn", values=(None,)),
    *(_FIGURE, _FIGURE, _FIGURE, _FIGURE),
    excess=2.5,
    factor=3.0,
    surprise=9.0,
)
SUSPECTS = Suspects(
    *(ABOUT, Span(0, 1), "usual", "playback_failure_fraction", "playback failures", "fraction"),
    Threshold("below", 61.5, "score", "usual"),
    ["cdn"],
    *(_FIGURE, _FIGURE),
    Looked(8, 8),
    [SUSPECT],
    [],
)


class FakeAnswers:
    """Returns what the test sets, and remembers the questions."""

    def __init__(self) -> None:
        self.found: Answer | Exception = Overall(ABOUT, 3, {"views": Figure(3, 3)})
        self.asked: list[Question] = []
        self.callers: list[tuple[str, str]] = []
        self.holds: asyncio.Event | None = None
        self.has_begun = asyncio.Event()
        self.was_cancelled = False

    async def suspects(self, question: SuspectsQuestion) -> Suspects:
        self.asked.append(question.now)
        return SUSPECTS

    async def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        self.callers.append(CALLER.get())
        self.has_begun.set()
        if self.holds is not None:
            try:
                await self.holds.wait()
            except asyncio.CancelledError:
                self.was_cancelled = True
                raise
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    async def rows(self, question: Question, asking: Asking) -> tuple[list[list[dict[str, Any]]], About]:
        await self.answer(question)
        return [[] for _ in asking(question)], ABOUT

    async def first_rows(
        self, question: Question, asked: Sequence[Statement], rows_max: int
    ) -> tuple[list[dict[str, Any]], About]:
        raise NotImplementedError


class Desk:
    """The application at work, and a client to it."""

    def __init__(self, client: Any, answers: FakeAnswers, known: Identities, audit: Audit) -> None:
        assert isinstance(known, Known)
        assert isinstance(audit, NotedLooks)
        self.audit = audit
        self.client = client
        self.known = known
        self.answers = answers

    async def get(self, path: str, who: Credential | None = METRICS_TOKEN, **given: str) -> tuple[int, dict[str, Any]]:
        async with self.client.get(path, params=given, headers=headers_of(who)) as response:
            kind = "application/json" if response.status == 200 else "application/problem+json"
            assert response.headers["Cache-Control"] == "no-store"
            return response.status, await response.json(content_type=kind)


def headers_of(who: Credential | None) -> dict[str, str]:
    if who is None:
        return {}
    if who.kind == "t":
        return {"Authorization": f"Bearer {who.text}"}
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies(who).items())}


@contextlib.asynccontextmanager
async def desk(
    *, seconds_max: float = 20, caller_questions_max: int = 2, requests_per_second: float = 1_000
) -> AsyncIterator[Desk]:
    answers, at_door = FakeAnswers(), door()
    app = make_app(
        Sources(answers, answers, Nowhere()),
        at_door,
        caller_questions_max=caller_questions_max,
        caller_requests_per_second=requests_per_second,
        seconds_max=seconds_max,
        days_max=400,
        now_ms=lambda: NOW_MS,
    )
    async with TestClient(TestServer(app)) as client:
        yield Desk(client, answers, at_door.identities, at_door.audit)
