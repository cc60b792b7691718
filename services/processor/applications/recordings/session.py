"""A session: which payloads are whole, which is next, what is waited for. It knows where chunks are, never what is in them.

A payload may be sent several times, whole or torn; the first whole one is it. Payloads are worked one at a time in the order of
their numbers. A gap is waited for, then given up; what was given up and still comes is worked before anything else.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

from shared.chunks import Chunk

#: Records next to each other: the offset of the first, and how many.
Run = tuple[int, int]

#: `more`: the payload is not whole yet. `whole`: it is, for the first time. `again`: it was before. `torn`: the chunk belongs
#: to an upload whose beginning, or a chunk of which, is not there: its client was not told that it is stored, and sends again.
ChunkOutcome = Literal["more", "whole", "again", "torn"]


@dataclass(frozen=True)
class SessionRules:
    """How long things are waited for, ms, and how many are kept."""

    #: How long a missing payload holds back those after it.
    gap_ms: int = 300_000
    #: How long an upload may take from its first chunk.
    upload_ms: int = 3_600_000
    #: How long a session is known after its last chunk.
    kept_ms: int = 7 * 86_400_000
    #: Unfinished uploads of a session; one more, and the oldest is dropped.
    uploads_max: int = 16
    #: Whole payloads behind a gap; one more, and the gap is given up.
    waiting_max: int = 500


class Payload(msgspec.Struct, array_like=True, frozen=True):
    """A whole payload: where its chunks are, and what they are together."""

    runs: tuple[Run, ...]
    size_bytes: int
    sha256: bytes
    chunks: int
    at_ms: int
    content_type: str
    content_encoding: str


class Upload(msgspec.Struct, array_like=True):
    """An attempt to send a payload, as far as it has come."""

    sequence: int
    begun_ms: int
    next_index: int = 0
    end: int = 0
    runs: list[Run] = []


class Session(msgspec.Struct, array_like=True):
    """The state of one session."""

    #: The number of the payload that is next; all before it are stored, or given up.
    next: int = 0
    #: Ranges of numbers given up, first and last, in order.
    absent: list[tuple[int, int]] = []
    uploads: dict[str, Upload] = {}
    #: Whole payloads that are not being worked, by number.
    waiting: dict[int, Payload] = {}
    #: The number and payload that is being worked.
    working: tuple[int, Payload] | None = None
    #: Since when a gap is waited for; 0: none is.
    gap_since_ms: int = 0
    seen_ms: int = 0
    #: Rows told.
    revision: int = 0
    #: Which pages of the list of stored payloads there are.
    pages: list[int] = []


def take_chunk(session: Session, chunk: Chunk, offset: int, clock_ms: int, rules: SessionRules) -> ChunkOutcome:
    """Takes a chunk in, the record of which stands at `offset`."""
    session.seen_ms = clock_ms
    upload = session.uploads.get(chunk.upload)
    if chunk.index == 0 and upload is None:
        if len(session.uploads) >= rules.uploads_max:
            oldest = min(session.uploads, key=lambda name: session.uploads[name].begun_ms)
            del session.uploads[oldest]
        upload = session.uploads[chunk.upload] = Upload(chunk.sequence, clock_ms)
    if upload is None:
        return "torn"
    if chunk.index != upload.next_index or chunk.sequence != upload.sequence or chunk.end < upload.end:
        del session.uploads[chunk.upload]
        return "torn"
    upload.next_index += 1
    upload.end = chunk.end
    first, count = upload.runs[-1] if upload.runs else (offset, 0)
    if first + count == offset:
        upload.runs = [*upload.runs[:-1], (first, count + 1)]
    else:
        upload.runs.append((offset, 1))
    if not chunk.is_last:
        return "more"
    del session.uploads[chunk.upload]
    if not _is_wanted(session, chunk.sequence):
        return "again"
    session.waiting[chunk.sequence] = Payload(
        runs=tuple(upload.runs),
        size_bytes=chunk.end,
        sha256=chunk.sha256,
        chunks=upload.next_index,
        at_ms=clock_ms,
        content_type=chunk.content_type,
        content_encoding=chunk.content_encoding,
    )
    return "whole"


def begin_next(session: Session, clock_ms: int) -> tuple[int, Payload] | None:
    """The payload whose turn it is, if none is being worked and there is one; a gap before it begins to be waited for."""
    if session.working is not None or not session.waiting:
        return None
    number = min(session.waiting)
    if number > session.next:
        session.gap_since_ms = session.gap_since_ms or clock_ms
        return None
    session.gap_since_ms = 0
    session.working = number, session.waiting.pop(number)
    return session.working


def give_up_gap(session: Session, clock_ms: int, rules: SessionRules) -> tuple[int, int] | None:
    """The numbers that are not waited for any more, first and last; None where there are none."""
    if not session.gap_since_ms or session.working is not None:
        return None
    if clock_ms < session.gap_since_ms + rules.gap_ms and len(session.waiting) <= rules.waiting_max:
        return None
    absent = session.next, min(session.waiting) - 1
    session.absent.append(absent)
    session.next, session.gap_since_ms = absent[1] + 1, 0
    return absent


def end_working(session: Session, *, is_stored: bool) -> tuple[int, Payload]:
    """What was worked is stored, or never can be: then it may come again."""
    assert session.working is not None
    number, payload = session.working
    session.working = None
    session.next = max(session.next, number + 1)
    if is_stored:
        session.absent = [part for span in session.absent for part in _without(span, number)]
    elif not _is_absent(session, number):
        session.absent = sorted([*session.absent, (number, number)])
    return number, payload


def drop_old_uploads(session: Session, clock_ms: int, rules: SessionRules) -> int:
    """How many uploads were dropped because they have taken too long."""
    old = [name for name, upload in session.uploads.items() if clock_ms >= upload.begun_ms + rules.upload_ms]
    for name in old:
        del session.uploads[name]
    return len(old)


def is_over(session: Session, clock_ms: int, rules: SessionRules) -> bool:
    """Whether the session is to be forgotten: nothing came for long, and nothing is left to do."""
    idle = not (session.uploads or session.waiting or session.working)
    return idle and clock_ms >= session.seen_ms + rules.kept_ms


def due_ms(session: Session, clock_ms: int, rules: SessionRules) -> int:
    """When there is something to do without a chunk: the deadline of the session's row, ms since 1970."""
    deadlines = [upload.begun_ms + rules.upload_ms for upload in session.uploads.values()]
    if session.gap_since_ms and session.working is None:
        deadlines.append(session.gap_since_ms + rules.gap_ms)
    # While something is worked its end looks after the session; the row must not be due for ever.
    return min(deadlines, default=max(session.seen_ms, clock_ms) + rules.kept_ms)


def _is_wanted(session: Session, number: int) -> bool:
    if number in session.waiting or (session.working is not None and session.working[0] == number):
        return False
    return number >= session.next or _is_absent(session, number)


def _is_absent(session: Session, number: int) -> bool:
    return any(first <= number <= last for first, last in session.absent)


def _without(span: tuple[int, int], number: int) -> list[tuple[int, int]]:
    first, last = span
    if not first <= number <= last:
        return [span]
    return [part for part in ((first, number - 1), (number + 1, last)) if part[0] <= part[1]]
