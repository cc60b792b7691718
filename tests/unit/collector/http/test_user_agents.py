"""The software of a client, and what user agents cost."""

import pytest

from services.collector.http import user_agents
from services.collector.http.user_agents import (
    AGENTS_PARSED_BY_ADDRESS_MAX,
    AGENTS_PARSED_BY_CUSTOMER_MAX,
    AGENTS_PARSED_PER_SECOND_MAX,
    AGENTS_REMEMBERED_MAX,
    Agents,
)
from services.collector.intake.sender.client import NO_AGENT, Agent

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36"
)


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

    monkeypatch.setattr(user_agents, "_parsed", parse)
    for number in range(AGENTS_REMEMBERED_MAX + 100):
        now = float(number)
        if agents.known("in use") is NO_AGENT:
            agents.parse("in use", "203.0.113.7", "acme")
        agents.parse(f"made up {number}", f"198.51.100.{number % 200}", "acme")
    assert len(parsed) == AGENTS_REMEMBERED_MAX + 101
    assert parsed.count("in use") == 1
