"""Site: whom an address counts for where limits go by address. Pure."""

from typing import Final

from shared.http.peer import truncated_ip

#: Of an IPv6 address: what a home is given (RFC 6177). Its 256 networks of 64 bits are one household's.
_IPV6_BITS: Final = 56


def site_of(address: str | None) -> str:
    """The address, or of IPv6 the network of its household."""
    return truncated_ip(address, 32, _IPV6_BITS) or "(unknown)"
