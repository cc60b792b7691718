"""Stored bytes and refused requests of customers, until they are reported. Pure; use it on the event loop's thread."""

from dataclasses import dataclass, field


@dataclass
class Refused:
    """What one limit of one customer has refused: requests, and what they held in the limit's unit."""

    requests: int = 0
    amount: float = 0.0


@dataclass
class Stored:
    """Bytes that one customer has stored, and the bytes a day that it may store."""

    bytes: float = 0.0
    bytes_per_day: float = 0.0


@dataclass(frozen=True)
class Report:
    """What has come together since the report before. `refused` is by customer id and limit."""

    number: int
    stored: dict[str, Stored] = field(default_factory=dict)
    refused: dict[tuple[str, str], Refused] = field(default_factory=dict)


class Usage:
    """Reports, one after the other: one that may not have arrived is sent again as it is, while the next one grows.

    Bounded: at most an entry a listed customer and limit, in each of the two.
    """

    def __init__(self) -> None:
        self._growing = Report(1)
        self._sent: Report | None = None

    def add_stored(self, customer_id: str, size_bytes: float, bytes_per_day: float) -> None:
        """Counts bytes that the customer stores; a negative number gives them back."""
        stored = self._growing.stored.setdefault(customer_id, Stored())
        stored.bytes += size_bytes
        stored.bytes_per_day = bytes_per_day

    def add_refused(self, customer_id: str, limit: str, amount: float) -> None:
        """Counts a request that a limit refuses."""
        refused = self._growing.refused.setdefault((customer_id, limit), Refused())
        refused.requests += 1
        refused.amount += amount

    def unsent_bytes(self, customer_id: str) -> float:
        """What the customer has stored that is in no report yet."""
        stored = self._growing.stored.get(customer_id)
        return stored.bytes if stored is not None else 0.0

    def report(self) -> Report:
        """The report to send: the last one until it is `settle`d."""
        if self._sent is None:
            self._sent, self._growing = self._growing, Report(self._growing.number + 1)
        return self._sent

    def settle(self) -> None:
        """The report has arrived."""
        self._sent = None
