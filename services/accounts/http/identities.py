"""Identities: whose a request's credential is, as Postgres says, remembered for a moment."""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from services.accounts.core.credentials import Credential
from services.accounts.core.principal import Principal
from services.accounts.store.identities import Ownership, principal_of
from services.rim.database.pool import Postgres

#: So long a session that was ended elsewhere, or a token that was revoked there, is still let in.
FRESH_SECONDS: Final = 2.0
REMEMBERED_MAX: Final = 10_000

_Key = tuple[str, bytes]


class Identities:
    """Belongs to one event loop."""

    def __init__(self, postgres: Postgres, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._postgres = postgres
        self._clock = clock
        self._ownership = Ownership()
        self._known: dict[_Key, tuple[float, Principal]] = {}
        self._changes = 0

    async def principal(self, credential: Credential) -> Principal | None:
        """Whose it is; None for nobody's. Raises `PostgresAway`, `NotPublished` or `QueryRefused`: then nothing is known."""
        key = credential.id, credential.hash
        known = self._known.get(key)
        if known is not None and self._clock() - known[0] < FRESH_SECONDS:
            return known[1]
        asked_at, changes = self._clock(), self._changes
        found = await self._postgres.ask(partial(principal_of, ownership=self._ownership, credential=credential))
        self._known.pop(key, None)
        # What was read before a change of here may be from before it: it is used once, and not remembered.
        if found is not None and changes == self._changes:
            while len(self._known) >= REMEMBERED_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = asked_at, found
        return found

    def forget(self) -> None:
        """Asks Postgres again for everybody: something has changed here."""
        self._known.clear()
        self._changes += 1
