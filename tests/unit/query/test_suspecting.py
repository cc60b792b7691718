"""Suspects are found one question at a time: organisations take turns, and the callers of each."""

import asyncio
from typing import Any

from services.query.core.customers import Customers
from services.query.core.question import Question, parsed
from services.query.core.suspects.question import AskedSuspects, understood
from services.query.rim.engine import CALLER
from services.query.suspecting import Suspecting
from tests.unit.query.parts.recounting import T0_MS


class Slow:
    """Says who is answered, and that nothing can be read, once `may_answer`."""

    def __init__(self) -> None:
        self.answered: list[str] = []
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def reading(self, _: Question) -> Any:
        self.answered.append("".join(CALLER.get()))
        self.was_asked.set()
        await self.may_answer.wait()
        raise EOFError


async def test_an_organisation_waits_for_each_other_one_once_however_many_callers_ask() -> None:
    source = Slow()
    suspecting = Suspecting(source)  # type: ignore[arg-type]
    asked = parsed(AskedSuspects, [("metric", "playback_failure_fraction")])
    question = understood(asked, lambda _: Customers(("acme",)), T0_MS)

    async def ask(caller: str) -> None:
        CALLER.set((caller[0], caller[1:]))
        try:
            await suspecting.suspects(question)
        except EOFError:
            return

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        for caller in ("ak", "ak", "al", "am", "b", "b"):
            tasks.create_task(ask(caller))
        await source.was_asked.wait()
        source.may_answer.set()
    assert source.answered == ["ak", "ak", "b", "al", "b", "am"]
