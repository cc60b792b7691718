"""The processor's lookup of one view: any slot answers, for views that are open or finished within the lateness window."""

from typing import Any, Final, Literal
from urllib.parse import quote

import aiohttp
import msgspec
import structlog

log = structlog.get_logger(__name__)

#: A row has at most some 64 KiB in the store; as JSON with its timeline it is a few times that.
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024


class ProcessorAway(RuntimeError):
    """No slot answered, or the view's partition has no owner at the moment."""


class FoundView(msgspec.Struct, frozen=True):
    """What the processor knows of a view. `row` is None once the view is closed."""

    state: Literal["open", "finished", "closed"]
    revision: int
    row: dict[str, Any] | None


class _Answer(msgspec.Struct, frozen=True):
    found: FoundView | None
    stale: bool = False


class Processor:
    """The lookup at `url`, with its token."""

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

    async def view(self, customer_id: str, view_id: str) -> FoundView | None:
        """The view as it is now; None where the processor knows none. Raises `ProcessorAway`."""
        assert self._session is not None, "not opened"
        # A standby's copy is better than nothing.
        path = f"/views/{quote(customer_id, safe='')}/{quote(view_id, safe='')}?stale=allow"
        try:
            async with self._session.get(f"{self._url}{path}", allow_redirects=False) as answer:
                if answer.status in {400, 404}:
                    return None
                if answer.status != 200:
                    raise ProcessorAway(str(answer.status))
                body = await answer.content.read(ANSWER_BYTES_MAX)
                while not answer.content.at_eof() and len(body) < ANSWER_BYTES_MAX:
                    body += await answer.content.read(ANSWER_BYTES_MAX - len(body))
                return msgspec.json.decode(body, type=_Answer).found
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            log.warning("lookups_away", kind=type(error).__name__)
            raise ProcessorAway(type(error).__name__) from error
