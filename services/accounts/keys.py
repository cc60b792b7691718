"""WriteKeys: what admins do with the write keys of their customers.

Keys are where collectors read customers, which may be another database than the accounts'. So the row of the audit log comes
first: what is not in the log has not been done. A change that fails after its row has a second row.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

import psycopg

from services.accounts.core.principal import Principal
from services.accounts.service import Accounts
from services.accounts.store.audit import Actor
from services.accounts.store.credentials import keys
from services.accounts.store.credentials.keys import KeyRow, KeyTerms, KeyUnknown
from services.accounts.store.tenants import organisations
from services.rim.database.pool import Postgres

#: Public, and nobody has it yet.
KEY_BYTES: Final = 16

T = TypeVar("T")


class WriteKeys:
    """Belongs to one event loop; `customers` is the customers' database. Raises what asks of `Postgres` raise."""

    def __init__(self, accounts: Accounts, customers: Postgres) -> None:
        self._accounts = accounts
        self._ask = customers.ask

    async def of(self, customer_id: str, *, after: str, rows_max: int) -> list[KeyRow]:
        """The keys of a customer."""
        return await self._ask(partial(keys.keys_of, customer_id=customer_id, after=after, rows_max=rows_max))

    async def add(self, customer_id: str, terms: KeyTerms, actor: Actor) -> KeyRow:
        """A new key. Raises `TooManyKeys` or `NoPlaceForKey`."""
        key, beside = self._new_key(), await self._beside(customer_id)
        add = partial(keys.add_key, key=key, customer_id=customer_id, terms=terms, made_by=actor.name, beside=beside)
        return await self._noted(actor, "made_key", key, {"customer": customer_id, **_details(terms)}, add)

    async def change(
        self, principal: Principal, key: str, change: Callable[[KeyRow], KeyTerms], actor: Actor
    ) -> KeyRow:
        """Other terms. Raises `KeyUnknown` or `NoPlaceForKey`."""
        before = await self._own(principal, key)
        terms = change(before)
        details = {"customer": before.customer_id, **_details(terms)}
        give = partial(keys.change_key, key=key, terms=terms, beside=await self._beside(before.customer_id))
        return await self._noted(actor, "changed_key", key, details, give)

    async def replace(self, principal: Principal, key: str, overlap: timedelta, actor: Actor) -> KeyRow:
        """A new key with the terms of this one, which holds for `overlap` still. Raises `KeyUnknown` or as `add`."""
        before, new_key = await self._own(principal, key), self._new_key()
        details = {"customer": before.customer_id, "by": new_key, "overlap_s": round(overlap.total_seconds())}
        beside = await self._beside(before.customer_id)
        replace = partial(
            keys.replace_key, key=key, new_key=new_key, overlap=overlap, made_by=actor.name, beside=beside
        )
        return await self._noted(actor, "replaced_key", key, details, replace)

    async def revoke(self, principal: Principal, key: str, actor: Actor) -> None:
        """Ends a key. Raises `KeyUnknown`."""
        before = await self._own(principal, key)
        revoke = partial(keys.revoke_key, key=key)
        await self._noted(actor, "revoked_key", key, {"customer": before.customer_id}, revoke)

    async def _beside(self, customer_id: str) -> list[str]:
        return await self._accounts.postgres.ask(partial(organisations.customers_beside, customer_id=customer_id))

    async def _own(self, principal: Principal, key: str) -> KeyRow:
        found = await self._ask(partial(keys.find_key, key=key))
        if not principal.scope.has(found.customer_id):
            raise KeyUnknown
        return found

    async def _noted(
        self,
        actor: Actor,
        action: str,
        target: str,
        details: dict[str, Any],
        change: Callable[[psycopg.AsyncConnection], Awaitable[T]],
    ) -> T:
        await self._accounts.note(actor, action, target, details)
        try:
            return await self._ask(change)
        except Exception as error:
            await self._accounts.note(actor, f"{action}_failed", target, {"kind": type(error).__name__})
            raise

    def _new_key(self) -> str:
        return f"pk_{self._accounts.random(KEY_BYTES).hex()}"


def _details(terms: KeyTerms) -> dict[str, Any]:
    return {
        "name": terms.name,
        "origins": list(terms.origins),
        "beacons_per_second": terms.beacons_per_second,
        "bytes_per_second": terms.bytes_per_second,
    }
