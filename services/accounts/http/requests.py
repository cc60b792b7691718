"""The content of a request: a body of JSON within bounds, and the address that it comes from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from shared.codec import NO_JSON
from shared.http.peer import Network, client_address

BODY_BYTES_MAX: Final = 16 * 1024
_ADDRESS_CHARS_MAX: Final = 64

T = TypeVar("T")


class BodyWrong(ValueError):
    """The body is not what the route wants."""


async def body_of(request: web.Request, kind: type[T]) -> T:
    """The body, JSON. Raises `BodyWrong`."""
    if request.content_type != "application/json":
        # What a form can send without asking first is not taken.
        raise BodyWrong("a body of application/json")
    if (request.content_length or 0) > BODY_BYTES_MAX:
        raise BodyWrong(f"a body has at most {BODY_BYTES_MAX} bytes")
    data = await request.content.read(BODY_BYTES_MAX + 1)
    while len(data) <= BODY_BYTES_MAX and not request.content.at_eof():
        data += await request.content.read(BODY_BYTES_MAX + 1 - len(data))
    if len(data) > BODY_BYTES_MAX:
        raise BodyWrong(f"a body has at most {BODY_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        # Its text names a field and a type, and no value.
        raise BodyWrong(str(error)) from None
    except NO_JSON:
        raise BodyWrong("the body is not the JSON that this route takes") from None


@dataclass(frozen=True)
class Place:
    """Where requests come from; `proxies` are the networks whose X-Forwarded-For is read."""

    proxies: Sequence[Network] = ()

    def address(self, request: web.Request) -> str | None:
        """The client's address, if it can be stored: a proxy passes on what a client claims."""
        forwarded = request.headers.getall("X-Forwarded-For", [])
        address = client_address(request.remote, forwarded, tuple(self.proxies))
        return address[:_ADDRESS_CHARS_MAX] if address and address.isascii() and address.isprintable() else None

    def agent(self, request: web.Request) -> str:
        """The client's user agent."""
        return request.headers.get("User-Agent", "")
