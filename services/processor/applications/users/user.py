"""user: applies a command to a user."""

import msgspec

from services.processor.applications.users import problems
from services.processor.applications.users.fields import merged
from services.processor.applications.users.problems import RequestRefused
from shared.schemas.user import User
from shared.schemas.user_command import Create, Delete, Patch, Write


class UserRow(msgspec.Struct, frozen=True, array_like=True):
    """One user as it is stored, under its id. Times are the partition's clock, ms since 1970."""

    email: str
    name: str
    attributes: dict[str, str]
    version: int
    created_ms: int
    updated_ms: int
    #: The number under which its e-mail address was claimed.
    claim: int = 0

    def to_api(self, user_id: str) -> User:
        """The user as others see it."""
        return User(
            id=user_id,
            email=self.email,
            name=self.name,
            attributes=self.attributes,
            version=self.version,
            created_ms=self.created_ms,
            updated_ms=self.updated_ms,
        )


def wanted(before: UserRow | None, user_id: str, write: Write, clock_ms: int) -> UserRow | None:
    """The user after `write`, None once it is deleted; its e-mail address is not claimed yet. Raises `RequestRefused`."""
    if isinstance(write, Create):
        if before is not None:
            raise RequestRefused(problems.id_taken())
        return UserRow(write.email, write.name, write.attributes, 1, clock_ms, clock_ms)
    if before is None:
        raise RequestRefused(problems.not_found(user_id))
    if write.if_match is not None and before.version not in write.if_match:
        raise RequestRefused(problems.other_version(before.version))
    if isinstance(write, Delete):
        return None
    email, name = write.email, write.name
    if isinstance(write, Patch):
        attributes = merged(before.attributes, write.attributes, drops=write.drops_attributes)
    else:
        attributes = write.attributes
    return UserRow(
        email=before.email if email is None else email,
        name=before.name if name is None else name,
        attributes=attributes,
        version=before.version + 1,
        created_ms=before.created_ms,
        updated_ms=clock_ms,
        claim=before.claim,
    )
