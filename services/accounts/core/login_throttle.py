"""How many logins may fail: by address, by account, and by both together. Pure.

The pair has the least room, so that a stranger who guesses does not keep an account's owner out.
"""

import hashlib
import ipaddress
from dataclasses import dataclass
from typing import Final

#: Of an IPv6 address: what one household or server is given.
_IPV6_BITS: Final = 64


@dataclass(frozen=True)
class Allowance:
    """Failures that one subject may have at once; one more every `seconds` after that."""

    #: A hash: what somebody typed as an account may be a password.
    subject: str
    failures_max: int
    seconds: float


def allowances(address: str | None, email: str) -> list[Allowance]:
    """The keys under which a login of this account from this address is counted."""
    site, account = _site(address), email.casefold()
    return [
        Allowance(_hashed("pair", site, account), 5, 60.0),
        Allowance(_hashed("address", site), 30, 20.0),
        Allowance(_hashed("account", account), 60, 20.0),
    ]


def begun_elsewhere(address: str | None) -> list[Allowance]:
    """The key under which logins at the provider are counted that begin from this address and do not end.

    Each is stored for some minutes. An office behind one address begins many at a time.
    """
    return [Allowance(_hashed("elsewhere", _site(address)), 300, 2.0)]


def _site(address: str | None) -> str:
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, _IPV6_BITS), strict=False))
    return str(parsed)


def _hashed(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()
