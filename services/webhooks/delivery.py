"""Delivers one message to one receiver: attempts with exponential backoff and jitter."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import aiohttp
import structlog

from services.rim.http.signing import headers
from services.rim.telemetry.metrics import counter
from services.webhooks.message import Message
from shared.metrics import WEBHOOKS_ATTEMPTS

log = structlog.get_logger(__name__)

#: The receiver is gone for ever: another attempt has no use.
_GONE: Final = 410


@dataclass(frozen=True)
class Policy:
    """How often a message is tried, and how long is waited."""

    attempts_max: int
    backoff_ms: int
    backoff_ms_max: int

    def wait_ms(self, failed: int, lot: float) -> float:
        """The wait after so many failed attempts; `lot` is 0 to 1.

        "Full jitter": anything up to a bound that doubles, so that those who failed together do not come back together. Source:
        M. Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015.
        """
        return lot * min(self.backoff_ms_max, self.backoff_ms << (failed - 1))


class Delivery:
    """Delivers messages to one address. Redirects are not followed: the secret's owner named one receiver."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        key: bytes,
        policy: Policy,
        *,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._url = url
        self._key = key
        self._policy = policy
        self._wait = wait

    async def deliver(self, message: Message) -> str | None:
        """None once the receiver has answered 2xx; else why it was given up."""
        why = ""
        for attempt in range(1, self._policy.attempts_max + 1):
            status, why = await self._attempt(message)
            if status // 100 == 2:
                return None
            log.info("not_delivered", message_id=message.id, attempt=attempt, why=why)
            if status == _GONE:
                break
            if attempt < self._policy.attempts_max:
                await self._wait(self._policy.wait_ms(attempt, random.random()) / 1000)
        return why

    async def _attempt(self, message: Message) -> tuple[int, str]:
        """The status, 0 without an answer, and what to log of it. The address is left out: it may hold a token."""
        signed = headers(self._key, message.id, int(time.time()), message.body)
        try:
            async with self._session.post(
                self._url, data=message.body, headers=signed, allow_redirects=False
            ) as answer:
                status, why = answer.status, f"answered {answer.status}"
        except (aiohttp.ClientError, TimeoutError) as error:
            status, why = 0, f"no answer: {type(error).__name__}"
        counter(WEBHOOKS_ATTEMPTS).labels(f"{status // 100}xx" if status else "none").inc()
        return status, why
