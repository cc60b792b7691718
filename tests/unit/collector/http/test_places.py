"""The place of an address."""

import struct
from pathlib import Path

import pytest

from services.collector.http.places import Places
from services.collector.intake.sender.client import NOWHERE, Place


def database(values: dict[str, object]) -> bytes:
    """A database of MaxMind's format 2.0 in which every IPv4 address has these values."""

    def encoded(value: object) -> bytes:
        if isinstance(value, dict):
            inner = b"".join(encoded(key) + encoded(each) for key, each in value.items())
            return bytes([7 << 5 | len(value)]) + inner
        if isinstance(value, int):
            return bytes([6 << 5 | 4]) + struct.pack(">I", value)
        if isinstance(value, list):
            return bytes([len(value), 4]) + b"".join(encoded(each) for each in value)
        text = str(value).encode()
        return bytes([2 << 5 | len(text)]) + text

    # One node; both its records point at the first value of the data section, 16 bytes behind the tree.
    tree = (1 + 16).to_bytes(3, "big") * 2
    about = {
        "node_count": 1,
        "record_size": 24,
        "ip_version": 4,
        "database_type": "test",
        "languages": ["en"],
        "binary_format_major_version": 2,
        "binary_format_minor_version": 0,
        "build_epoch": 0,
        "description": {"en": "t"},
    }
    return tree + b"\0" * 16 + encoded(values) + b"\xab\xcd\xefMaxMind.com" + encoded(about)


def test_an_address_has_a_place_in_the_databases_given(tmp_path: Path) -> None:
    country, asn = tmp_path / "country.mmdb", tmp_path / "asn.mmdb"
    country.write_bytes(database({"country": {"iso_code": "FI"}}))
    asn.write_bytes(database({"autonomous_system_number": 64_500}))
    places = Places([country, asn])
    assert places.find("203.0.113.7") == Place("FI", 64_500)
    # A database of IPv4 knows nothing of IPv6, and nobody of what is no address.
    assert [places.find(address) for address in ("2001:db8::1", "unknown", None)] == [NOWHERE] * 3
    assert Places([]).find("203.0.113.7") == NOWHERE


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no database"):
        Places([tmp_path / "x"])
