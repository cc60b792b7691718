"""Lists that several questions make: codes of errors, and titles."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from services.query.answering import TooManyRows
from services.query.core.answer import About, Answer, Breakdown
from services.query.core.question import Question
from services.query.core.resources.errors import answer as errors_answer
from services.query.core.resources.errors import errors
from services.query.core.resources.errors import seen as errors_seen
from services.query.core.resources.errors.errors import ErrorList, ErrorsQuestion
from services.query.core.resources.titles import titles
from services.query.core.resources.titles.titles import TitleList, TitlesQuestion
from services.query.core.sql.statements import Statement


class Reader(Protocol):
    """What answers questions and reads rows, as `Answering` does."""

    async def answer(self, question: Question) -> Answer:
        """The answer; raises what its sources raise."""
        ...

    async def rows(
        self, question: Question, asked: Callable[[Question], Sequence[Statement]]
    ) -> tuple[list[list[dict[str, Any]]], About]:
        """The rows of each statement, all of one moment; raises the same."""
        ...


class Lists:
    """Raises what its reader raises."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def errors(self, asked: ErrorsQuestion) -> ErrorList:
        """The codes that a question lists. Days before the range with too many views are left out."""
        try:
            (seen,), _ = await self._reader.rows(asked.seen, lambda _: [errors_seen.asked_of(asked.seen)])
        except TooManyRows:
            rows, about = await self._reader.rows(asked.question, lambda _: errors.asked_of(asked, []))
            return errors_answer.answer(asked, rows, about, is_seen=False)
        rows, about = await self._reader.rows(asked.question, lambda _: errors.asked_of(asked, seen))
        return errors_answer.answer(asked, rows, about)

    async def titles(self, asked: TitlesQuestion) -> TitleList:
        """The titles that a question lists, with their names."""
        question = asked.question
        found = await self._reader.answer(question)
        assert isinstance(found, Breakdown)
        videos = titles.videos_of(found)
        (names,), _ = await self._reader.rows(
            titles.names_question(question), lambda one: [titles.names_of(one, videos)]
        )
        return titles.answer(asked, found, names)
