"""The client of the processor's lookups: any slot answers, since each passes a question on to the owner."""

from typing import Final
from urllib.parse import quote

import aiohttp
import structlog

from services.rim.http.tls import connector

log = structlog.get_logger(__name__)

#: A row has at most some 64 KiB in the store; as JSON with its timeline it is a few times that.
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024


class LookupsAway(RuntimeError):
    """No slot answered, or the view's partition has no owner at the moment; ask again."""


class LookupsRefused(RuntimeError):
    """A slot answers and refuses: another token, a name that no view has (status 400), or an answer that is too long."""

    def __init__(self, why: str = "", status: int = 200) -> None:
        super().__init__(why)
        self.status = status


def view_path(customer_id: str, view_id: str) -> str:
    """The path of the lookup of one view. A standby's copy is better than nothing: the answer is marked as one."""
    return f"/views/{quote(customer_id, safe='')}/{quote(view_id, safe='')}?stale=allow"


class Lookups:
    """The lookups at `url`, with the token of who asks. Over TLS the slot proves its name to the authorities in `ca_file`."""

    def __init__(self, url: str, token: str, *, seconds_max: float, ca_file: str = "") -> None:
        self._ca_file = ca_file
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = aiohttp.ClientTimeout(total=seconds_max)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Makes the client; opens no connection yet."""
        self._session = aiohttp.ClientSession(
            connector=connector(self._ca_file), timeout=self._timeout, headers=self._headers
        )

    async def close(self) -> None:
        """Closes its connections."""
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str) -> bytes | None:
        """The answer, at most `ANSWER_BYTES_MAX`; None where there is none (404). Raises `LookupsAway` or `LookupsRefused`."""
        assert self._session is not None, "not opened"
        try:
            async with self._session.get(f"{self._url}{path}", allow_redirects=False) as answer:
                body = await _read(answer)
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
        raise LookupsRefused(str(answer.status), answer.status)


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) > ANSWER_BYTES_MAX:
            raise LookupsRefused(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
    return bytes(body)
