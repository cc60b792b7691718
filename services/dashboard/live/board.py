"""The present live picture, sent to every connected page. The feed's thread updates it; the event loop publishes it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.dashboard.live.figured import Figured, SlicesOf, figured_by_minute
from services.dashboard.live.history import ALL, CARRY_MS, COUNTS, SLICES_MS, Has, LiveHistory
from services.dashboard.live.landed.slices import LandedSlices
from services.dashboard.live.picture import VIEWERS, LivePicture, Order, Partitions, State, ranked, totals
from services.dashboard.live.slices import (
    CUSTOMERS_MAX,
    SPAN_BUCKETS,
    SPAN_MS,
    Sums,
    first_of,
    names_of,
    others_now,
    series_of,
    slices_of,
    summed,
)
from services.rim.turns.fair_room import FairRoom
from services.rim.turns.fair_turns import FairTurns
from shared.schemas.live import BUCKET_MS, Live

#: How often waiting buckets are looked at.
SETTLE_SECONDS: Final = 0.5
#: How long a single answer waits for slices that have never been known.
WAIT_SECONDS_MAX: Final = 2.0
#: Pictures that are kept until the next one: one of all who look at the same. Organisations share the room.
PICTURES_MAX: Final = 200


class LiveBoard:
    """Belongs to one event loop; only `hand_over` and `set_reachable` may be called from other threads.

    Every listener gets the newest picture, never a queue of them: a slow page misses pictures and costs no memory.
    """

    def __init__(self, history: LiveHistory, *, now_ms: Callable[[], int], landed: LandedSlices) -> None:
        """`landed` has the slices of more customers than are summed here."""
        self._history = history
        self._landed = landed
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._is_reachable = True
        self._changed = asyncio.Event()
        #: Of the history, and of what is landed.
        self._drawn_versions = (-1, -1)
        self._version = 0
        #: The newest pictures, as far as they were requested: by scope, customer, slice, order, and the version of what is landed.
        self._pictures: FairRoom[tuple[CustomerScope, str, str, Order, int], bytes] = FairRoom(PICTURES_MAX)
        #: Anybody can name a slice that nobody has drawn. One is drawn at a time, and the organisations take turns.
        self._turns = FairTurns(1, of_one=1)
        self._wholes: FairRoom[CustomerScope, dict[str, Any]] = FairRoom(PICTURES_MAX)
        self._drawn_ms = 0
        #: What slices are made of, with pairs or without: by customer and scope.
        self._sums: FairRoom[tuple[str, CustomerScope, bool], Sums] = FairRoom(2 * CUSTOMERS_MAX)
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

    async def picture(
        self,
        asker: tuple[str, str],
        scope: CustomerScope,
        customer_id: str = ALL,
        slice_name: str = "",
        order: Order = VIEWERS,
    ) -> bytes:
        """The newest picture of a customer of this scope, or of `*`: all, in `order`; of one slice, if it is named. JSON.

        `asker` is an organisation and its caller, whose turn and room it takes unless it is drawn already.
        """
        known = self._pictures.find((scope, customer_id, slice_name, order, self._landed.version))
        if known is not None:
            return known
        organisation, caller = asker
        async with self._turns.turn(organisation, caller):
            # A draw holds the loop: what else is due goes first.
            await asyncio.sleep(0)
            look = (scope, customer_id, slice_name, order, self._landed.version)
            known = self._pictures.find(look)
            if known is None:
                known = msgspec.json.encode(self._draw_one(asker, scope, customer_id, slice_name, order))
                self._pictures.keep(look, known, party=organisation, member=caller)
            return known

    def look_for_slices(self, scope: CustomerScope, customer_id: str, slice_name: str) -> None:
        """Asks for newer slices where these are due. A picture does that too, but none is drawn while nothing is counted."""
        if self._is_too_much(scope, customer_id):
            self._landed.newest(scope, slice_name)

    async def wait_for_slices(self, scope: CustomerScope, customer_id: str, slice_name: str) -> None:
        """Waits a little for slices that have never been known; a stream sends its picture without them."""
        if self._is_too_much(scope, customer_id):
            await self._landed.wait(scope, slice_name, WAIT_SECONDS_MAX)

    def _draw_one(
        self, asker: tuple[str, str], scope: CustomerScope, customer_id: str, slice_name: str, order: Order
    ) -> LivePicture:
        whole = self._whole(asker, scope)
        customers = whole["customers"]
        one = customers.get(customer_id) or {"now": None, "totals": {}, "series": {}}
        figures = Figured(one["now"], one["totals"], one["series"], whole["from_ms"], whole["bucket_ms"])
        slices = SlicesOf("live", whole["shown_until_ms"], None)
        customers_total = len(customers) - 1 + whole["customers_omitted"]
        state = self._state()
        if self._is_too_much(scope, customer_id):
            found = self._landed.newest(scope, slice_name)
            slices = SlicesOf(found.state, found.as_of_ms, found.slices)
            if slice_name:
                figures = figured_by_minute(found)
        else:
            if slice_name:
                figures = self._figures_of(scope, customer_id, slice_name, whole["shown_until_ms"])
            slices.values = self._slices_of(asker, customer_id, scope, first_of(slice_name))
        if state == "live" and customers_total == 0 and not scope.is_everything:
            # Others are counted, and none of the customers of this scope: zeros would look as if they were.
            state, figures = "waiting", Figured(None, {}, {}, None, whole["bucket_ms"])
        return LivePicture(
            state=state,
            now_ms=self._drawn_ms,
            bucket_ms=figures.bucket_ms,
            shown_until_ms=whole["shown_until_ms"],
            from_ms=figures.from_ms,
            partitions=msgspec.convert(whole["partitions"], Partitions),
            customer=customer_id,
            slice=slice_name,
            now=figures.now,
            totals=figures.totals,
            others_now=figures.others_now,
            series=figures.series,
            customers=ranked(customers, order) if customer_id == ALL else [],
            customers_total=customers_total,
            customers_held=len(customers) - 1,
            slices=slices.values,
            slices_of=first_of(slice_name),
            slices_ms=SPAN_MS,
            slices_state=slices.state,
            slices_as_of_ms=slices.as_of_ms,
        )

    def _whole(self, asker: tuple[str, str], scope: CustomerScope) -> dict[str, Any]:
        """What a scope is shown of all its customers."""
        whole = self._wholes.find(scope)
        if whole is None:
            whole = self._history.picture(_has(scope))
            organisation, caller = asker
            self._wholes.keep(scope, whole, party=organisation, member=caller)
        return whole

    def _is_too_much(self, scope: CustomerScope, customer_id: str) -> bool:
        """Whether slices are of more customers than are summed here."""
        return customer_id == ALL and self._history.customers(_has(scope)) > CUSTOMERS_MAX

    def _figures_of(
        self, scope: CustomerScope, customer_id: str, slice_name: str, shown_until_ms: int | None
    ) -> Figured:
        """Those of one slice."""
        buckets = self._history.recent(customer_id, SLICES_MS // BUCKET_MS, _has(scope))
        series = series_of(buckets, names_of(slice_name), CARRY_MS)
        now = {name: values[-1] or 0 for name, values in series.items()} if buckets and buckets[-1] else None
        unnamed = others_now(buckets, names_of(slice_name), CARRY_MS)
        from_ms = None if shown_until_ms is None or not buckets else shown_until_ms - len(buckets) * BUCKET_MS
        return Figured(now, totals(series, COUNTS), series, from_ms, BUCKET_MS, unnamed)

    def _slices_of(
        self, asker: tuple[str, str], customer_id: str, scope: CustomerScope, within: str
    ) -> dict[str, list[dict[str, Any]]]:
        # Who names a slice, and any name may come, has no sums of its own.
        key = (customer_id, scope, bool(within))
        sums = self._sums.find(key)
        if sums is None:
            recent = self._history.recent(customer_id, SPAN_BUCKETS, _has(scope))
            sums = summed(recent, CARRY_MS, has_pairs=bool(within))
            organisation, caller = asker
            self._sums.keep(key, sums, party=organisation, member=caller)
        return slices_of(sums, within)

    @property
    def age_seconds(self) -> float:
        """How old the newest bucket shown is; 0 before the first."""
        shown_ms = self._history.shown_ms
        return 0.0 if shown_ms is None else max(0.0, (self._now_ms() - shown_ms) / 1_000)

    async def keep_settling(self) -> None:
        """Publishes what may be shown, until cancelled."""
        while True:
            self._history.settle(self._now_ms())
            if (self._history.version, self._landed.version) != self._drawn_versions:
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
        self._landed.close()
        self._wake()

    def _set_reachable(self, is_reachable: bool) -> None:
        if is_reachable != self._is_reachable:
            self._is_reachable = is_reachable
            self._draw()

    def _draw(self) -> None:
        self._drawn_versions = self._history.version, self._landed.version
        self._drawn_ms = self._now_ms()
        self._version += 1
        self._pictures.clear()
        self._wholes.clear()
        self._sums.clear()
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
