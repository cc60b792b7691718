"""Looks at single views and viewers: each is a row of the accounts' audit log before the answer is given."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.rim.database.pool import Asks
from services.rim.turns.question_limits import InTurn
from services.rim.turns.rates import Rates

#: The same look of the same actor is noted again after so long: a page asks for an open view every few seconds.
AGAIN_MS: Final = 600_000
_REMEMBERED_MAX: Final = 10_000
#: Of an organisation in each process: the audit log is kept for good, so its growth has a bound.
LOOKS_PER_SECOND: Final = 20.0


class Audit(Protocol):
    """Where looks are noted."""

    async def note(self, actor: Actor, action: str, *targets: str) -> None:
        """Notes each target, unless it was noted lately. What cannot be noted is not shown.

        Raises as `Postgres.ask`, `TooManyRequests` where an organisation looks at too much, and `TooManyQuestions` where too many
        of its looks wait for their turn.
        """
        ...


class AccountsAudit:
    """`Audit` in schema `accounts`. Belongs to one event loop. `turns` are those of organisations at this database."""

    def __init__(
        self, postgres: Asks, now_ms: Callable[[], int], *, turns: InTurn, rates: Rates | None = None
    ) -> None:  # fmt: skip
        self._postgres = postgres
        self._now_ms = now_ms
        self._turns = turns
        self._rates = rates or Rates(LOOKS_PER_SECOND)
        self._noted: OrderedDict[tuple[str | None, str, str], int] = OrderedDict()

    async def note(self, actor: Actor, action: str, *targets: str) -> None:
        """See `Audit`. A row each, all in one transaction."""
        now_ms = self._now_ms()
        fresh = [one for one in dict.fromkeys(targets) if not self._is_known((actor.id, action, one), now_ms)]
        if not fresh:
            return
        self._rates.charge(actor.organisation_id or "", len(fresh))
        texts = [one.replace("\0", "\ufffd") for one in fresh]
        async with self._turns.of(actor.organisation_id or ""):
            await self._postgres.ask(partial(audit.add_all, actor=actor, action=action, targets=texts))
        for one in fresh:
            key = (actor.id, action, one)
            self._noted.pop(key, None)
            self._noted[key] = now_ms
        while len(self._noted) > _REMEMBERED_MAX:
            self._noted.popitem(last=False)

    def _is_known(self, key: tuple[str | None, str, str], now_ms: int) -> bool:
        noted_ms = self._noted.get(key)
        return noted_ms is not None and now_ms - noted_ms < AGAIN_MS
