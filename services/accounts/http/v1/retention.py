"""`/v1/customers/{id}/retention`: for how many days a customer's data is kept."""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from services.accounts.http.access import MANAGEMENT
from services.accounts.http.problems import unknown
from services.accounts.http.v1.operations import Call, Operation
from services.accounts.service import Accounts
from services.accounts.store.customers import retention
from shared.schemas.beacon import CUSTOMER_ID

_DAYS_MAX = 36_500
_Views = Annotated[int, msgspec.Meta(ge=8, le=_DAYS_MAX)]
_Beacons = Annotated[int, msgspec.Meta(ge=2, le=_DAYS_MAX)]
_Days = Annotated[int, msgspec.Meta(ge=1, le=_DAYS_MAX)]


class KeptDays(msgspec.Struct, frozen=True):
    """Days; null: as the installation keeps it. The smaller number of customer and installation holds."""

    #: Rows of views; their sums 7 days less.
    views: int | None = None
    #: Beacons as they came, late and rejected ones too.
    beacons: int | None = None
    #: Recorded sessions.
    recordings: int | None = None
    #: Traces and what other applications found.
    applications: int | None = None


class KeptDaysChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers to change; null removes the customer's own number."""

    views: _Views | UnsetType | None = UNSET
    beacons: _Beacons | UnsetType | None = UNSET
    recordings: _Days | UnsetType | None = UNSET
    applications: _Days | UnsetType | None = UNSET


class RetentionOperations:
    """The operations."""

    def __init__(self, accounts: Accounts) -> None:
        self._ask = accounts.postgres.ask

    def operations(self) -> list[Operation]:
        """All of them."""
        path = "/v1/customers/{id}/retention"
        return [
            Operation("get", path, "For how many days a customer's data is kept", MANAGEMENT, self.read, KeptDays),
            Operation("patch", path, "Changes it", MANAGEMENT, self.change, KeptDays, body=KeptDaysChange),
        ]

    async def read(self, call: Call) -> KeptDays:
        """The customer's own numbers."""
        customer_id = _customer(call)
        return KeptDays(**await self._ask(lambda connection: retention.of_customer(connection, customer_id)))

    async def change(self, call: Call) -> KeptDays:
        """In force with the next day's maintenance."""
        customer_id = _customer(call)
        given = {name: getattr(call.body, name) for name in KeptDaysChange.__struct_fields__}
        changes = {name: days for name, days in given.items() if days is not UNSET}
        return KeptDays(
            **await self._ask(lambda connection: retention.change(connection, customer_id, changes, call.actor))
        )


def _customer(call: Call) -> str:
    customer_id = call.parts["id"]
    if not CUSTOMER_ID.fullmatch(customer_id) or not call.principal.scope.has(customer_id):
        raise unknown("customer")
    return customer_id
