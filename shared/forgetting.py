"""A record of an input topic that has the processor delete all that it holds of the record's key. No output is made of its rows.

It has no value. In a topic whose records are taken by their headers it has this one:

    forget     of the request (`accounts.deletions`), its id
"""

from collections.abc import Iterable
from typing import Final

HEADER: Final = "forget"


def headers_of(request_id: str) -> list[tuple[str, str | bytes | None]]:
    """The headers of such a record."""
    return [(HEADER, request_id.encode())]


def forgets(value: bytes | None, headers: Iterable[tuple[str, bytes | None]], *, by_headers: bool) -> bool:
    """Whether a record is one, where its application takes records by their headers, or by their values."""
    return any(name == HEADER for name, _ in headers) if by_headers else value is None
