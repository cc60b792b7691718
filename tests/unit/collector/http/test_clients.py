"""Who a client is: its address behind proxies, its place, its software."""

import struct
from ipaddress import ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.collector.http import clients
from services.collector.http.clients import (
    AGENTS_PARSED_BY_ADDRESS_MAX,
    AGENTS_PARSED_BY_CUSTOMER_MAX,
    AGENTS_PARSED_PER_SECOND_MAX,
    AGENTS_REMEMBERED_MAX,
    Agents,
    Places,
)
from services.collector.intake.sender.client import NO_AGENT, NOWHERE, Agent, Place
from shared.http.peer import client_address

PROXIES = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36"
)


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


@pytest.mark.parametrize(
    ("user_agent", "agent"),
    [
        (CHROME.format(156), Agent("Chrome", "Windows", None)),
        ("Roku/DVP-9.10 (519.10E04111A)", Agent("Roku", "Roku", "Roku")),
        (CHROME.format(156).replace("Chrome", "HeadlessChrome"), Agent("HeadlessChrome", "Windows", None, is_bot=True)),
        ("", NO_AGENT),
        (None, NO_AGENT),
    ],
)
def test_a_user_agent_is_described_by_its_families(user_agent: str | None, agent: Agent) -> None:
    agents = Agents()
    assert agents.known(user_agent) is NO_AGENT
    if user_agent:
        assert agents.parse(user_agent, "203.0.113.7", "acme") == agent
    assert agents.known(user_agent) == agent


def test_made_up_agents_cost_only_so_much() -> None:
    now = 0.0
    agents = Agents(lambda: now)

    def browser(number: int, address: str) -> str | None:
        user_agent = CHROME.format(number)
        # The keys are of many customers: what one may take is the next test's.
        known = agents.known(user_agent)
        return (known if known is not NO_AGENT else agents.parse(user_agent, address, f"c-{number % 7}")).browser

    # One address has a budget of its own, and leaves the others theirs.
    mine = [browser(number, "203.0.113.1") for number in range(AGENTS_PARSED_BY_ADDRESS_MAX + 5)]
    assert mine == ["Chrome"] * AGENTS_PARSED_BY_ADDRESS_MAX + [None] * 5
    left = AGENTS_PARSED_PER_SECOND_MAX - AGENTS_PARSED_BY_ADDRESS_MAX
    others = [browser(1_000 + number, f"198.51.100.{number}") for number in range(left + 5)]
    assert others == ["Chrome"] * left + [None] * 5
    # What is known costs nothing.
    assert browser(0, "203.0.113.1") == "Chrome"
    now = 1.0
    assert browser(9_999, "203.0.113.1") is None
    assert browser(9_999, "198.51.100.1") == "Chrome"
    now = 10.0
    assert browser(9_998, "203.0.113.1") == "Chrome"


def test_made_up_agents_under_one_customers_key_leave_the_others_half() -> None:
    agents = Agents(lambda: 0.0)

    def browsers(customer_id: str, first: int) -> int:
        """Of twenty new ones of many addresses, how many are read."""
        read = [agents.parse(CHROME.format(first + one), f"198.51.{first}.{one}", customer_id) for one in range(20)]
        return sum(agent is not NO_AGENT for agent in read)

    assert browsers("acme", 0) == AGENTS_PARSED_BY_CUSTOMER_MAX
    assert browsers("", 20) == AGENTS_PARSED_PER_SECOND_MAX - AGENTS_PARSED_BY_CUSTOMER_MAX


def test_made_up_agents_do_not_push_out_those_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    now, parsed = 0.0, list[str]()
    agents = Agents(lambda: now)

    def parse(user_agent: str) -> Agent:
        parsed.append(user_agent)
        return Agent(user_agent)

    monkeypatch.setattr(clients, "_parsed", parse)
    for number in range(AGENTS_REMEMBERED_MAX + 100):
        now = float(number)
        if agents.known("in use") is NO_AGENT:
            agents.parse("in use", "203.0.113.7", "acme")
        agents.parse(f"made up {number}", f"198.51.100.{number % 200}", "acme")
    assert len(parsed) == AGENTS_REMEMBERED_MAX + 101
    assert parsed.count("in use") == 1


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
