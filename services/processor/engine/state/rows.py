"""Rows as bytes: what changelog and local store hold, the same in both.

A row is one big-endian word of 8 bytes, then the payload. The word is

    envelope format (1 byte) | format of the store (1 byte) | deadline (6 bytes, ms since 1970; 0: none)

The deadline is in front so that the index of timers can be rebuilt from rows without decoding them. A row's key is `store id (1
byte) | key`. Envelope 1, still read, was `1 (1 byte) | deadline (8 bytes) | payload`, its store format 1.
"""

import struct
from typing import Final

#: The format of the envelope as this code writes it. Readers know this one and the one before.
ROW_FORMAT: Final = 2

_WORD: Final = struct.Struct(">Q")
_FORMER: Final = struct.Struct(">BQ")
_ENVELOPE: Final = ROW_FORMAT << 56
_FORMAT_SHIFT: Final = 48
_DEADLINE_MASK: Final = (1 << _FORMAT_SHIFT) - 1


class NewerFormat(ValueError):
    """The row was written by a newer version; this one must not touch it."""


def pack(deadline_ms: int, payload: bytes, store_format: int = 1) -> bytes:
    """A row's bytes; `deadline_ms` 0 means that no timer is set. Raises ValueError for one beyond 2^48 ms."""
    return word(deadline_ms, envelope(store_format)) + payload


def envelope(store_format: int) -> int:
    """The word in front of a row, as a number, without the deadline."""
    return _ENVELOPE | store_format << _FORMAT_SHIFT


def word(deadline_ms: int, of_store: int) -> bytes:
    """The word in front of a row: `of_store` is the store's `envelope`. Raises ValueError for a deadline beyond 2^48 ms."""
    if deadline_ms > _DEADLINE_MASK:
        raise ValueError(f"a deadline of {deadline_ms} ms is beyond the year 10,000")
    return (of_store | deadline_ms).to_bytes(8, "big")


def deadline_of(row: bytes) -> int:
    """The row's deadline, ms since 1970, or 0. Raises `NewerFormat`."""
    if row[0] == ROW_FORMAT:
        (word,) = _WORD.unpack_from(row)
        return int(word & _DEADLINE_MASK)
    return unpack(row)[0]


def unpack(row: bytes) -> tuple[int, int, bytes]:
    """A row's deadline, the format of its store, and what the application stored. Raises `NewerFormat`."""
    if row[0] == ROW_FORMAT:
        (word,) = _WORD.unpack_from(row)
        return word & _DEADLINE_MASK, row[1], row[_WORD.size :]
    if row[0] > ROW_FORMAT:
        raise NewerFormat(f"a row has format {row[0]}; this version knows up to {ROW_FORMAT}: upgrade it")
    return _FORMER.unpack_from(row)[1], 1, row[_FORMER.size :]


def end_of(prefix: bytes) -> bytes:
    """The first row key after all that begin with `prefix`, whose first byte is not 255."""
    shortened = prefix.rstrip(b"\xff")
    return shortened[:-1] + bytes([shortened[-1] + 1])


def check_format(row_format: int) -> None:
    """Raises `NewerFormat` for state of which a newer version has written the envelopes."""
    if row_format > ROW_FORMAT:
        raise NewerFormat(f"the state has format {row_format}; this version knows up to {ROW_FORMAT}: upgrade it")
