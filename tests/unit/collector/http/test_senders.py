"""The address of a client behind proxies."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.http.peer import client_address

PROXIES = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.7", [], "203.0.113.7"),
        ("203.0.113.7", ["1.1.1.1"], "203.0.113.7"),
        ("10.0.0.1", ["1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", ["9.9.9.9, 1.1.1.1, 10.2.2.2"], "1.1.1.1"),
        ("10.0.0.1", ["9.9.9.9", "1.1.1.1:443"], "1.1.1.1"),
        ("10.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", ["1.1.1.1, unknown"], "unknown"),
        (None, ["1.1.1.1"], None),
    ],
)
def test_the_client_is_the_rightmost_stranger(peer: str | None, forwarded: list[str], client: str | None) -> None:
    assert client_address(peer, forwarded, PROXIES) == client
    assert client_address(peer, forwarded, []) == peer


@given(st.lists(st.text(max_size=30), max_size=3))
def test_no_header_is_too_strange(forwarded: list[str]) -> None:
    client_address("10.0.0.1", forwarded, PROXIES)
