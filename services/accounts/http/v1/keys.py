"""`/v1/keys`: write keys of the asker's customers."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import Annotated, Any, Final

import msgspec

from services.accounts.http.access import MANAGEMENT, METRICS_OF_ONE
from services.accounts.http.problems import unknown
from services.accounts.http.v1.operations import Call, Done, Operation, PageAsked, ms, ms_or_none
from services.accounts.http.v1.tenants import CustomerId, Name
from services.accounts.keys import WriteKeys
from services.accounts.store.credentials.keys import KeyRow, KeyTerms
from services.rim.database.pool import NotPublished
from services.rim.http.problems import Refused
from shared.http.patterns import whole
from shared.http.problems import Problem

OVERLAP_HOURS_MAX = 24 * 90

#: As browsers write it (RFC 6454): lower case, no path, the port only where it is not the scheme's own.
Origin = Annotated[str, msgspec.Meta(pattern=whole(r"null|[a-z][a-z0-9+.-]*://[^/?#@\sA-Z]+"), max_length=300)]
Origins = Annotated[list[Origin], msgspec.Meta(max_length=100)]
Rate = Annotated[float, msgspec.Meta(gt=0, le=1e12)]


class WriteKey(msgspec.Struct, frozen=True):
    """A write key. `origins` empty: those of the customer. Rates are of one collector process; null: the customer's."""

    key: str
    customer: str
    name: str
    origins: list[str]
    beacons_per_second: float | None
    bytes_per_second: float | None
    made_by: str
    created_ms: int
    expires_ms: int | None
    revoked_ms: int | None


class Keys(msgspec.Struct, frozen=True):
    """A page of keys, with the last that have ended."""

    keys: list[WriteKey]
    next: str | None


class KeysAsked(PageAsked, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The customer whose keys are listed."""

    customer: CustomerId


class NewKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new key of a customer."""

    customer: CustomerId
    name: Name
    origins: Origins = []
    beacons_per_second: Rate | None = None
    bytes_per_second: Rate | None = None


class KeyChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields to change; fields that are left out stay."""

    name: Name | msgspec.UnsetType = msgspec.UNSET
    origins: Origins | msgspec.UnsetType = msgspec.UNSET
    beacons_per_second: Rate | msgspec.UnsetType | None = msgspec.UNSET
    bytes_per_second: Rate | msgspec.UnsetType | None = msgspec.UNSET


class Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For how long the former key holds beside the new one."""

    overlap_hours: Annotated[float, msgspec.Meta(ge=0, le=OVERLAP_HOURS_MAX)] = 24.0


class KeyOperations:
    """The operations."""

    def __init__(self, keys: WriteKeys) -> None:
        self._keys = keys

    def operations(self) -> list[Operation]:
        """All of them."""
        return [
            Operation(
                "get",
                "/v1/keys",
                "Write keys of a customer",
                METRICS_OF_ONE,
                _answering(self.keys),
                Keys,
                query=KeysAsked,
            ),
            Operation(
                "post",
                "/v1/keys",
                "Makes a write key",
                MANAGEMENT,
                _answering(self.make),
                WriteKey,
                body=NewKey,
                status=201,
                can_conflict=True,
            ),
            Operation(
                "patch",
                "/v1/keys/{key}",
                "Another name, other origins or limits",
                MANAGEMENT,
                _answering(self.change),
                WriteKey,
                body=KeyChange,
                can_conflict=True,
            ),
            Operation(
                "post",
                "/v1/keys/{key}/replace",
                "Makes a key in the place of this one; both hold for some time",
                MANAGEMENT,
                _answering(self.replace),
                WriteKey,
                body=Replacement,
                status=201,
                can_conflict=True,
            ),
            Operation("delete", "/v1/keys/{key}", "Revokes it", MANAGEMENT, _answering(self.revoke)),
        ]

    async def keys(self, call: Call) -> Keys:
        """By their text; those that an operator lists in the table's column `keys` are not among them."""
        asked = call.page
        rows = await self._keys.of(call.query.customer, after=asked.after, rows_max=asked.rows_max)
        page, after = asked.cut(rows, lambda row: row.key)
        return Keys([_key(row) for row in page], after)

    async def make(self, call: Call) -> WriteKey:
        """All collectors take it within 5 s."""
        wanted: NewKey = call.body
        if not call.principal.scope.has(wanted.customer):
            raise unknown("customer")
        terms = KeyTerms(wanted.name, wanted.origins, wanted.beacons_per_second, wanted.bytes_per_second)
        return _key(await self._keys.add(wanted.customer, terms, call.actor))

    async def change(self, call: Call) -> WriteKey:
        """In force in all collectors within 5 s."""
        given: dict[str, Any] = {
            name: value
            for name in KeyChange.__struct_fields__
            if (value := getattr(call.body, name)) is not msgspec.UNSET
        }

        def changed(row: KeyRow) -> KeyTerms:
            before = {name: getattr(row, name) for name in KeyChange.__struct_fields__}
            return KeyTerms(**(before | given))

        return _key(await self._keys.change(call.principal, call.parts["key"], changed, call.actor))

    async def replace(self, call: Call) -> WriteKey:
        """The new one has the name, origins and limits of the former."""
        overlap = timedelta(hours=call.body.overlap_hours)
        return _key(await self._keys.replace(call.principal, call.parts["key"], overlap, call.actor))

    async def revoke(self, call: Call) -> Done:
        """All collectors refuse it within 5 s."""
        await self._keys.revoke(call.principal, call.parts["key"], call.actor)
        return Done()


#: Who plays videos reads it too.
_NO_TABLE: Final = (
    "Players use the customer's id as their key, or a key from the people who run the installation."
    " Who runs it may have keys managed here: docs/collector.md, Customers."
)


def _answering(handle: Callable[[Call], Awaitable[Any]]) -> Callable[[Call], Awaitable[Any]]:
    """`handle`; where customers are in no table, the answer says so."""

    @wraps(handle)
    async def answer(call: Call) -> Any:
        try:
            return await handle(call)
        except NotPublished:
            raise Refused(Problem(503, "Write keys are not managed here", "customers", _NO_TABLE)) from None

    return answer


def _key(row: KeyRow) -> WriteKey:
    return WriteKey(
        row.key,
        row.customer_id,
        row.name,
        row.origins,
        row.beacons_per_second,
        row.bytes_per_second,
        row.made_by,
        ms(row.created_at),
        ms_or_none(row.expires_at),
        ms_or_none(row.revoked_at),
    )
