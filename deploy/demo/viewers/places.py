"""A database of places for the demo's networks, in MaxMind's format 2.0 (its specification: "MaxMind DB File Format"). Pure.

Real databases are not ours to ship, and simulated players have addresses of documentation (`loadtest.incident`).
"""

import ipaddress
import struct
from collections.abc import Mapping
from typing import Final

from loadtest.incident import NETWORKS

#: Ends the tree and begins the file's description.
_MARK: Final = b"\xab\xcd\xefMaxMind.com"
_TYPE_TEXT, _TYPE_UINT32, _TYPE_MAP, _TYPE_LIST = 2, 6, 7, 11
_SEPARATOR_BYTES: Final = 16
_RECORD_BITS: Final = 24

Value = str | int | list["Value"] | Mapping[str, "Value"]


def database() -> bytes:
    """The networks of an incident's players, each with its country and number."""
    places: dict[str, Value] = {
        f"{network.addresses}.0/24": {
            "country": {"iso_code": network.country},
            "autonomous_system_number": network.asn,
        }
        for network, _ in NETWORKS
    }
    return written(places)


def written(places: Mapping[str, Value]) -> bytes:
    """A database of IPv4 networks, which do not overlap, and what is known of each."""
    #: Each node has two records: None (nothing known), another node, or bytes of the data section.
    nodes: list[list[int | bytes | None]] = [[None, None]]
    for name, value in places.items():
        network = ipaddress.IPv4Network(name)
        number, bits = 0, int(network.network_address)
        for depth in range(network.prefixlen):
            side = bits >> (31 - depth) & 1
            if depth == network.prefixlen - 1:
                nodes[number][side] = _encoded(value)
                break
            following = nodes[number][side]
            if not isinstance(following, int):
                following = len(nodes)
                nodes.append([None, None])
                nodes[number][side] = following
            number = following
    data, tree = b"", b""
    for records in nodes:
        for record in records:
            if isinstance(record, bytes):
                place = len(nodes) + _SEPARATOR_BYTES + len(data)
                data += record
            else:
                place = len(nodes) if record is None else record
            tree += place.to_bytes(_RECORD_BITS // 8, "big")
    about: dict[str, Value] = {
        "node_count": len(nodes),
        "record_size": _RECORD_BITS,
        "ip_version": 4,
        "database_type": "demo",
        "languages": ["en"],
        "binary_format_major_version": 2,
        "binary_format_minor_version": 0,
        "build_epoch": 0,
        "description": {"en": "networks of simulated players"},
    }
    return tree + bytes(_SEPARATOR_BYTES) + data + _MARK + _encoded(about)


def _encoded(value: Value) -> bytes:
    if isinstance(value, str):
        text = value.encode()
        return _control(_TYPE_TEXT, len(text)) + text
    if isinstance(value, int):
        return _control(_TYPE_UINT32, 4) + struct.pack(">I", value)
    if isinstance(value, list):
        # Types above 7 are extended: their number follows the size.
        return bytes([len(value), _TYPE_LIST - 7]) + b"".join(map(_encoded, value))
    return _control(_TYPE_MAP, len(value)) + b"".join(_encoded(key) + _encoded(each) for key, each in value.items())


def _control(kind: int, size: int) -> bytes:
    """The byte before a value; a size of 29 and more has one byte more."""
    if size < 29:
        return bytes([kind << 5 | size])
    assert size < 29 + 256, "no such long value is written here"
    return bytes([kind << 5 | 29, size - 29])
