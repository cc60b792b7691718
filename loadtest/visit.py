"""One view of a locust user: does the work of `playing` step by step in a greenlet, without tasks.

A failed POST is repeated until it is answered, even if its page is closed: otherwise it would be unknown whether its beacons were
stored (see `playing`).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import Final

from loadtest.clients import cmcd, mux
from loadtest.clients.outbox import CmcdOutbox, MuxOutbox
from loadtest.expected.ledger import ViewRecord
from loadtest.expected.truth import SimulatedBeacon
from loadtest.playing import POLL_MS_MIN, RETRY_MS_MAX, RETRY_MS_MIN

#: How long a view's last POSTs are repeated, ms.
INSIST_MS_MAX: Final = 60_000


@dataclass(frozen=True)
class Answer:
    """How a POST ended: whether it was stored, and the time until the next try that the collector asks for, ms."""

    ok: bool
    wait_ms: int = 0


#: Sends a POST of one view's beacons. The last argument: whether the page is closing.
Post = Callable[[ViewRecord, Sequence[SimulatedBeacon], bytes, bool], Answer]


class Visit:
    """A view from page load to its last answered POST. `sleep` takes seconds; `now` is monotonic, in seconds."""

    def __init__(
        self, view: ViewRecord, post: Post, *, domain: str, sleep: Callable[[float], None], now: Callable[[], float]
    ) -> None:
        self._view, self._post, self._domain = view, post, domain
        self._sleep, self._now = sleep, now
        self._began = now()
        self._skew_ms = view.story.player.clock_skew_ms
        self._rng = Random(f"{view.story.player.view_id}/network")
        self._rtt_ms: int | None = None
        #: The collector's `Retry-After` ends then, ms of the view.
        self._not_before_ms = 0

    def live(self) -> bool:
        """The whole view; False when a POST never was answered."""
        return self._live_mux() if self._view.story.player.source == "mux" else self._live_cmcd()

    def _live_mux(self) -> bool:
        story, outbox = self._view.story, MuxOutbox(self._rng)
        beacons = mux.beacons(story, self._view.loaded_ms + self._skew_ms, self._domain)
        closing = [beacon for beacon in beacons if beacon.event == "viewend"]
        rest = (beacon for beacon in beacons if beacon.event != "viewend")
        is_known = True
        for at_ms, group in groupby(rest, key=lambda beacon: beacon.at_ms):
            is_known &= self._send_until(at_ms, outbox)
            outbox.add(group)
        is_known &= self._send_until(story.moments[-1].at_ms, outbox)
        if closing:
            closing = outbox.take_rest() + closing
            for _ in range(2 if story.player.closes_twice else 1):
                is_known &= self._insist(closing, self._mux_body, is_closing=True)
        tried = outbox.take_tried()
        return is_known and (not tried or self._insist(tried, self._mux_body))

    def _send_until(self, at_ms: int, outbox: MuxOutbox) -> bool:
        """The SDK's loop up to a time of the view: one POST in flight."""
        is_known = True
        while True:
            is_asked_to_wait = self._now_ms() < self._not_before_ms
            batch = [] if is_asked_to_wait else outbox.take(self._now_ms())
            if batch:
                answer = self._once(batch, self._mux_body(batch))
                outbox.answered(ok=answer.ok, now_ms=self._now_ms())
                if answer.ok and self._rng.random() < self._view.story.player.resend_share:
                    is_known &= self._insist(batch, self._mux_body)
                continue
            left_ms = at_ms - self._now_ms()
            if left_ms <= 0:
                return is_known
            due_ms = max(outbox.due_in_ms(self._now_ms()), self._not_before_ms - self._now_ms(), POLL_MS_MIN)
            self._sleep(min(left_ms, due_ms) / 1_000)

    def _live_cmcd(self) -> bool:
        story = self._view.story
        outbox = CmcdOutbox(story.player.batch_size)
        is_known = True
        for record in cmcd.beacons(story, self._view.loaded_ms + self._skew_ms):
            self._sleep(max(0, record.at_ms - self._now_ms()) / 1_000)
            batch = outbox.add(record)
            if batch and self._now_ms() < self._not_before_ms:
                outbox.put_back(batch)
            elif batch:
                answer = self._once(batch, cmcd.body(story, batch))
                if not answer.ok:
                    outbox.put_back(batch)
                elif self._rng.random() < story.player.resend_share:
                    is_known &= self._insist(batch, self._cmcd_body)
        self._sleep(max(0, story.moments[-1].at_ms - self._now_ms()) / 1_000)
        if story.moments[-1].kind == "close" and story.player.marks_its_end and (rest := outbox.take_rest()):
            is_known &= self._insist(rest, self._cmcd_body)
        tried = outbox.take_tried()
        return is_known and (not tried or self._insist(tried, self._cmcd_body))

    def _insist(
        self,
        batch: Sequence[SimulatedBeacon],
        body: Callable[[Sequence[SimulatedBeacon]], bytes],
        *,
        is_closing: bool = False,
    ) -> bool:
        """Repeats a POST until it is answered 2xx, no sooner than `Retry-After`; False when it never was."""
        gives_up_ms, wait_ms = self._now_ms() + INSIST_MS_MAX, RETRY_MS_MIN
        self._sleep(max(0, self._not_before_ms - self._now_ms()) / 1_000)
        while not self._once(batch, body(batch), is_closing=is_closing).ok:
            if self._now_ms() > gives_up_ms:
                return False
            self._sleep(max(wait_ms, self._not_before_ms - self._now_ms()) / 1_000)
            wait_ms = min(2 * wait_ms, RETRY_MS_MAX)
        return True

    def _once(self, batch: Sequence[SimulatedBeacon], body: bytes, *, is_closing: bool = False) -> Answer:
        sent_ms = self._now_ms()
        answer = self._post(self._view, batch, body, is_closing)
        self._rtt_ms = self._now_ms() - sent_ms
        if not answer.ok:
            self._not_before_ms = self._now_ms() + answer.wait_ms + 1
        return answer

    def _mux_body(self, batch: Sequence[SimulatedBeacon]) -> bytes:
        return mux.envelope(batch, self._view.loaded_ms + self._now_ms() + self._skew_ms, self._rtt_ms)

    def _cmcd_body(self, batch: Sequence[SimulatedBeacon]) -> bytes:
        return cmcd.body(self._view.story, batch)

    def _now_ms(self) -> int:
        """Ms since the page was loaded."""
        return int((self._now() - self._began) * 1_000)


def wall_ms() -> int:
    """What a right clock shows, ms since 1970."""
    return time.time_ns() // 1_000_000
