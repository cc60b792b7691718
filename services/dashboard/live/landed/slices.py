"""Slices of many customers together: added up by Postgres once a landed minute and scope, and kept. Nobody waits for them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from services.accounts.core.customer_scope import CustomerScope
from services.dashboard.live.landed.sums import Landed, LandedSlice, LandedSums
from services.dashboard.live.picture import SlicesState
from services.dashboard.live.slices import Sums, first_of, slices_of
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from shared.schemas.live import OTHER
from shared.schemas.live_minute import MINUTE_MS

log = structlog.get_logger(__name__)

#: How long after its end a minute is asked for: it is landed 5 s after its end.
AFTER_MS: Final = 10_000
#: Between two questions where there was nothing new, or no answer.
AGAIN_MS: Final = 5_000
#: Between two where Postgres needed too long, or refused.
FAILED_MS: Final = MINUTE_MS
#: What is kept: one of all who may see the same customers, and look at the same slice.
KEPT_MAX: Final = 100
#: Of one scope, so that nobody who names slice after slice takes the room of others.
KEPT_OF_SCOPE_MAX: Final = 20
#: What nobody has looked at for so long gives its room to another.
UNWANTED_MS: Final = MINUTE_MS


@dataclass(eq=False)
class KeptSlices:
    """The newest that is known of one scope and slice, and what has become of the last question."""

    state: SlicesState = "coming"
    whole: LandedSums | None = None
    #: By dimension its values; within the slice, if there is one.
    slices: dict[str, list[dict[str, Any]]] | None = None
    #: Of the slice alone, minute by minute.
    series: dict[str, list[int | None]] = field(default_factory=dict)
    others_now: int = 0
    wanted_ms: int = 0
    due_ms: int = 0
    asking: asyncio.Task[None] | None = None

    @property
    def as_of_ms(self) -> int | None:
        """The end of the minute that all is of."""
        return None if self.whole is None else (self.whole.minute + 1) * MINUTE_MS


class LandedSlices:
    """Belongs to one event loop. One question is asked at a time, so that they leave Postgres to others."""

    def __init__(self, landed: Landed, *, now_ms: Callable[[], int]) -> None:
        self._landed = landed
        self._now_ms = now_ms
        self._kept: dict[tuple[CustomerScope, str], KeptSlices] = {}
        self._turn = asyncio.Lock()
        #: Changes whenever anything that is kept does.
        self.version = 0

    def newest(self, scope: CustomerScope, slice_name: str) -> KeptSlices:
        """What is known by now. Where something newer is due it is asked for, and the version changes when it has come."""
        now_ms = self._now_ms()
        one = self._kept.get((scope, slice_name))
        if one is None:
            if not self._has_room(scope, now_ms):
                return KeptSlices("failed")
            one = self._kept[scope, slice_name] = KeptSlices()
        one.wanted_ms = now_ms
        if one.asking is None and now_ms >= one.due_ms:
            one.asking = asyncio.create_task(self._refresh(scope, slice_name, one))
        return one

    async def wait(self, scope: CustomerScope, slice_name: str, seconds_max: float) -> None:
        """Waits a little for what has never been known."""
        one = self.newest(scope, slice_name)
        if one.state == "coming" and one.asking is not None:
            await asyncio.wait({one.asking}, timeout=seconds_max)

    def close(self) -> None:
        """Ends what is being asked."""
        for one in self._kept.values():
            if one.asking is not None:
                one.asking.cancel()

    async def _refresh(self, scope: CustomerScope, slice_name: str, one: KeptSlices) -> None:
        before = one.state, one.whole
        try:
            if slice_name:
                await self._ask_within(scope, slice_name, one)
            else:
                async with self._turn:
                    await self._ask_whole(scope, one)
        except (PostgresAway, NotPublished) as error:
            one.state = "away" if isinstance(error, PostgresAway) else "none"
            one.due_ms = self._now_ms() + AGAIN_MS
        except (TimeoutError, QueryRefused) as error:
            log.warning("slices_failed", why=type(error).__name__)
            one.state, one.due_ms = "failed", self._now_ms() + FAILED_MS
        except Exception:
            # The task's top: the next question may be answered.
            log.exception("slices_failed")
            one.state, one.due_ms = "failed", self._now_ms() + FAILED_MS
        finally:
            one.asking = None
            if before != (one.state, one.whole):
                self.version += 1

    async def _ask_whole(self, scope: CustomerScope, one: KeptSlices) -> None:
        known = -1 if one.whole is None else one.whole.minute
        found = await self._landed.whole(scope, known, (self._now_ms() - AFTER_MS) // MINUTE_MS - 1)
        if found is not None:
            one.whole, one.slices = found, slices_of(found.sums)
        self._answered(one)

    async def _ask_within(self, scope: CustomerScope, slice_name: str, one: KeptSlices) -> None:
        """A slice is of the minute that the whole of its scope is of."""
        whole = self.newest(scope, "")
        if whole.asking is not None:
            await asyncio.wait({whole.asking})
        if whole.whole is None:
            one.state, one.due_ms = whole.state, max(whole.due_ms, self._now_ms() + AGAIN_MS)
            return
        if whole.whole is not one.whole:
            async with self._turn:
                found = await self._landed.of_slice(scope, slice_name, whole.whole)
            within = first_of(slice_name)
            one.slices = slices_of(_joined(whole.whole.sums, found.sums, within), within)
            one.series, one.others_now = found.series, _unnamed(found, slice_name, one.slices)
            one.whole = whole.whole
        self._answered(one)
        if whole.state in ("away", "failed"):
            one.state, one.due_ms = whole.state, whole.due_ms

    def _answered(self, one: KeptSlices) -> None:
        if one.whole is None:
            one.state, one.due_ms = "none", self._now_ms() + AGAIN_MS
            return
        one.state = "by_minute"
        # A minute that is late is looked for again and again.
        one.due_ms = max(self._now_ms() + AGAIN_MS, (one.whole.minute + 2) * MINUTE_MS + AFTER_MS)

    def _has_room(self, scope: CustomerScope, now_ms: int) -> bool:
        """Whether one more of this scope may be kept. What was looked at longest ago in the scope gives its room."""
        its = [(key, one) for key, one in self._kept.items() if key[0] == scope]
        if len(its) >= KEPT_OF_SCOPE_MAX:
            # The whole of a scope stays: its slices are of the same minute.
            slices = [(one.wanted_ms, key[1]) for key, one in its if key[1] and one.asking is None]
            if not slices:
                return False
            del self._kept[scope, min(slices)[1]]
        if len(self._kept) >= KEPT_MAX:
            before_ms = now_ms - UNWANTED_MS
            for key in [key for key, one in self._kept.items() if one.asking is None and one.wanted_ms < before_ms]:
                del self._kept[key]
        return len(self._kept) < KEPT_MAX


def _joined(sums: Sums, of_slice: Sums, within: str) -> Sums:
    """All sums. A value that is not among the largest is counted among the others, until it has a name here."""
    found = sums | of_slice
    others = f"{within.partition('=')[0]}={OTHER}"
    if within in of_slice and within not in sums and others in sums:
        named = of_slice[within]
        found[others] = {name: max(0, figure - named.get(name, 0)) for name, figure in sums[others].items()}
    return found


def _unnamed(found: LandedSlice, slice_name: str, slices: dict[str, list[dict[str, Any]]]) -> int:
    """At most so many viewers of the slice are unnamed: of a pair, those of its first value under "(other)" of the second."""
    second = slice_name.partition("=")[0].partition(",")[2]
    if not second:
        return found.others_now
    return min(
        found.others_now, next((one["viewers_now"] for one in slices.get(second, []) if one["value"] == OTHER), 0)
    )
