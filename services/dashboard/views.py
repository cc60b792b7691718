"""Questions to the processor's lookups: one view, and the partitions with their slots.

The processor knows every view that is open, or finished within its lateness window.
"""

from typing import Final, Protocol
from urllib.parse import quote

import aiohttp
import structlog

log = structlog.get_logger(__name__)

#: A row has at most some 64 KiB in the store; as JSON with its timeline it is a few times that.
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024


class LookupsAway(RuntimeError):
    """No slot answered, or the view's partition has no owner at the moment; ask again."""


class LookupsRefused(RuntimeError):
    """A slot answers and refuses: another token, or a name that no view has."""


class Views(Protocol):
    """Where one view comes from."""

    async def view(self, customer_id: str, view_id: str) -> bytes | None:
        """The processor's answer, JSON; None where it knows no such view. Raises `LookupsAway` or `LookupsRefused`."""
        ...

    async def partitions(self) -> bytes:
        """Every partition with its owner and state, as the queried slot reports it; JSON. Raises as `view` does."""
        ...


class ProcessorViews:
    """`Views` over HTTP. Any slot answers, since each passes a question on to the owner."""

    def __init__(self, url: str, token: str, *, seconds_max: float) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = aiohttp.ClientTimeout(total=seconds_max)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Makes the client; opens no connection yet."""
        self._session = aiohttp.ClientSession(timeout=self._timeout, headers=self._headers)

    async def close(self) -> None:
        """Closes its connections."""
        if self._session is not None:
            await self._session.close()

    async def view(self, customer_id: str, view_id: str) -> bytes | None:
        """See `Views`. A standby's copy is better than nothing: the answer is marked as one."""
        return await self._answer(f"/views/{quote(customer_id, safe='')}/{quote(view_id, safe='')}?stale=allow")

    async def partitions(self) -> bytes:
        """See `Views`."""
        found = await self._answer("/partitions")
        if found is None:
            raise LookupsRefused("404")
        return found

    async def _answer(self, path: str) -> bytes | None:
        assert self._session is not None, "not opened"
        try:
            async with self._session.get(f"{self._url}{path}", allow_redirects=False) as answer:
                if (answer.content_length or 0) > ANSWER_BYTES_MAX:
                    raise LookupsRefused(f"an answer of {answer.content_length} bytes")
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("lookups_away", kind=type(error).__name__)
            raise LookupsAway(type(error).__name__) from error
        if answer.status == 404:
            return None
        if answer.status == 200:
            return body
        if answer.status >= 500:
            raise LookupsAway(str(answer.status))
        log.error("lookups_refused", status=answer.status)
        raise LookupsRefused(str(answer.status))
