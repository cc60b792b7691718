"""Identities: whose a request's credential is, as Postgres says at this moment."""

from functools import partial

from services.accounts.core.credentials import Credential
from services.accounts.core.principal import Principal
from services.accounts.store.logins.identities import Ownership, principal_of
from services.rim.database.pool import Postgres


class Identities:
    """Asks for each request, so what was revoked opens nothing anywhere. Belongs to one event loop."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._ownership = Ownership()

    async def principal(self, credential: Credential) -> Principal | None:
        """Its owner; None if it has none. Raises `PostgresAway`, `NotPublished` or `QueryRefused`: then nothing is known."""
        return await self._postgres.ask(partial(principal_of, ownership=self._ownership, credential=credential))
