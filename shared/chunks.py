"""Chunks: how a payload of a session recording is cut into records of topic `recordings`.

The value is the chunk's bytes as they came; these headers describe it, numbers in decimal:

    session            the session's id
    payload            the payload's number in its session, from 0
    upload             one attempt to send the payload: a torn one and its repetition are kept apart by it
    index              the chunk's number in the payload, from 0
    count              how many chunks the payload has; 0 where that is not known yet (the last chunk always has it)
    end                bytes of the payload up to the end of this chunk
    sha256             of the same bytes, hexadecimal: in the last chunk that of the payload
    content-type, content-encoding    of the payload, where its client sent them
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.codec import Undecodable
from shared.schemas.recording import SEQUENCE_MAX, SESSION_ID
from shared.topics import RECORD_BYTES_MAX

#: No chunk is larger, bytes.
CHUNK_BYTES_MAX: Final = RECORD_BYTES_MAX

#: From one chunk to the next of an upload that is answered 200. The collector ends an upload that takes longer, and no upload is
#: forgotten within twice this time: two brokers may give chunks times that differ.
BETWEEN_CHUNKS_SECONDS_MAX: Final = 600
#: Of a content type or encoding.
HEADER_CHARS_MAX: Final = 200
_NUMBER_DIGITS_MAX: Final = 18
_UPLOAD_CHARS_MAX: Final = 64
_SHA256_BYTES: Final = 32


class Chunk(msgspec.Struct, frozen=True):
    """One chunk without its bytes."""

    session_id: str
    sequence: int
    upload: str
    index: int
    count: int
    end: int
    sha256: bytes
    content_type: str = ""
    content_encoding: str = ""

    @property
    def is_last(self) -> bool:
        """Whether the payload ends with it."""
        return self.index + 1 == self.count


def headers_of(chunk: Chunk) -> list[tuple[str, str | bytes | None]]:
    """The headers of the chunk's record."""
    headers: list[tuple[str, str | bytes | None]] = [
        ("session", chunk.session_id.encode()),
        ("payload", b"%d" % chunk.sequence),
        ("upload", chunk.upload.encode()),
        ("index", b"%d" % chunk.index),
        ("count", b"%d" % chunk.count),
        ("end", b"%d" % chunk.end),
        ("sha256", chunk.sha256.hex().encode()),
    ]
    if chunk.content_type:
        headers.append(("content-type", chunk.content_type.encode()))
    if chunk.content_encoding:
        headers.append(("content-encoding", chunk.content_encoding.encode()))
    return headers


def chunk_of(headers: Iterable[tuple[str, bytes | None]]) -> Chunk:
    """The chunk of a record with these headers. Raises `Undecodable`."""
    by_name = {name: value for name, value in headers if value is not None}
    try:
        chunk = Chunk(
            session_id=by_name["session"].decode(),
            sequence=_number(by_name["payload"]),
            upload=by_name["upload"].decode(),
            index=_number(by_name["index"]),
            count=_number(by_name["count"]),
            end=_number(by_name["end"]),
            sha256=bytes.fromhex(by_name["sha256"].decode()),
            content_type=by_name.get("content-type", b"").decode(),
            content_encoding=by_name.get("content-encoding", b"").decode(),
        )
    except KeyError as error:
        raise Undecodable(f"no header {error}") from error
    except ValueError as error:
        raise Undecodable(f"a header is not what it should be: {error}") from error
    if SESSION_ID.fullmatch(chunk.session_id) is None or chunk.sequence > SEQUENCE_MAX:
        raise Undecodable("no session has this name, or no payload this number")
    if not 0 < len(chunk.upload) <= _UPLOAD_CHARS_MAX or len(chunk.sha256) != _SHA256_BYTES:
        raise Undecodable("upload or sha256 has no such length")
    for text in (chunk.content_type, chunk.content_encoding):
        if not is_header_text(text):
            raise Undecodable(f"no content type or encoding is {text[:40]!r}")
    return chunk


def is_header_text(text: str) -> bool:
    """Whether a client's content type or encoding can be given out again as it came."""
    return text.isascii() and (text.isprintable() or not text) and len(text) <= HEADER_CHARS_MAX


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _NUMBER_DIGITS_MAX:
        raise ValueError(f"{text[:40]!r} is no number")
    return int(text)
