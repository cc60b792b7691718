"""Looks at single views and viewers: each is a row of the accounts' audit log before the answer is given."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.rim.database.pool import Postgres

#: The same look of the same actor is noted again after so long: a page asks for an open view every few seconds.
AGAIN_MS: Final = 600_000
_REMEMBERED_MAX: Final = 10_000


class Audit(Protocol):
    """Where looks are noted."""

    async def note(self, actor: Actor, action: str, target: str) -> None:
        """Notes it, unless it was noted lately. Raises as `Postgres.ask`: what cannot be noted is not shown."""
        ...


class AccountsAudit:
    """`Audit` in schema `accounts`. Belongs to one event loop."""

    def __init__(self, postgres: Postgres, now_ms: Callable[[], int]) -> None:
        self._postgres = postgres
        self._now_ms = now_ms
        self._noted: OrderedDict[tuple[str | None, str, str], int] = OrderedDict()

    async def note(self, actor: Actor, action: str, target: str) -> None:
        """See `Audit`."""
        key, now_ms = (actor.id, action, target), self._now_ms()
        noted_ms = self._noted.get(key)
        if noted_ms is not None and now_ms - noted_ms < AGAIN_MS:
            return
        await self._postgres.ask(partial(audit.add, actor=actor, action=action, target=target.replace("\0", "\ufffd")))
        self._noted.pop(key, None)
        self._noted[key] = now_ms
        while len(self._noted) > _REMEMBERED_MAX:
            self._noted.popitem(last=False)
