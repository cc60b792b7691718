"""Trials of rules: few at a time, and organisations take turns."""

import asyncio
from collections import Counter
from typing import cast

import pytest

from services.alerts.core.rules import RuleBody
from services.alerts.core.trial import Tried
from services.alerts.trying.running import TRIALS_AT_ONCE, TRIALS_MAX, Trying
from services.rim.database.pool import Postgres
from services.rim.turns.question_limits import TooManyQuestions

TRIED = Tried(from_ms=0, until_ms=0, known_minutes=0, learned_from_ms=None, fired=0, incidents=[])


class Waiting(Trying):
    """Each trial lasts until the test lets it end."""

    def __init__(self) -> None:
        super().__init__(cast("Postgres", None), lambda: 0)
        self.began: list[str] = []
        self.let: dict[str, asyncio.Semaphore] = {}

    async def _judge(self, body: RuleBody) -> Tried:
        self.began.append(body.customer)
        await self.let.setdefault(body.customer, asyncio.Semaphore(0)).acquire()
        return TRIED


async def test_trials_of_an_organisation_wait_for_each_other_and_others_for_a_turn() -> None:
    trying = Waiting()

    def ask(organisation: str) -> asyncio.Task[Tried]:
        body = RuleBody(customer=organisation, name="R", metric="rebuffering")
        return asyncio.create_task(trying.run(body, organisation))

    async def settle() -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    first = [ask("a") for _ in range(TRIALS_MAX)]
    await settle()
    assert trying.began == ["a"]
    with pytest.raises(TooManyQuestions):
        await ask("a")
    others = {name: ask(name) for name in ("b", "c")}
    await settle()
    # There is room for another organisation beside the many of one; a third waits for its turn.
    assert trying.began == ["a", "b"]
    assert len(trying.began) == TRIALS_AT_ONCE
    trying.let["b"].release()
    assert await others["b"] == TRIED
    await settle()
    assert trying.began == ["a", "b", "c"]
    trying.let["c"].release()
    assert await others["c"] == TRIED
    for _ in first:
        trying.let["a"].release()
    assert await asyncio.gather(*first) == [TRIED] * TRIALS_MAX
    assert Counter(trying.began) == {"a": TRIALS_MAX, "b": 1, "c": 1}
