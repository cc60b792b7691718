"""Answers that are sent piece by piece: a client that does not take a piece in time is given up."""

import asyncio
from typing import Final

from aiohttp import web

#: For one piece, until what waits to be sent has room for the next. Of pieces of 64 KiB this is 6.5 kB/s.
WRITE_SECONDS_MAX: Final = 10.0
#: Of an answer that is passed on.
PIECE_BYTES: Final = 64 * 1024


async def write_in_time(response: web.StreamResponse, data: bytes) -> None:
    """Sends a piece. Raises `TimeoutError`, and `ConnectionResetError` of a client that has gone away."""
    async with asyncio.timeout(WRITE_SECONDS_MAX):
        await response.write(data)


async def end_in_time(response: web.StreamResponse) -> None:
    """Ends the answer. Raises as `write_in_time`."""
    async with asyncio.timeout(WRITE_SECONDS_MAX):
        await response.write_eof()
