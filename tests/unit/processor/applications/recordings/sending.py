"""Payloads cut into chunks, as the collector sends them."""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.chunks import Chunk, headers_of
from shared.partitioning import recording_key
from shared.schemas.recording import RecordingRow

T0 = 1_790_000_000_000
Drive = Callable[[Application], Driver]


class Sent(NamedTuple):
    """One chunk's record."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes | None], ...]


def chunks(
    sequence: int,
    *parts: bytes,
    session: str = "s1",
    upload: str = "u1",
    content_type: str = "application/json",
    knows_count: bool = True,
) -> list[Sent]:
    """The chunks of a payload that consists of these parts."""
    sent, hash_, end = [], hashlib.sha256(), 0
    for index, part in enumerate(parts):
        hash_.update(part)
        end += len(part)
        count = len(parts) if knows_count or index + 1 == len(parts) else 0
        chunk = Chunk(session, sequence, upload, index, count, end, hash_.digest(), content_type)
        headers = tuple(
            (name, value.encode() if isinstance(value, str) else value) for name, value in headers_of(chunk)
        )
        sent.append(Sent(recording_key("acme", session), part, headers))
    return sent


def name_of(number: int, content: bytes, session: str = "s1") -> str:
    """The name of the object of a payload."""
    return f"acme/{session}/{number:06d}-{hashlib.sha256(content).hexdigest()[:32]}"


def stored(number: int, content: bytes, session: str = "s1") -> dict[str, bytes]:
    """A payload as it is stored."""
    return {name_of(number, content, session): content}


def pipe(driver: Driver, sent: list[Sent], at_ms: int = T0) -> None:
    for one in sent:
        driver.pipe(topics.RECORDINGS, one.key, one.value, at_ms=at_ms, headers=one.headers)


def rows(driver: Driver) -> list[RecordingRow]:
    return [codec.RECORDING.decode(output.value) for output in driver.outputs(topics.RECORDING_INDEX)]


def states(driver: Driver) -> list[tuple[int, int, str]]:
    return [(row.sequence, row.sequence_last, row.state) for row in rows(driver)]
