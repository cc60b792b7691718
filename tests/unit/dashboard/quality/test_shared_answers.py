"""Pages that ask the same at the same time cost one question."""

import asyncio
from datetime import UTC, datetime

import pytest

from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.dashboard.quality.queries import Rollups
from services.dashboard.quality.shared_answers import FRESH_SECONDS, SharedServing
from services.rim.database.pool import PostgresAway

NOON = datetime(2026, 2, 2, 12, tzinfo=UTC)
ONE = datetime(2026, 2, 2, 13, tzinfo=UTC)


class Slow:
    """Answers when it is let, or fails."""

    def __init__(self) -> None:
        self.asked: list[datetime] = []
        self.may_answer = asyncio.Event()
        self.is_away = False

    async def rollups_since(self, since: datetime, scope: CustomerScope) -> Rollups:
        self.asked.append(since)
        await self.may_answer.wait()
        if self.is_away:
            raise PostgresAway("away")
        return Rollups([], {}, since, None)


async def test_questions_of_one_time_are_one_and_a_page_that_goes_takes_the_answer_from_nobody() -> None:
    slow, now = Slow(), [0.0]
    shared = SharedServing(slow, clock=lambda: now[0])
    first, second, other = (asyncio.create_task(shared.rollups_since(since, EVERYTHING)) for since in (NOON, NOON, ONE))
    await asyncio.sleep(0)
    first.cancel()
    slow.may_answer.set()
    assert (await second).newest_hour == NOON
    assert (await other).newest_hour == ONE
    assert slow.asked == [NOON, ONE]

    now[0] = FRESH_SECONDS / 2
    await shared.rollups_since(NOON, EVERYTHING)
    assert slow.asked == [NOON, ONE]
    now[0] = FRESH_SECONDS
    await shared.rollups_since(NOON, EVERYTHING)
    assert slow.asked == [NOON, ONE, NOON]


async def test_a_failure_is_asked_again_at_once() -> None:
    slow = Slow()
    slow.may_answer.set()
    slow.is_away = True
    shared = SharedServing(slow, clock=lambda: 0.0)
    with pytest.raises(PostgresAway):
        await shared.rollups_since(NOON, EVERYTHING)
    slow.is_away = False
    assert (await shared.rollups_since(NOON, EVERYTHING)).newest_hour == NOON
