"""The headers of a player's POST, as browsers send them."""

from loadtest.clients.devices import COMPUTER
from loadtest.story import Player


def route_of(player: Player) -> str:
    """The collector's route that it posts to."""
    return "/" if player.source == "mux" else "/cmcd/<key>"


def path_of(player: Player) -> str:
    """Where it posts to."""
    return route_of(player).replace("<key>", player.customer_id)


def headers_of(player: Player, *, is_closing: bool = False) -> dict[str, str]:
    """Its headers; `is_closing`: by sendBeacon."""
    mux_kind = "text/plain;charset=UTF-8" if is_closing else "text/plain"
    headers = {
        "Content-Type": mux_kind if player.source == "mux" else "application/cmcd",
        "Origin": f"https://www.{player.customer_id}.example",
        "User-Agent": (player.device or COMPUTER).user_agent,
    }
    # As a balancer before the collector says whose address it is.
    return headers | ({"X-Forwarded-For": player.address} if player.address is not None else {})
