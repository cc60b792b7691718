"""Routing: which slot answers for a key, given the owners of the partitions."""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.partitioning import partition_of


@dataclass(frozen=True)
class Owner:
    """A slot that has partitions. `url` is where its lookups listen; None when they are off."""

    slot: str
    url: str | None


@dataclass(frozen=True)
class Owners:
    """Who has which of an application's partitions; `url` is where lookups listen here."""

    url: str
    partitions: int
    by_partition: Mapping[int, Owner]

    def renewed(self, described: Mapping[int, Owner], *, is_settled: bool) -> "Owners":
        """With the owners that the group reported. During a rebalance it reports none, so the last known owners are kept."""
        known = described if is_settled else {**self.by_partition, **described}
        return Owners(self.url, self.partitions, known)


@dataclass(frozen=True)
class Local:
    """The key's partition is this slot's."""


@dataclass(frozen=True)
class Remote:
    """The key's partition is the slot's whose lookups listen at `url`."""

    url: str


@dataclass(frozen=True)
class Nobody:
    """No slot with a lookup address is known to own the key's partition."""


def route(key: bytes, owners: Owners) -> Local | Remote | Nobody:
    """Where the questions about `key` are answered."""
    owner = owners.by_partition.get(partition_of(key, owners.partitions))
    if owner is None or owner.url is None:
        return Nobody()
    return Local() if owner.url == owners.url else Remote(owner.url)
