"""WaitingPayloads: the complete payloads of a session that wait for their turn. Each is a row of its own.

The waiting numbers are in rows too, a bitmap for each page of numbers. So a session's own row stays small for any number of waiting
payloads. A map's scan would not do: it looks at each payload that began or ended to wait since the last flush.
"""

import bisect
from typing import Final

import msgspec

from services.processor.applications.recordings.session import Payload, Session
from services.processor.engine.application.application import Context, Store, StoreSpec


def _record_key(key: bytes) -> bytes:
    return key.rpartition(b"/")[0]


WAITING: Final = StoreSpec(
    name="waiting",
    id=4,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Payload).decode,
    record_key=_record_key,
)
#: Of each page, the numbers that wait: bit n of a little-endian number is the page's n-th.
NUMBERS: Final = StoreSpec[bytes](name="waiting_numbers", id=5, encode=bytes, decode=bytes, record_key=_record_key)

_PAGE_BYTES: Final = 32
#: Numbers of a page.
_PAGE_NUMBERS: Final = _PAGE_BYTES * 8


class WaitingPayloads:
    """The payloads that wait for earlier ones, of all sessions of a partition."""

    def __init__(self, context: Context) -> None:
        self._payloads: Store[Payload] = context.store(WAITING)
        self._numbers: Store[bytes] = context.store(NUMBERS)

    def has(self, key: bytes, number: int) -> bool:
        """Whether this payload of the session under `key` waits."""
        return self._payloads.get(_payload_key(key, number)) is not None

    def add(self, key: bytes, session: Session, number: int, payload: Payload) -> None:
        """The payload waits from now on; it did not before."""
        self._payloads.put(_payload_key(key, number), payload)
        page = number // _PAGE_NUMBERS
        if page not in session.waiting_pages:
            bisect.insort(session.waiting_pages, page)
        self._put(key, session, page, self._bits(key, page) | 1 << number % _PAGE_NUMBERS)
        session.waiting += 1

    def first(self, key: bytes, session: Session) -> int | None:
        """The least number that waits."""
        if not session.waiting_pages:
            return None
        page = session.waiting_pages[0]
        bits = self._bits(key, page)
        return page * _PAGE_NUMBERS + (bits & -bits).bit_length() - 1

    def take_payload(self, key: bytes, session: Session, number: int) -> Payload:
        """The payload waits no longer."""
        payload = self._payloads.get(_payload_key(key, number))
        assert payload is not None
        self._payloads.delete(_payload_key(key, number))
        page = number // _PAGE_NUMBERS
        self._put(key, session, page, self._bits(key, page) & ~(1 << number % _PAGE_NUMBERS))
        session.waiting -= 1
        return payload

    def _bits(self, key: bytes, page: int) -> int:
        return int.from_bytes(self._numbers.get(_page_key(key, page)) or b"", "little")

    def _put(self, key: bytes, session: Session, page: int, bits: int) -> None:
        if bits:
            self._numbers.put(_page_key(key, page), bits.to_bytes(_PAGE_BYTES, "little"))
        else:
            self._numbers.delete(_page_key(key, page))
            session.waiting_pages.remove(page)


def _payload_key(key: bytes, number: int) -> bytes:
    return key + b"/%06d" % number


def _page_key(key: bytes, page: int) -> bytes:
    return key + b"/%04d" % page
