"""The events that a client has emitted and not yet delivered: when it sends, and what it repeats. Pure; time is an argument."""

from collections.abc import Iterable
from random import Random
from typing import Final

from loadtest.clients.mux import EVENTS_PER_POST_MAX
from loadtest.expected.truth import SimulatedBeacon

BATCH_MS: Final = 10_000
#: The SDK's own base is 10 s and its growth has no bound; a load test has less patience.
BACKOFF_BASE_MS: Final = 1_000
BACKOFF_MS_MAX: Final = 8_000


class MuxOutbox:
    """mux-embed's queue: one POST in flight, every 10 s or at once for urgent events; what failed goes back to its head.

    The next POST after a failure holds the old events and those that came since, so batches differ between retries.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._queue: list[SimulatedBeacon] = []
        self._in_flight: list[SimulatedBeacon] = []
        self._tried: set[int] = set()
        self._is_urgent = False
        self._failures = 0
        self._due_ms = BATCH_MS

    def add(self, beacons: Iterable[SimulatedBeacon]) -> None:
        """The player has emitted these."""
        for beacon in beacons:
            self._queue.append(beacon)
            self._is_urgent |= beacon.is_urgent

    def due_in_ms(self, now_ms: int) -> int:
        """How long until there may be something to send, if nothing is added or answered."""
        return 0 if self._is_urgent else max(0, self._due_ms - now_ms)

    def take(self, now_ms: int) -> list[SimulatedBeacon]:
        """What to POST now, if anything; it is in flight until `answered`."""
        if self._in_flight or self.due_in_ms(now_ms) > 0:
            return []
        self._due_ms = now_ms + BATCH_MS
        return self._depart()

    def take_rest(self) -> list[SimulatedBeacon]:
        """The events that a closing page sends, also while a request is in flight."""
        rest, self._queue = self._queue, []
        return rest

    def take_tried(self) -> list[SimulatedBeacon]:
        """What was sent once and failed, and waits to be sent again; the rest is lost with the page."""
        tried = [beacon for beacon in self._queue if beacon.seq in self._tried]
        self._queue = []
        return tried

    def answered(self, *, ok: bool, now_ms: int) -> None:
        """The POST in flight was stored, or was not known to be."""
        if ok:
            self._failures = 0
        else:
            self._queue = self._in_flight + self._queue
            self._failures += 1
            backoff_ms = int((1 + 2 ** min(self._failures - 1, 10) * self._rng.random()) * BACKOFF_BASE_MS)
            self._due_ms = now_ms + min(backoff_ms, BACKOFF_MS_MAX)
        self._in_flight = []

    def _depart(self) -> list[SimulatedBeacon]:
        self._is_urgent = False
        self._in_flight, self._queue = self._queue[:EVENTS_PER_POST_MAX], self._queue[EVENTS_PER_POST_MAX:]
        self._tried.update(beacon.seq for beacon in self._in_flight)
        return self._in_flight


class CmcdOutbox:
    """The CMCD reporter's queue: a POST whenever a batch is full, several in flight; no timer.

    What failed goes back to its head and leaves with the next record. A partial batch waits, and is lost with the page.
    """

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._queue: list[SimulatedBeacon] = []
        self._tried: set[int] = set()

    def add(self, beacon: SimulatedBeacon) -> list[SimulatedBeacon]:
        """The player has made this record; what to POST now, if anything."""
        self._queue.append(beacon)
        return self.take_rest() if len(self._queue) >= self._batch_size else []

    def take_rest(self) -> list[SimulatedBeacon]:
        """Everything queued, as a reporter that is stopped sends it."""
        rest, self._queue = self._queue, []
        self._tried.update(beacon.seq for beacon in rest)
        return rest

    def put_back(self, batch: list[SimulatedBeacon]) -> None:
        """This POST was not known to be stored."""
        self._queue = batch + self._queue

    def take_tried(self) -> list[SimulatedBeacon]:
        """What was sent once and failed; the rest is lost with the page."""
        tried = [beacon for beacon in self._queue if beacon.seq in self._tried]
        self._queue = []
        return tried
