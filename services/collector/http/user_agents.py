"""Parses user agents: browser, operating system, device, and whether it is a bot. A parse takes milliseconds, so it is limited."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

import ua_parser

from services.collector.intake.sender.client import NO_AGENT, Agent

AGENTS_REMEMBERED_MAX: Final = 8_192
#: A user agent that is not cached takes 8 to 19 ms. At most so many a second are parsed, for all addresses; the rest stay unparsed.
AGENTS_PARSED_PER_SECOND_MAX: Final = 20
#: The same for one listed customer, and for all other keys together: a flood under one key leaves the others half.
AGENTS_PARSED_BY_CUSTOMER_MAX: Final = AGENTS_PARSED_PER_SECOND_MAX // 2
#: The same for one address, in so many seconds: players of one household have a few.
AGENTS_PARSED_BY_ADDRESS_MAX: Final = 5
ADDRESS_SECONDS: Final = 10
#: The parser's word for crawlers.
_SPIDER: Final = "Spider"


class Agents:
    """Parsed user agents, cached."""

    def __init__(self, now_seconds: Callable[[], float] = time.monotonic) -> None:
        self._now_seconds = now_seconds
        self._known: dict[str, Agent] = {}
        self._second = 0
        self._parsed = 0
        self._by_customer: Counter[str] = Counter()
        self._window = 0
        self._by_address: Counter[str] = Counter()

    def known(self, user_agent: str | None) -> Agent:
        """The families in `user_agent` where they are remembered; else `NO_AGENT`."""
        known = self._known.pop(user_agent, None) if user_agent else None
        if user_agent is None or known is None:
            return NO_AGENT
        # Used last: invented ones do not push out those in use.
        self._known[user_agent] = known
        return known

    def parse(self, user_agent: str, address: str, customer_id: str) -> Agent:
        """The families in a `user_agent` that is not remembered.

        Empty while too many new ones arrive: under all keys, under this customer's (empty: no listed one), or from this address.
        """
        second = int(self._now_seconds())
        if second != self._second:
            self._second, self._parsed = second, 0
            self._by_customer.clear()
        if second // ADDRESS_SECONDS != self._window:
            self._window = second // ADDRESS_SECONDS
            self._by_address.clear()
        if (
            self._parsed >= AGENTS_PARSED_PER_SECOND_MAX
            or self._by_customer[customer_id] >= AGENTS_PARSED_BY_CUSTOMER_MAX
            or self._by_address[address] >= AGENTS_PARSED_BY_ADDRESS_MAX
        ):
            return NO_AGENT
        self._parsed += 1
        self._by_customer[customer_id] += 1
        self._by_address[address] += 1
        if len(self._known) >= AGENTS_REMEMBERED_MAX:
            # The one that was not used for longest goes: dicts keep their order.
            del self._known[next(iter(self._known))]
        agent = self._known[user_agent] = _parsed(user_agent)
        return agent


def _parsed(user_agent: str) -> Agent:
    found = ua_parser.parse(user_agent)
    browser = found.user_agent.family if found.user_agent else None
    os = found.os.family if found.os else None
    device = found.device.family if found.device else None
    return Agent(browser, os, device, is_bot=device == _SPIDER or "headless" in user_agent.lower())


def warm_up() -> None:
    """Builds the parser's tables (about 0.2 s), so that no request waits for them."""
    ua_parser.parse("")
