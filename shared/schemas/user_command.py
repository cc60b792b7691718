"""Commands: changes to a user or to the claim on an e-mail address. The value of topic `user_commands`.

`Create`, `Replace`, `Patch` and `Delete` come from the REST API under the user's id. With the others the partitions of a user and
of an e-mail address agree on the address's owner. `Claim`, `Confirm` and `Release` go to the address, `Claimed` and `Released`
back to the user. Ids are hexadecimal and an address has an `@`, so the two kinds of key never collide.
"""

from typing import Final

import msgspec

SCHEMA_VERSION: Final = 1


class ClientRequest(msgspec.Struct, frozen=True):
    """The request that a command is of."""

    #: Its idempotency key, or a random text; commands of one user with the same id are one command.
    id: str
    #: A hash of all that it asks for: the same id with another one is a mistake of the client.
    fingerprint: str
    #: Whether the id is an idempotency key, so that its outcome is kept for long.
    is_keyed: bool
    #: A random text of this one request: requests that are repeated under a key differ by it.
    submission: str = ""


class Create(msgspec.Struct, frozen=True, tag="create"):
    """A user is to be made, with the id that is the record's key."""

    request: ClientRequest
    email: str
    name: str
    attributes: dict[str, str]


class Replace(msgspec.Struct, frozen=True, tag="replace"):
    """The user is to have these fields. `if_match`: only when its version is one of these."""

    request: ClientRequest
    email: str
    name: str
    attributes: dict[str, str]
    if_match: list[int] | None = None


class Patch(msgspec.Struct, frozen=True, tag="patch", omit_defaults=True):
    """Changes these fields of the user; attributes that are None are removed (RFC 7396)."""

    request: ClientRequest
    email: str | None = None
    name: str | None = None
    attributes: dict[str, str | None] = {}
    #: Whether the attributes that it does not name go too.
    drops_attributes: bool = False
    if_match: list[int] | None = None


class Delete(msgspec.Struct, frozen=True, tag="delete"):
    """The user is to go."""

    request: ClientRequest
    if_match: list[int] | None = None


class Claim(msgspec.Struct, frozen=True, tag="claim"):
    """The user wants the address that is the record's key. `number` grows with each claim of this user."""

    user_id: str
    number: int


class Claimed(msgspec.Struct, frozen=True, tag="claimed"):
    """The answer to a claim."""

    email: str
    number: int
    is_granted: bool


class Confirm(msgspec.Struct, frozen=True, tag="confirm"):
    """The user has the address that it claimed under this number."""

    user_id: str
    number: int


class Release(msgspec.Struct, frozen=True, tag="release"):
    """The user no longer has the address that it claimed under this number."""

    user_id: str
    number: int


class Released(msgspec.Struct, frozen=True, tag="released"):
    """The answer to a release: others may have the address now."""

    email: str
    number: int


#: What a request asks for.
Write = Create | Replace | Patch | Delete


class UserCommand(msgspec.Struct, frozen=True):
    """One command."""

    schema_version: int
    what: Create | Replace | Patch | Delete | Claim | Claimed | Confirm | Release | Released
