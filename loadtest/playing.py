"""Plays one story in real time: emits its beacons when they are due and delivers them as its client does.

A closed page cannot send again. Here a failed POST is nevertheless repeated until it is answered. Otherwise it would be unknown
whether its beacons were stored, and there would be no truth to compare with.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from random import Random
from typing import Final, Protocol

from loadtest.clients import cmcd, mux
from loadtest.clients.outbox import CmcdOutbox, MuxOutbox
from loadtest.expected.ledger import ViewRecord
from loadtest.expected.truth import SimulatedBeacon

#: How long a CMCD POST may take to leave: in it, one overtakes another.
CMCD_DELAY_MS_MAX: Final = 400
#: The shortest wait for something to send: a timer that is due with nothing to send must not spin.
POLL_MS_MIN: Final = 20
RETRY_MS_MIN: Final = 300
RETRY_MS_MAX: Final = 4_000


class Post(Protocol):
    """Sends one POST of this view's beacons; whether it was answered 2xx. Never raises for what the network does."""

    async def __call__(
        self, view: ViewRecord, beacons: Sequence[SimulatedBeacon], body: bytes, *, is_closing: bool = False
    ) -> bool: ...


class Clock:
    """The run's clock: ms since it began, by monotonic time, and what a right wall clock shows then.

    With a `speed` above 1 the run's time passes faster than real time; only tests want that.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self.began_ms = time.time_ns() // 1_000_000
        self._began = time.monotonic()
        self._speed = speed

    def now_ms(self) -> int:
        """Ms since the run began."""
        return int((time.monotonic() - self._began) * 1_000 * self._speed)

    async def sleep(self, ms: int) -> None:
        """Waits this long in the run's time."""
        await asyncio.sleep(max(0, ms) / 1_000 / self._speed)

    async def until(self, at_ms: int) -> None:
        """Waits for this time of the run."""
        await self.sleep(at_ms - self.now_ms())

    async def wait(self, event: asyncio.Event, ms_max: int) -> None:
        """Waits for the event, but no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ms_max / 1_000 / self._speed):
                await event.wait()


@dataclass(frozen=True)
class Stage:
    """What all views of a run share."""

    clock: Clock
    post: Post
    domain: str
    #: Ms since the run began after which nothing is tried again.
    gives_up_ms: int


class Playing:
    """One view being lived."""

    def __init__(self, stage: Stage, view: ViewRecord, rng: Random) -> None:
        self._stage, self._view, self._rng = stage, view, rng
        self._story = view.story
        self._skew_ms = view.story.player.clock_skew_ms
        self._is_over = False
        self._kick = asyncio.Event()
        self._rtt_ms: int | None = None

    async def live(self) -> bool:
        """The whole view, until every POST is answered; False when one never was."""
        await self._stage.clock.until(self._story.arrives_ms)
        return await (self._live_mux() if self._story.player.source == "mux" else self._live_cmcd())

    async def _live_mux(self) -> bool:
        outbox = MuxOutbox(self._rng)
        sender = asyncio.create_task(self._send_mux(outbox))
        beacons = mux.beacons(self._story, self._view.loaded_ms + self._skew_ms, self._stage.domain)
        closing = [beacon for beacon in beacons if beacon.event == "viewend"]
        for at_ms, group in groupby((b for b in beacons if b.event != "viewend"), key=lambda beacon: beacon.at_ms):
            await self._until(at_ms)
            outbox.add(group)
            self._kick.set()
        await self._until(self._story.moments[-1].at_ms)
        if closing:
            closing = outbox.take_rest() + closing
        self._is_over = True
        self._kick.set()
        copies = (2 if self._story.player.closes_twice else 1) if closing else 0
        closed = await asyncio.gather(
            *(self._insist(partial(self._post_mux, closing, is_closing=True)) for _ in range(copies))
        )
        sent = await sender
        tried = outbox.take_tried()
        return all(closed) and sent and (not tried or await self._insist(partial(self._post_mux, tried)))

    async def _send_mux(self, outbox: MuxOutbox) -> bool:
        """The SDK's loop: one POST in flight. It ends with the page, once the POST in flight has an answer.

        False only if a POST sent twice stays unanswered.
        """
        clock = self._stage.clock
        all_answered = True
        while not self._is_over:
            batch = outbox.take(clock.now_ms())
            if not batch:
                self._kick.clear()
                await clock.wait(self._kick, max(outbox.due_in_ms(clock.now_ms()), POLL_MS_MIN))
                continue
            ok = await self._post_mux(batch)
            outbox.answered(ok=ok, now_ms=clock.now_ms())
            if ok and self._rng.random() < self._story.player.resend_share:
                all_answered &= await self._insist(partial(self._post_mux, batch))
        return all_answered

    async def _post_mux(self, batch: Sequence[SimulatedBeacon], *, is_closing: bool = False) -> bool:
        clock = self._stage.clock
        sent_ms = clock.now_ms()
        body = mux.envelope(batch, clock.began_ms + sent_ms + self._skew_ms, self._rtt_ms)
        ok = await self._stage.post(self._view, batch, body, is_closing=is_closing)
        self._rtt_ms = clock.now_ms() - sent_ms
        return ok

    async def _live_cmcd(self) -> bool:
        outbox = CmcdOutbox(self._story.player.batch_size)
        sending: set[asyncio.Task[bool]] = set()
        for record in cmcd.beacons(self._story, self._view.loaded_ms + self._skew_ms):
            await self._until(record.at_ms)
            if batch := outbox.add(record):
                sending.add(asyncio.create_task(self._send_cmcd(outbox, batch)))
        await self._until(self._story.moments[-1].at_ms)
        if (
            self._story.moments[-1].kind == "close"
            and self._story.player.marks_its_end
            and (rest := outbox.take_rest())
        ):
            sending.add(asyncio.create_task(self._send_cmcd(outbox, rest)))
        again_ok = all(await asyncio.gather(*sending))
        tried = outbox.take_tried()
        return again_ok and (not tried or await self._insist(partial(self._post_cmcd, tried)))

    async def _send_cmcd(self, outbox: CmcdOutbox, batch: list[SimulatedBeacon]) -> bool:
        """One POST on its way among others; what fails goes back. False only if a POST sent twice stays unanswered."""
        await self._stage.clock.sleep(self._rng.randint(0, CMCD_DELAY_MS_MAX))
        if not await self._post_cmcd(batch):
            outbox.put_back(batch)
            return True
        if self._rng.random() < self._story.player.resend_share:
            return await self._insist(partial(self._post_cmcd, batch))
        return True

    async def _post_cmcd(self, batch: Sequence[SimulatedBeacon]) -> bool:
        return await self._stage.post(self._view, batch, cmcd.body(self._story, batch))

    async def _insist(self, post: Callable[[], Awaitable[bool]]) -> bool:
        """Repeats a POST until it is answered 2xx; False when the run gives up."""
        wait_ms = RETRY_MS_MIN
        while not await post():
            if self._stage.clock.now_ms() + wait_ms > self._stage.gives_up_ms:
                return False
            await self._stage.clock.sleep(wait_ms)
            wait_ms = min(2 * wait_ms, RETRY_MS_MAX)
        return True

    async def _until(self, at_ms: int) -> None:
        await self._stage.clock.until(self._story.arrives_ms + at_ms)
