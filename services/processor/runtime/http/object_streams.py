"""Answers that are stored objects: one unchanged, or many as the parts of one body, streamed from the object store.

Many are `multipart/mixed` (RFC 2046): each part has the object's headers and its length. The bytes come from a client, so no
answer lets a browser run them. One object is `application/octet-stream`, and its own type is in a header.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

import structlog
from aiohttp import web

from services.processor.engine.application.application import Objects, StoredObject
from services.processor.runtime.objects.object_store import ObjectMissing, ObjectsAway, ObjectStore

log = structlog.get_logger(__name__)

#: A client that does not read for so long is disconnected.
WRITE_SECONDS_MAX: Final = 30.0
#: Bodies being streamed at a time.
STREAMS_MAX: Final = 32
OCTETS: Final = "application/octet-stream"
#: The type that the client gave the object.
CONTENT_TYPE_GIVEN: Final = "Playhead-Content-Type"
_GUARDED: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "no-store",
}

#: The parameters of the request for the next objects; None after the last object.
More = Callable[[Mapping[str, str]], Awaitable[Objects | None]]


class Busy(RuntimeError):
    """The limit of concurrent streams is reached."""


class ObjectAnswers:
    """Streams objects to clients. Used on the lookup thread's loop."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._streams = 0

    async def respond(self, request: web.Request, found: Objects, more: More) -> web.StreamResponse:
        """The whole answer. Raises `Busy`, `ObjectsAway` or `ObjectMissing`, as long as nothing was sent.

        Later than that the connection is broken off: a body that lacks something must not look whole.
        """
        if self._streams >= STREAMS_MAX:
            raise Busy(f"{STREAMS_MAX} bodies are being streamed")
        self._streams += 1
        try:
            if found.is_one:
                return await self._one(request, found.objects[0])
            return await self._many(request, found, more)
        finally:
            self._streams -= 1

    async def _one(self, request: web.Request, stored: StoredObject) -> web.StreamResponse:
        pieces = self._objects.read(stored.name)
        first = await anext(pieces, b"")
        given = stored.headers.get("Content-Type", OCTETS)
        response = web.StreamResponse(
            headers={**stored.headers, "Content-Type": OCTETS, CONTENT_TYPE_GIVEN: given, **_GUARDED}
        )
        response.content_length = stored.size_bytes
        await response.prepare(request)
        await _send(request, response, _after(first, pieces))
        return response

    async def _many(self, request: web.Request, found: Objects, more: More) -> web.StreamResponse:
        boundary = secrets.token_hex(16)
        response = web.StreamResponse(headers={"Content-Type": f"multipart/mixed; boundary={boundary}", **_GUARDED})
        await response.prepare(request)
        await _send(request, response, self._parts(found, more, boundary))
        return response

    async def _parts(self, found: Objects, more: More, boundary: str) -> AsyncIterator[bytes]:
        at: Objects | None = found
        while at is not None:
            for stored in at.objects:
                headers = {**stored.headers, "Content-Length": str(stored.size_bytes)}
                lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                yield f"--{boundary}\r\n{lines}\r\n".encode()
                async for piece in self._objects.read(stored.name):
                    yield piece
                yield b"\r\n"
            at = await more(at.rest) if at.rest is not None else None
        yield f"--{boundary}--\r\n".encode()


async def _after(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in pieces:
        yield piece


async def _send(request: web.Request, response: web.StreamResponse, pieces: AsyncIterator[bytes]) -> None:
    try:
        async for piece in pieces:
            async with asyncio.timeout(WRITE_SECONDS_MAX):
                await response.write(piece)
    except (ObjectsAway, ObjectMissing, ConnectionResetError, TimeoutError) as error:
        log.warning("stream_broken_off", path=request.path, kind=type(error).__name__, error=str(error))
        if request.transport is not None:
            request.transport.abort()
