"""The present live picture, sent to every connected page. The feed's thread updates it; the event loop publishes it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal

import orjson

from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.dashboard.live.history import ALL, CARRY_MS, Has, LiveHistory
from services.dashboard.live.slices import CUSTOMERS_MAX, SPAN_BUCKETS, SPAN_MS, slices_of
from shared.schemas.live import Live

#: How often waiting buckets are looked at.
SETTLE_SECONDS: Final = 0.5
#: Pictures that are kept until the next one, one an organisation that looks.
SCOPES_MAX: Final = 200

#: live: there is a picture. waiting: the broker answers, and nothing has been counted. away: the broker does not answer.
State = Literal["live", "waiting", "away"]


class LiveBoard:
    """Belongs to one event loop; only `hand_over` and `set_reachable` may be called from other threads.

    Every listener gets the newest picture, never a queue of them: a slow page misses pictures and costs no memory.
    """

    def __init__(self, history: LiveHistory, *, now_ms: Callable[[], int]) -> None:
        self._history = history
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._is_reachable = True
        self._changed = asyncio.Event()
        self._drawn_version = -1
        self._version = 0
        #: scope → the newest picture of its customers, as far as they were requested
        self._pictures: dict[CustomerScope, bytes] = {}
        self._drawn_ms = 0
        #: The same for slices, by customer too.
        self._slices: dict[tuple[str, CustomerScope], bytes] = {}
        self.is_closed = False
        self._draw()

    def hand_over(self, records: Sequence[Live]) -> None:
        """Takes what the feed has read. Safe from any thread."""
        self._loop.call_soon_threadsafe(self.take_records, records)

    def set_reachable(self, is_reachable: bool) -> None:
        """Takes whether the broker answers. Safe from any thread."""
        self._loop.call_soon_threadsafe(self._set_reachable, is_reachable)

    def take_records(self, records: Sequence[Live]) -> None:
        """Takes records, on the loop's thread."""
        now_ms = self._now_ms()
        for record in records:
            self._history.take_record(record, now_ms)

    def picture(self, scope: CustomerScope) -> bytes:
        """The newest picture of these customers as JSON."""
        known = self._pictures.get(scope)
        if known is None:
            picture = self._history.picture(_has(scope))
            known = orjson.dumps({"state": self._state(), "now_ms": self._drawn_ms, **picture})
            if len(self._pictures) < SCOPES_MAX:
                self._pictures[scope] = known
        return known

    @property
    def age_seconds(self) -> float:
        """How old the newest bucket shown is; 0 before the first."""
        shown_ms = self._history.shown_ms
        return 0.0 if shown_ms is None else max(0.0, (self._now_ms() - shown_ms) / 1_000)

    def slices(self, customer_id: str, scope: CustomerScope) -> bytes:
        """The live slices of a customer of this scope, or of `*`, as JSON; `dimensions` is null for too many customers."""
        known = self._slices.get((customer_id, scope))
        if known is None:
            has = _has(scope)
            is_too_much = customer_id == ALL and self._history.customers(has) > CUSTOMERS_MAX
            recent = [] if is_too_much else self._history.recent(customer_id, SPAN_BUCKETS, has)
            dimensions = None if is_too_much else slices_of(recent, CARRY_MS)
            known = orjson.dumps({"span_ms": SPAN_MS, "dimensions": dimensions})
            if len(self._slices) < CUSTOMERS_MAX:
                self._slices[customer_id, scope] = known
        return known

    def finished_after(self, since_ms: int, scope: CustomerScope) -> int | None:
        """See `LiveHistory.finished_after`."""
        return self._history.finished_after(since_ms, _has(scope))

    async def keep_settling(self) -> None:
        """Publishes what may be shown, until cancelled."""
        while True:
            self._history.settle(self._now_ms())
            if self._history.version != self._drawn_version:
                self._draw()
            await asyncio.sleep(SETTLE_SECONDS)

    async def newer_than(self, version: int, seconds_max: float) -> int | None:
        """The picture's version once it is newer than `version`; None when none came in time or the board closed."""
        try:
            async with asyncio.timeout(seconds_max):
                while self._version <= version and not self.is_closed:
                    await self._changed.wait()
        except TimeoutError:
            return None
        return None if self.is_closed else self._version

    def close(self) -> None:
        """Lets every listener go."""
        self.is_closed = True
        self._wake()

    def _set_reachable(self, is_reachable: bool) -> None:
        if is_reachable != self._is_reachable:
            self._is_reachable = is_reachable
            self._draw()

    def _draw(self) -> None:
        self._drawn_version = self._history.version
        self._drawn_ms = self._now_ms()
        self._version += 1
        self._pictures.clear()
        self._slices.clear()
        self._wake()

    def _state(self) -> State:
        if not self._is_reachable:
            return "away"
        return "waiting" if self._history.shown_ms is None else "live"

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _has(scope: CustomerScope) -> Has:
    return None if scope == EVERYTHING else scope.has
