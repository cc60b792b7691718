"""A client's address: found behind known proxies, and shortened so that it no longer identifies a person."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

PEERS_REMEMBERED_MAX: Final = 8_192
#: Addresses looked at in one X-Forwarded-For, from its right: more proxies than any installation has.
FORWARDED_MAX: Final = 16

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(peer: str | None, forwarded_for: Sequence[str], proxies: Sequence[Network]) -> str | None:
    """The address of the client: the rightmost one that is not a known proxy.

    `forwarded_for` are the X-Forwarded-For headers in their order. Each proxy adds the address of its caller on the right.
    Addresses left of the first unknown address are claims of that client.
    """
    if not proxies or not forwarded_for:
        return peer
    address = peer
    known = tuple(proxies)
    hops = [hop.strip() for hop in ",".join(forwarded_for).rsplit(",", FORWARDED_MAX)[-FORWARDED_MAX:]]
    for hop in reversed(hops):
        if address is None or not _is_within(address, known):
            return address
        address = _without_port(hop)
    return address


@lru_cache(maxsize=PEERS_REMEMBERED_MAX)
def truncated_ip(address: str | None, ipv4_bits: int, ipv6_bits: int) -> str | None:
    """The network of `address` (203.0.113.0/24); None for what is no address, and where no bits are kept."""
    ip = _parsed(address)
    if ip is None:
        return None
    bits = ipv4_bits if ip.version == 4 else ipv6_bits
    return str(ipaddress.ip_network((ip, bits), strict=False)) if bits else None


@lru_cache(maxsize=PEERS_REMEMBERED_MAX)
def _is_within(address: str, networks: tuple[Network, ...]) -> bool:
    ip = _parsed(address)
    return ip is not None and any(ip in network for network in networks if network.version == ip.version)


def _without_port(hop: str) -> str:
    """`hop` as some proxies write it: `1.2.3.4:80`, `[::1]:80`."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _parsed(address: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if address is None:
        return None
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    return ip
