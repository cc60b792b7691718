"""Sends what waits in Postgres: at least once, in order by incident and receiver, with attempts until it is dead."""

import asyncio
import random
from functools import partial
from typing import Final

import structlog

from services.alerts.store import deliveries
from services.alerts.store.deliveries import Claimed
from services.notifications.senders import Senders
from services.notifications.settings import NotificationsSettings
from services.rim.database.pool import NotPublished, Postgres, PostgresAway
from services.rim.telemetry.metrics import counter
from shared.metrics import NOTIFICATIONS_MESSAGES

log = structlog.get_logger(__name__)

#: How often it is looked whether a message is due that nobody has said is there.
LOOK_SECONDS: Final = 0.5
AWAY_SECONDS: Final = 1.0
#: What an attempt may take beside the answer; then the message is anybody's again.
_LEASE_MORE_SECONDS: Final = 30.0


class Sending:
    """The loop that sends; `wake` says that there is something."""

    def __init__(self, settings: NotificationsSettings, postgres: Postgres, senders: Senders) -> None:
        self._settings = settings
        self._postgres = postgres
        self._senders = senders
        self.wake = asyncio.Event()

    async def run(self) -> None:
        """Sends until cancelled. Raises what it cannot handle."""
        settings = self._settings
        # Connecting, logging in and sending an e-mail may each take as long as an answer.
        lease_seconds = 5 * settings.answer_ms_max / 1_000 + _LEASE_MORE_SECONDS
        claim = partial(deliveries.claim, rows_max=settings.messages_max, lease_seconds=lease_seconds)
        while True:
            self.wake.clear()
            try:
                claimed = await self._postgres.ask(claim)
                await asyncio.gather(*(self._send(one) for one in claimed))
            except (PostgresAway, NotPublished) as error:
                log.warning("cannot_send", kind=type(error).__name__)
                await asyncio.sleep(AWAY_SECONDS)
                continue
            if not claimed:
                try:
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self.wake.wait()
                except TimeoutError:
                    continue

    async def _send(self, claimed: Claimed) -> None:
        problem, may_pass = await self._senders.send(claimed)
        if problem is None:
            await self._postgres.ask(partial(deliveries.delivered, delivery_id=claimed.id))
            counter(NOTIFICATIONS_MESSAGES).labels(claimed.kind, "delivered").inc()
            return
        wait_seconds = None
        if may_pass and claimed.attempts < self._settings.attempts_max:
            wait_seconds = self._wait_seconds(claimed.attempts)
        outcome = "dead" if wait_seconds is None else "again"
        log.warning("not_delivered", message_id=claimed.id, kind=claimed.kind, attempt=claimed.attempts, why=problem)
        fail = partial(deliveries.failed, delivery_id=claimed.id, problem=problem, wait_seconds=wait_seconds)
        await self._postgres.ask(fail)
        counter(NOTIFICATIONS_MESSAGES).labels(claimed.kind, outcome).inc()

    def _wait_seconds(self, failed: int) -> float:
        """ "Full jitter": M. Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015."""
        bound_ms = min(self._settings.backoff_ms_max, self._settings.backoff_ms << (failed - 1))
        return random.random() * bound_ms / 1_000
