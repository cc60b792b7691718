"""Sends what waits in Postgres: at least once, in order by incident and receiver, with attempts until it is dead.

A message is claimed as soon as there is room for it. A slow receiver or organisation has its share of the room and no more, so
others continue meanwhile.
"""

import asyncio
import random
from collections import Counter
from functools import partial
from typing import Any, Final, Literal, get_args

import structlog

from services.alerts.store import deliveries
from services.alerts.store.deliveries import Claimed, Room
from services.alerts.targets import KINDS
from services.notifications.mails import conversation_seconds_max
from services.notifications.senders import Senders
from services.notifications.settings import NotificationsSettings
from services.rim.database.pool import NotPublished, Postgres, PostgresAway
from services.rim.telemetry.metrics import begin, counter
from shared.metrics import NOTIFICATIONS_MESSAGES

log = structlog.get_logger(__name__)

#: How often it is looked whether a message is due that nobody has said is there.
LOOK_SECONDS: Final = 0.5
AWAY_SECONDS: Final = 1.0
#: What an attempt may take beside its answers; then the message is anybody's again.
_LEASE_MORE_SECONDS: Final = 30.0
#: Messages under way: to one receiver, and which part of all to those of one organisation.
OF_RECEIVER_MAX: Final = 4
OF_ORGANISATION_PART: Final = 4

#: Of an attempt.
_Counted = Literal["delivered", "again", "dead"]


class Sending:
    """The loop that sends; `wake` says that there is something."""

    def __init__(self, settings: NotificationsSettings, postgres: Postgres, senders: Senders) -> None:
        self._settings = settings
        self._postgres = postgres
        self._senders = senders
        self.wake = asyncio.Event()
        #: What is being sent.
        self._under_way: dict[asyncio.Task[None], Claimed] = {}
        # No other attempt takes as long as that of an e-mail.
        self._lease_seconds = conversation_seconds_max(settings) + _LEASE_MORE_SECONDS
        self._of_organisation = max(1, settings.messages_max // OF_ORGANISATION_PART)
        begin(NOTIFICATIONS_MESSAGES, KINDS, get_args(_Counted))

    async def run(self) -> None:
        """Sends until cancelled. Raises errors that it cannot handle."""
        try:
            while True:
                self.wake.clear()
                await self._begin()
                await self._some_end()
        finally:
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _begin(self) -> None:
        """Claims and begins until there is nothing more to send, or no room."""
        while (room := self._room()).rows:
            try:
                claimed = await self._postgres.ask(
                    partial(deliveries.claim, room=room, lease_seconds=self._lease_seconds)
                )
            except (PostgresAway, NotPublished) as error:
                log.warning("cannot_send", kind=type(error).__name__)
                await asyncio.sleep(AWAY_SECONDS)
                return
            for one in claimed:
                self._under_way[asyncio.create_task(self._send(one))] = one
            if not claimed:
                return

    async def _some_end(self) -> None:
        """Waits until a message has ended, `wake` is set, or it is time to look."""
        woken = asyncio.create_task(self.wake.wait())
        waited: set[asyncio.Task[Any]] = {woken, *self._under_way}
        try:
            await asyncio.wait(waited, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
        for task in [one for one in self._under_way if one.done()]:
            del self._under_way[task]
            await task

    def _room(self) -> Room:
        return Room(
            rows=self._settings.messages_max - len(self._under_way),
            of_receiver=OF_RECEIVER_MAX,
            of_organisation=self._of_organisation,
            receivers=Counter(one.receiver_id for one in self._under_way.values()),
            organisations=Counter(one.organisation_id for one in self._under_way.values()),
        )

    async def _send(self, claimed: Claimed) -> None:
        problem, may_pass = await self._senders.send(claimed)
        try:
            await self._say(claimed, problem, may_pass=may_pass)
        except (PostgresAway, NotPublished) as error:
            # After the lease it is sent again, under the same key.
            log.warning("cannot_say", message_id=claimed.id, kind=type(error).__name__)

    async def _say(self, claimed: Claimed, problem: str | None, *, may_pass: bool) -> None:
        if problem is None:
            await self._postgres.ask(partial(deliveries.delivered, delivery_id=claimed.id))
            _count(claimed, "delivered")
            return
        wait_seconds = None
        if may_pass and claimed.attempts < self._settings.attempts_max:
            wait_seconds = wait_bound_seconds(self._settings, claimed.attempts) * random.uniform(0.5, 1.0)
        outcome: _Counted = "dead" if wait_seconds is None else "again"
        log.warning("not_delivered", message_id=claimed.id, kind=claimed.kind, attempt=claimed.attempts, why=problem)
        fail = partial(deliveries.failed, delivery_id=claimed.id, problem=problem, wait_seconds=wait_seconds)
        await self._postgres.ask(fail)
        _count(claimed, outcome)


def _count(claimed: Claimed, outcome: _Counted) -> None:
    counter(NOTIFICATIONS_MESSAGES).labels(claimed.kind, outcome).inc()


def wait_bound_seconds(settings: NotificationsSettings, failed: int) -> float:
    """The longest wait after so many attempts. The shortest is half of it: attempts outlast a receiver that is away for an hour.

    Source: "equal jitter", M. Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015.
    """
    return min(settings.backoff_ms_max, settings.backoff_ms << (failed - 1)) / 1_000
