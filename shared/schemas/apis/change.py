"""A change of an API after it was learned. The value of topic `api_changes`."""

from typing import Final, Literal

import msgspec

SCHEMA_VERSION: Final = 1

#: `learned`: an endpoint's learning period is over, its schema is published. The others are drift.
ChangeKind = Literal["learned", "new_endpoint", "new_field", "vanished_field", "type_change"]


class ApiChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one endpoint; reported once, when it was first seen."""

    schema_version: int
    customer_id: str
    host: str
    kind: ChangeKind
    method: str
    #: The path's template: `/users/{id}`.
    path: str
    #: Where in the call: `/response/200/body/items/*/name`, JSON pointer with `*` for the items of an array; "" for the whole.
    pointer: str = ""
    #: The types before and after.
    was: list[str] = []
    now: list[str] = []
    #: The call that showed it, ms since 1970.
    at_ms: int
