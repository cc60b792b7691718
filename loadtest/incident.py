"""The incident of a demo: from a moment on, viewers over one network by one CDN with one player version stalls. Pure.

Players get a network, a device and a version of their own. Networks are known by address (RFC 5737, which documents use), as
collectors do, and their numbers are of RFC 5398. Without an incident players have none of them, so the same seed has the same
stories as ever.
"""

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from loadtest.clients.devices import DEVICES
from loadtest.story import Network, Player

#: Each network with the share of players who watch over it.
NETWORKS: Final[tuple[tuple[Network, float], ...]] = (
    (Network(64_500, "DE", "203.0.113"), 0.6),
    (Network(64_501, "DE", "198.51.100"), 0.25),
    (Network(64_502, "FR", "192.0.2"), 0.15),
)
VERSIONS: Final = (("4.2.0", 0.7), ("4.1.7", 0.3))


@dataclass(frozen=True)
class Incident:
    """Whom it hits, and since when: ms since the run began."""

    cdn: str
    asn: int
    player_version: str
    from_ms: int

    @property
    def cohort(self) -> dict[str, str]:
        """The same as values of dimensions."""
        return {"cdn": self.cdn, "asn": str(self.asn), "player_version": self.player_version}

    def placed(self, player: Player, rng: Random) -> Player:
        """A player with a network, a device and, where the client reports one, a version."""
        (network,) = rng.choices([one for one, _ in NETWORKS], [share for _, share in NETWORKS])
        (version,) = rng.choices([one for one, _ in VERSIONS], [share for _, share in VERSIONS])
        host = rng.randint(1, 254)
        # Drawn last: which network and version a player of a seed has does not depend on it.
        (device,) = rng.choices([one for one, _ in DEVICES], [share for _, share in DEVICES])
        return replace(
            player,
            network=network,
            host=host,
            device=device,
            version=version if player.source == "mux" else None,
        )

    def hits(self, player: Player) -> bool:
        """Whether a player is in the cohort."""
        network = player.network
        return network is not None and (player.cdn, network.asn, player.version) == (
            self.cdn,
            self.asn,
            self.player_version,
        )


def incident_of(seconds: int) -> Incident:
    """The incident of a run of so many seconds: it begins late, since what is usual is known from views that ended before."""
    return Incident("fastly", NETWORKS[0][0].asn, VERSIONS[0][0], seconds * 600)
