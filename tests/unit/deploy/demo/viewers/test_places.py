"""The demo's database of places is one that the collector reads."""

from pathlib import Path

import pytest

from deploy.demo.viewers import places
from loadtest.incident import NETWORKS
from services.collector.http.places import Places
from services.collector.intake.sender.client import NOWHERE, Place


def test_every_network_of_the_players_is_found_and_no_other_address(tmp_path: Path) -> None:
    file = tmp_path / "places.mmdb"
    file.write_bytes(places.database())
    found = Places([file])

    for network, _ in NETWORKS:
        for host in (0, 1, 255):
            assert found.find(f"{network.addresses}.{host}") == Place(network.country, network.asn)
    for address in ("127.0.0.1", "203.0.112.255", "203.0.114.0", "0.0.0.0", "255.255.255.255", "::1"):
        assert found.find(address) == NOWHERE


def test_networks_of_any_length_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "places.mmdb"
    named = {"10.0.0.0/8": 1, "192.168.0.0/17": 2, "192.168.128.0/17": 3, "192.169.1.1/32": 4}
    file.write_bytes(places.written({name: {"autonomous_system_number": asn} for name, asn in named.items()}))
    found = Places([file])

    expected = {"10.9.8.7": 1, "192.168.1.1": 2, "192.168.200.1": 3, "192.169.1.1": 4, "192.169.1.2": None}
    assert {address: found.find(address).asn for address in expected} == expected


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(AssertionError):
        places.written({"10.0.0.0/8": "x" * 300})
