"""One question to Postgres for all pages that ask the same at about the same time: pages ask every second."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from services.accounts.core.customer_scope import CustomerScope
from services.dashboard.quality.queries import Rollups, Serving

#: An answer may be so old. It is part of how late a page's figures are.
FRESH_SECONDS: Final = 0.5


@dataclass(frozen=True)
class _Asked:
    at_seconds: float
    task: asyncio.Task[Rollups]


class SharedServing:
    """`Serving` before another one. An error is shared too, by those who asked meanwhile."""

    def __init__(self, serving: Serving, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._serving = serving
        self._clock = clock
        self._asked: dict[tuple[datetime, CustomerScope], _Asked] = {}

    async def rollups_since(self, since: datetime, scope: CustomerScope) -> Rollups:
        """See `Serving`."""
        now = self._clock()
        self._asked = {key: one for key, one in self._asked.items() if self._may_share(one, now)}
        asked = self._asked.get((since, scope))
        if asked is None:
            asked = _Asked(now, asyncio.create_task(self._serving.rollups_since(since, scope)))
            asked.task.add_done_callback(_note_outcome)
            self._asked[since, scope] = asked
        # A page that goes away takes the answer from nobody else.
        return await asyncio.shield(asked.task)

    @staticmethod
    def _may_share(asked: _Asked, now: float) -> bool:
        if not asked.task.done():
            return True
        failed = asked.task.cancelled() or asked.task.exception() is not None
        return not failed and now - asked.at_seconds < FRESH_SECONDS


def _note_outcome(task: asyncio.Task[Rollups]) -> None:
    """All who asked may have gone: then nobody else would look at the error."""
    if not task.cancelled():
        task.exception()
