"""Who plays in a run: a number of simulated views, or an audience that stays."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from deploy.local.supervisor import Service


class Crowd(Protocol):
    """Who plays in a run, and for how long."""

    @property
    def seconds(self) -> int:
        """After so long all are gone, but for what is sent again."""

    @property
    def seed(self) -> int:
        """The seed of their stories."""

    @property
    def summary(self) -> str:
        """What begins, as one line."""

    @property
    def waits_for_all(self) -> bool:
        """Whether it begins only once Spark, the slowest, is up too: then latencies do not have its start in them."""

    def service(self, url: str, truth: Path) -> Service:
        """The process that plays at a collector and writes its truth; it ends by itself."""


@dataclass(frozen=True)
class Players:
    """How the simulated players are run."""

    views: int
    seconds: int
    seed: int
    waits_for_all: bool = False
    #: Whether one cohort stalls (`loadtest.incident`); the collectors must know the networks.
    has_incident: bool = False

    @property
    def summary(self) -> str:
        """What begins."""
        return f"{self.views} views begin, all over in {self.seconds} s, seed {self.seed}"

    def service(self, url: str, truth: Path) -> Service:
        """The simulated players; they end by themselves."""
        arguments = {
            "--url": url,
            "--views": self.views,
            "--seconds": self.seconds,
            "--seed": self.seed,
            "--truth": truth,
        }
        words = tuple(str(word) for pair in arguments.items() for word in pair)
        flags = ("--incident",) if self.has_incident else ()
        return Service("players", ("-m", "loadtest.players", *words, *flags), stop_seconds=5.0, ends=True)


def audience(url: str, viewers: int, seed: int) -> Service:
    """Viewers who play for as long as the demo is up, after the comparison; the incident goes on."""
    words = ("--url", url, "--viewers", str(viewers), "--seed", str(seed), "--incident")
    return Service("audience", ("-m", "loadtest.audience", *words), stop_seconds=5.0)
