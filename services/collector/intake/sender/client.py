"""The sender of a request, and which of its attributes a customer's beacons may hold."""

from typing import Any, Final

import msgspec

from services.collector.intake.sender.customers import Customer
from shared.http.peer import truncated_ip

#: Attributes that identify a viewer over time, under the clients' own names.
VIEWER_NAMES: Final = frozenset(
    {
        "mux_viewer_id",
        "viewer_user_id",
        "viewer_id",
        "session_id",
        "session_start",
        "session_expires",
        "userId",
        "deviceId",
    }
)


class Agent(msgspec.Struct, frozen=True):
    """The software that a user agent's text names; None is unknown."""

    browser: str | None = None
    os: str | None = None
    device: str | None = None
    #: A crawler, or a browser without a window: `http/user_agents.py` decides.
    is_bot: bool = False


class Place(msgspec.Struct, frozen=True):
    """Where an address is: ISO 3166-1 country code, number of the autonomous system; None is unknown."""

    country: str | None = None
    asn: int | None = None


IPV4_BITS: Final = 32
#: What one device is given at least. A home may have 256 such networks (RFC 6177), and a carrier gives each phone one.
IPV6_SITE_BITS: Final = 64

NO_AGENT: Final = Agent()
NOWHERE: Final = Place()


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of one request."""

    address: str | None = None
    user_agent: str | None = None
    agent: Agent = NO_AGENT
    place: Place = NOWHERE
    #: The origin of the page that sent it; None where no page did.
    origin: str | None = None
    #: The viewer asked not to be tracked: `DNT: 1` or `Sec-GPC: 1`.
    wants_privacy: bool = False

    @property
    def site(self) -> str:
        """The address, or of IPv6 its network: who has one address of such a network has all of them."""
        return site_of(self.address)


def site_of(address: str | None) -> str:
    """What limits by address count by."""
    return truncated_ip(address, IPV4_BITS, IPV6_SITE_BITS) or "(unknown)"


class Sender(msgspec.Struct, frozen=True):
    """What of a client goes into one customer's beacons."""

    ip_trunc: str | None
    user_agent: str | None
    agent: Agent
    place: Place
    is_private: bool


def sender_of(client: Client, terms: Customer) -> Sender:
    """The client as the customer may see it. Of one who wants privacy: country, and kinds of software and device."""
    if client.wants_privacy and terms.privacy_signals == "honour":
        return Sender(None, None, client.agent, Place(client.place.country), is_private=True)
    ip_trunc = truncated_ip(client.address, terms.ipv4_bits_kept, terms.ipv6_bits_kept)
    return Sender(ip_trunc, client.user_agent, client.agent, client.place, is_private=False)


def without_viewer(attrs: dict[str, Any]) -> None:
    """Removes from `attrs` the attributes that identify a viewer."""
    for name in attrs.keys() & VIEWER_NAMES:
        del attrs[name]
