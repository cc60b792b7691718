"""Who a credential belongs to is remembered for a moment, and never from before a change."""

import asyncio
from collections.abc import Callable
from typing import Any

from services.accounts.core.credentials import Kind
from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.core.principal import Principal
from services.accounts.core.roles import Role
from services.accounts.http.identities import FRESH_SECONDS, Identities
from tests.unit.dashboard.door import credential, person

WHO = credential(Kind.SESSION, 1)
SOMEBODY = person(Role.ADMIN, EVERYTHING, organisation="home")


class Answering:
    """Stands for Postgres: each question waits until it is answered."""

    def __init__(self) -> None:
        self._questions: asyncio.Queue[asyncio.Future[Principal | None]] = asyncio.Queue()

    async def ask(self, _: Callable[..., Any]) -> Principal | None:
        question: asyncio.Future[Principal | None] = asyncio.get_running_loop().create_future()
        self._questions.put_nowait(question)
        return await question

    async def asked(self) -> asyncio.Future[Principal | None]:
        """The next question."""
        async with asyncio.timeout(10):
            return await self._questions.get()


async def test_postgres_is_asked_again_after_a_moment() -> None:
    postgres, now = Answering(), [0.0]
    identities = Identities(postgres, clock=lambda: now[0])  # type: ignore[arg-type]
    first = asyncio.create_task(identities.principal(WHO))
    (await postgres.asked()).set_result(SOMEBODY)
    assert await first is SOMEBODY
    now[0] = FRESH_SECONDS * 0.9
    assert await identities.principal(WHO) is SOMEBODY
    now[0] = FRESH_SECONDS
    again = asyncio.create_task(identities.principal(WHO))
    (await postgres.asked()).set_result(None)
    assert await again is None


async def test_what_was_read_before_a_session_was_ended_is_not_remembered_after_it() -> None:
    postgres = Answering()
    identities = Identities(postgres, clock=lambda: 0.0)  # type: ignore[arg-type]
    before = asyncio.create_task(identities.principal(WHO))
    question = await postgres.asked()
    # The session ends here, while an answer from before it is on its way.
    identities.forget()
    question.set_result(SOMEBODY)
    assert await before is SOMEBODY
    after = asyncio.create_task(identities.principal(WHO))
    (await postgres.asked()).set_result(None)
    assert await after is None
