"""claims: the owner of an e-mail address, as recorded in the address's partition.

A claim is *held* from its grant until the user's partition reports that the user has the address; then it is *confirmed*. Every
step may arrive twice: user and number identify it, and the second has no effect.
"""

import msgspec


class EmailClaim(msgspec.Struct, frozen=True, array_like=True):
    """The claim on one address, stored under the address in lower case."""

    user_id: str
    #: Of the user's claim; a later claim of the same user has a larger one.
    number: int
    is_confirmed: bool = False


def claimed(before: EmailClaim | None, user_id: str, number: int) -> EmailClaim | None:
    """The claim after a user wanted the address; None when it is not this user's."""
    if before is None:
        return EmailClaim(user_id, number)
    if before.user_id != user_id:
        return None
    return before if number <= before.number else EmailClaim(user_id, number)


def confirmed(before: EmailClaim | None, user_id: str, number: int) -> EmailClaim | None:
    """The claim after the user has confirmed the address."""
    if before is None or (before.user_id, before.number) != (user_id, number):
        return before
    return EmailClaim(user_id, number, is_confirmed=True)


def released(before: EmailClaim | None, user_id: str, number: int) -> EmailClaim | None:
    """The claim after the user has released the address; None when it is free."""
    if before is None or (before.user_id, before.number) != (user_id, number):
        return before
    return None
