"""The user: one row of table `users`. The value of topic `users` (a tombstone once it is deleted), and the answer of the REST
API."""

import re
from typing import Final

import msgspec

SCHEMA_VERSION: Final = 1

#: A user's id, made by the service: a UUID as 32 hexadecimal digits.
USER_ID: Final = re.compile(r"[0-9a-f]{32}")


class User(msgspec.Struct, frozen=True, kw_only=True):
    """One user after the change that gave it `version`. Times are the partition's clock, ms since 1970."""

    schema_version: int = SCHEMA_VERSION
    id: str
    email: str
    name: str
    attributes: dict[str, str]
    #: Counts the changes of this user, from 1; it is also the entity tag.
    version: int
    created_ms: int
    updated_ms: int
