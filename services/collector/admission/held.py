"""What requests hold of one process until they are answered: bytes in flight, slots. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Self


class InFlight:
    """Bytes that requests hold which are not yet answered: of their bodies, unpacked too, and of the records made of them.

    Each party (an address, a key) holds `party_share_max` of them at most, so that none takes the room of all others. One address
    holds at most half of a key's room, because keys are no secret.
    """

    def __init__(self, bytes_max: int, party_share_max: float = 1.0) -> None:
        self._bytes_max = bytes_max
        self._party_bytes_max = int(bytes_max * party_share_max)
        self._by_party: dict[str, int] = {}
        self.bytes = 0

    def take_bytes(self, size_bytes: int, *parties: str) -> bool:
        """Whether there is room for so many more; if so they count until given back."""
        held = self._by_party
        if self.bytes + size_bytes > self._bytes_max:
            return False
        for party in parties:
            if held.get(party, 0) + size_bytes > self._party_bytes_max:
                return False
        together = _together(parties)
        if together and held.get(together, 0) + size_bytes > self._party_bytes_max // 2:
            return False
        for party in (*parties, together) if together else parties:
            held[party] = held.get(party, 0) + size_bytes
        self.bytes += size_bytes
        return True

    def give_back(self, size_bytes: int, *parties: str) -> None:
        """Gives the bytes back: their request is answered."""
        self.bytes -= size_bytes
        together = _together(parties)
        for party in (*parties, together) if together else parties:
            left = self._by_party[party] - size_bytes
            if left:
                self._by_party[party] = left
            else:
                del self._by_party[party]


def _together(parties: tuple[str, ...]) -> str:
    """An address and a key as a party of their own; empty where there is one party."""
    return " with ".join(parties) if len(parties) > 1 else ""


class Share:
    """What one request holds of the bytes in flight, until the end of its context."""

    __slots__ = ("_bytes", "_in_flight", "_parties")

    def __init__(self, in_flight: InFlight, *parties: str) -> None:
        self._in_flight = in_flight
        self._parties = parties
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def grow_to(self, size_bytes: int) -> bool:
        """Whether there is room for the request to hold so many; it never shrinks."""
        more = size_bytes - self._bytes
        if more <= 0:
            return True
        if not self._in_flight.take_bytes(more, *self._parties):
            return False
        self._bytes = size_bytes
        return True

    def give_back(self) -> None:
        """The request is answered."""
        if self._bytes:
            self._in_flight.give_back(self._bytes, *self._parties)
            self._bytes = 0


class Slots:
    """Slots: a limited number at a time for each party. A request has several parties: its address, its customer."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    def take_slots(self, parties: Mapping[str, int]) -> bool:
        """Whether each party has a slot left of as many as it may have; if so they are taken until given back."""
        if any(self._taken[party] >= most for party, most in parties.items()):
            return False
        self._taken.update(dict.fromkeys(parties, 1))
        return True

    def give_back(self, parties: Iterable[str]) -> None:
        """Gives the slots back."""
        for party in parties:
            self._taken[party] -= 1
            if not self._taken[party]:
                del self._taken[party]
