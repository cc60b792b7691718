"""Finds what the intake may know about a request's sender: address behind proxies, place, software, privacy signals."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import maxminddb
import msgspec
import structlog
import ua_parser
from aiohttp import web

from services.collector.intake.post import USER_AGENT_CHARS_MAX
from services.collector.intake.sender.client import NO_AGENT, NOWHERE, Agent, Client, Place, site_of
from services.collector.intake.values import whole_characters
from shared.http.peer import Network, client_address

log = structlog.get_logger(__name__)

AGENTS_REMEMBERED_MAX: Final = 8_192
PLACES_REMEMBERED_MAX: Final = 65_536
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


class Places:
    """Addresses looked up in databases of MaxMind's format. Raises `OSError` or `ValueError` for a file that is not a database."""

    def __init__(self, files: Sequence[Path]) -> None:
        try:
            self._readers = [maxminddb.open_database(file, maxminddb.MODE_MEMORY) for file in files]
        except maxminddb.InvalidDatabaseError as error:
            raise ValueError(f"no database of places: {error}") from error
        self.find = lru_cache(PLACES_REMEMBERED_MAX)(self._find) if files else _nowhere

    def _find(self, address: str | None) -> Place:
        country: str | None = None
        asn: int | None = None
        for reader in self._readers:
            try:
                found = reader.get(address) if address else None
            except (ValueError, maxminddb.InvalidDatabaseError):
                continue
            if isinstance(found, Mapping):
                code = _within(found, "country", "iso_code")
                number = _within(found, "autonomous_system_number")
                country = code if isinstance(code, str) else country
                asn = number if isinstance(number, int) else asn
        return Place(country, asn)


def _nowhere(_address: str | None) -> Place:
    return NOWHERE


def _within(found: Any, *names: str) -> Any:
    for name in names:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


class Clients:
    """Makes the `Client` of a request."""

    def __init__(self, proxies: Sequence[Network] = (), places: Places | None = None) -> None:
        self._proxies = tuple(proxies)
        self._places = places or Places([])
        self._agents = Agents()
        threading.Thread(target=warm_up, name="warm-up", daemon=True).start()

    def address_of(self, request: web.BaseRequest) -> str | None:
        """The address of the client that sent `request`."""
        if not self._proxies:
            return request.remote
        return client_address(request.remote, request.headers.getall("X-Forwarded-For", []), self._proxies)

    def of(self, request: web.BaseRequest, address: str | None) -> Client:
        """Who sent `request` from this address; software that is not remembered is `NO_AGENT`."""
        headers = request.headers
        user_agent = headers.get("User-Agent")
        if user_agent is not None:
            user_agent = whole_characters(user_agent[:USER_AGENT_CHARS_MAX])
        return Client(
            address=address,
            user_agent=user_agent,
            agent=self._agents.known(user_agent),
            place=self._places.find(address),
            origin=headers.get("Origin"),
            wants_privacy=headers.get("Sec-GPC") == "1" or headers.get("DNT") == "1",
        )

    def read_agent(self, client: Client, customer_id: str) -> Client:
        """The client with its software, as far as `Agents.parse` reads it for this customer."""
        assert client.user_agent is not None
        agent = self._agents.parse(client.user_agent, site_of(client.address), customer_id)
        return msgspec.structs.replace(client, agent=agent)
