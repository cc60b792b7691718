"""How many logins may fail: by address, by account, and by both together. Pure.

A dozen strangers who guess fill the room of an account. They do not keep its owner out of a site where the owner has logged in
before: there the pair and the address alone count.
"""

import hashlib
from dataclasses import dataclass

from services.accounts.core.sites import site_of


@dataclass(frozen=True)
class Allowance:
    """Failures that one subject may have at once; one more every `seconds` after that."""

    #: A hash: what somebody typed as an account may be a password.
    subject: str
    failures_max: int
    seconds: float


def allowances(address: str | None, email: str, *, is_known: bool = False) -> list[Allowance]:
    """The keys under which a login of this account from this address is counted.

    `is_known`: the account's owner has logged in from this site before.
    """
    site, account = site_of(address), email.casefold()
    of_address = [Allowance(_hashed("pair", site, account), 5, 60.0), Allowance(_hashed("address", site), 30, 20.0)]
    return of_address if is_known else [*of_address, Allowance(_hashed("account", account), 60, 20.0)]


def logins_at_provider(address: str | None) -> list[Allowance]:
    """The key under which logins at the provider are counted that begin from this address and do not end.

    Each is stored for some minutes. An office behind one address begins many at a time.
    """
    return [Allowance(_hashed("provider", site_of(address)), 300, 2.0)]


def _hashed(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()
