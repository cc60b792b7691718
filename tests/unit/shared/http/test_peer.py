"""Client addresses are kept only in part."""

import pytest

from shared.http.peer import truncated_ip


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.77", "203.0.113.0/24"),
        ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ("::ffff:203.0.113.77", "203.0.113.0/24"),
        ("fe80::1%eth0", "fe80::/48"),
        ("unix", None),
        ("", None),
        (None, None),
    ],
)
def test_an_address_is_cut_to_its_network(address: str | None, network: str | None) -> None:
    assert truncated_ip(address, 24, 48) == network
