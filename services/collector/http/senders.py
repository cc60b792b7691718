"""Finds what the intake may know about a request's sender: address behind proxies, place, software, privacy signals."""

import threading
from collections.abc import Sequence

import msgspec
from aiohttp import web

from services.collector.http.places import Places
from services.collector.http.user_agents import Agents, warm_up
from services.collector.intake.post import USER_AGENT_CHARS_MAX
from services.collector.intake.sender.client import Client, site_of
from services.collector.intake.values import whole_characters
from shared.http.peer import Network, client_address


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
