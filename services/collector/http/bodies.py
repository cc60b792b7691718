"""Reads bodies from the network, within limits on size, time and bytes in memory. Raises `RetryLater`."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from aiohttp import StreamReader, web

from services.collector.admission.bounds import BodyLimits
from services.collector.admission.held import Slots
from services.collector.admission.retry_later import RetryLater

log = structlog.get_logger(__name__)

#: A body that takes no longer is not slow.
PROMPT_SECONDS: Final = 1.0


class Bodies:
    """Reads bodies. Use it on the event loop's thread."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._slow = Slots()

    async def read(
        self, request: web.BaseRequest, bytes_max: int, parties: Sequence[str], hold: Callable[[int], None]
    ) -> tuple[bytes, bool]:
        """The body, at most `bytes_max` bytes of it, and whether that is the whole of it.

        `hold` counts received bytes as in flight, and raises `RetryLater`. A length that a client announces is not counted, so it
        takes no room from others. `parties` are the request's address and, where it has one, its key.
        """
        content = request.content
        first = content.read_nowait()
        hold(len(first))
        if content.is_eof():
            return first[:bytes_max], len(first) <= bytes_max
        chunks = [first]
        try:
            await self._rest(content, chunks, bytes_max, parties, hold)
        except TimeoutError:
            log.warning("body_too_slow", path=request.path)
            raise RetryLater("slow") from None
        except (web.RequestPayloadError, ConnectionError):
            # The client does not read the answer.
            raise RetryLater("gone") from None
        body = b"".join(chunks)
        return body[:bytes_max], len(body) <= bytes_max

    async def _rest(
        self,
        content: StreamReader,
        chunks: list[bytes],
        bytes_max: int,
        parties: Sequence[str],
        hold: Callable[[int], None],
    ) -> None:
        """Adds received bytes to `chunks`. Raises `TimeoutError` if they arrive too slowly."""
        loop = asyncio.get_running_loop()
        size = len(chunks[0])
        begun = loop.time()
        last = begun + self._limits.seconds_max
        prompt = begun + PROMPT_SECONDS
        slots: dict[str, int] = {}
        try:
            while size <= bytes_max:
                # The body is behind its rate once it has taken a second, and as long as its bytes last at that rate.
                until = min(prompt + size / self._limits.bytes_per_second_min, last)
                try:
                    async with asyncio.timeout_at(until if slots else min(until, prompt)):
                        chunk = await content.readany()
                except TimeoutError:
                    if slots or loop.time() >= until:
                        raise
                    slots = self._slots_of(parties)
                    continue
                if not chunk:
                    return
                chunks.append(chunk)
                size += len(chunk)
                hold(size)
        finally:
            self._slow.give_back(slots)

    def _slots_of(self, parties: Sequence[str]) -> dict[str, int]:
        """The slots that a slow body has now. Raises `RetryLater`."""
        most = (self._limits.slow_by_address_max, self._limits.slow_by_key_max)
        slots = dict(zip(parties, most, strict=False))
        if not self._slow.take_slots(slots):
            raise RetryLater("busy")
        return slots
