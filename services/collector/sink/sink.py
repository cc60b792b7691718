"""Sink: the interface to which a request's records go, and its implementation in memory."""

from collections.abc import Sequence
from typing import Literal, Protocol

from services.collector.sink.records import Record
from services.rim.admin.admin import Check

UnstoredReason = Literal["queue_full", "deadline", "delivery_failed", "dead", "spool_full", "spool_failed"]


class Unstored(RuntimeError):
    """The records are not stored, or (`deadline`, and part of a request) not known to be. The sender must send again."""

    def __init__(self, reason: UnstoredReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: UnstoredReason = reason


class Sink(Protocol):
    """Stores records durably."""

    async def store(self, records: Sequence[Record]) -> None:
        """Returns once every record is on all in-sync replicas; raises `Unstored` when that is not known.

        The records of one call are in the order given, with no other call's between them.
        """

    def records_waiting(self) -> int:
        """Records accepted and not yet known to be stored."""

    def health(self) -> Check:
        """Whether the sink can ever store again. A broker that is away for now is no failure."""

    async def close(self, seconds_max: float) -> int:
        """Waits for what is still under way and stops; the number of records that were not stored by then."""


class MemorySink:
    """A `Sink` that keeps records in a list, and fails on request."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.failing: UnstoredReason | None = None
        self.closed = False

    async def store(self, records: Sequence[Record]) -> None:
        """Keeps the records, all or none."""
        if self.closed:
            raise Unstored("dead", "the sink is closed")
        if self.failing is not None:
            raise Unstored(self.failing, "failure requested")
        self.records.extend(records)

    def records_waiting(self) -> int:
        """None ever wait."""
        return 0

    def health(self) -> Check:
        """Alive until closed."""
        return Check(not self.closed, "closed" if self.closed else "ok")

    async def close(self, seconds_max: float) -> int:  # noqa: ARG002 - the port's signature
        """Takes nothing more."""
        self.closed = True
        return 0
