"""A session: which payloads are complete, which is next, and which are missing. It knows where chunks are, never their content.

A payload may be sent several times, complete or torn; the first complete one counts. Payloads are processed one at a time in the
order of their numbers. A missing payload is waited for, then given up. If it arrives later, it is processed before all others.

Payloads that wait, and those that are stored, are rows of their own (`waiting`, `lookup.STORED`). No acknowledged payload is
dropped for lack of room.
"""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from services.processor.applications.recordings.settings import SessionRules
from shared.chunks import Chunk

#: Records next to each other: the offset of the first, and how many.
Run = tuple[int, int]

#: `more`: the payload is not complete yet. `whole`: it is complete for the first time. `again`: it was complete before. `torn`: the
#: chunk belongs to an upload of which an earlier chunk is missing: its client got no success, and sends again.
ChunkOutcome = Literal["more", "whole", "again", "torn"]


#: Ranges of numbers given up that are listed apart. Of more, the two with the fewest numbers between them become one.
ABSENT_RANGES_MAX: Final = 500

#: Numbers from the first to the last.
Range = tuple[int, int]


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
    """An attempt to send a payload, as far as received."""

    sequence: int
    #: When its newest chunk came.
    seen_ms: int
    next_index: int = 0
    end: int = 0
    runs: list[Run] = []


class Session(msgspec.Struct, array_like=True):
    """The state of one session."""

    #: The number of the payload that is next; all before it are stored, or given up.
    next: int = 0
    #: Ranges of numbers given up, first and last, in order, to be listed: with too many of them, stored ones are among them.
    absent: list[tuple[int, int]] = []
    uploads: dict[str, Upload] = {}
    #: Whole payloads that wait for their turn: how many, and pages of their numbers, in order (see `waiting`).
    waiting: int = 0
    waiting_pages: list[int] = []
    #: The number and payload that is being worked.
    working: tuple[int, Payload] | None = None
    #: Since when a gap is waited for; 0: none is.
    gap_since_ms: int = 0
    seen_ms: int = 0
    #: Rows written.
    revision: int = 0


def take_chunk(
    session: Session,
    chunk: Chunk,
    offset: int,
    clock_ms: int,
    *,
    rules: SessionRules,
    is_known: Callable[[int], bool],
) -> tuple[ChunkOutcome, Payload | None]:
    """Takes a chunk in, whose record is at `offset`; what became of it, and the payload if it is whole for the first time.

    `is_known` returns whether a payload of this number waits or is stored.
    """
    session.seen_ms = clock_ms
    upload = session.uploads.pop(chunk.upload, None)
    if chunk.index == 0 and upload is None:
        upload = Upload(chunk.sequence, clock_ms)
    if upload is None:
        return "torn", None
    if chunk.index != upload.next_index or chunk.sequence != upload.sequence or chunk.end < upload.end:
        return "torn", None
    upload.seen_ms = clock_ms
    upload.next_index += 1
    upload.end = chunk.end
    first, count = upload.runs[-1] if upload.runs else (offset, 0)
    if first + count == offset:
        upload.runs = [*upload.runs[:-1], (first, count + 1)]
    else:
        upload.runs.append((offset, 1))
    if not chunk.is_last:
        if len(session.uploads) >= rules.uploads_max:
            # One that goes on has chunks more often than this: its client has given up.
            del session.uploads[min(session.uploads, key=lambda name: session.uploads[name].seen_ms)]
        session.uploads[chunk.upload] = upload
        return "more", None
    if is_known(chunk.sequence) or (session.working is not None and session.working[0] == chunk.sequence):
        return "again", None
    payload = Payload(
        runs=tuple(upload.runs),
        size_bytes=chunk.end,
        sha256=chunk.sha256,
        chunks=upload.next_index,
        at_ms=clock_ms,
        content_type=chunk.content_type,
        content_encoding=chunk.content_encoding,
    )
    return "whole", payload


def may_begin(session: Session, first: int | None, clock_ms: int) -> bool:
    """Whether the first payload that waits may be worked now; a gap before it begins to be waited for."""
    if session.working is not None or first is None:
        return False
    if first > session.next:
        session.gap_since_ms = session.gap_since_ms or clock_ms
        return False
    session.gap_since_ms = 0
    return True


def give_up_gap(session: Session, first: int | None, clock_ms: int, rules: SessionRules) -> Range | None:
    """The numbers before the first payload that waits that are not waited for any more, first and last; None for none."""
    if not session.gap_since_ms or session.working is not None or first is None:
        return None
    if clock_ms < session.gap_since_ms + rules.gap_ms and session.waiting <= rules.waiting_max:
        return None
    absent = session.next, first - 1
    session.next, session.gap_since_ms = first, 0
    _give_up(session, absent)
    return absent


def _give_up(session: Session, absent: Range) -> None:
    session.absent = sorted([*session.absent, absent])
    while len(session.absent) > ABSENT_RANGES_MAX:
        ranges = session.absent
        at = min(range(1, len(ranges)), key=lambda number: ranges[number][0] - ranges[number - 1][1])
        session.absent = [*ranges[: at - 1], (ranges[at - 1][0], ranges[at][1]), *ranges[at + 1 :]]


def end_working(session: Session, *, is_stored: bool) -> tuple[int, Payload]:
    """What was worked is stored, or never can be: then it may come again."""
    assert session.working is not None
    number, payload = session.working
    session.working = None
    session.next = max(session.next, number + 1)
    if is_stored:
        absent = [part for span in session.absent for part in _without(span, number)]
        session.absent = absent if len(absent) <= ABSENT_RANGES_MAX else session.absent
    elif not _is_absent(session, number):
        _give_up(session, (number, number))
    return number, payload


def drop_old_uploads(session: Session, clock_ms: int, rules: SessionRules) -> int:
    """How many uploads were dropped because nothing came of them for too long."""
    old = [name for name, upload in session.uploads.items() if clock_ms >= upload.seen_ms + rules.upload_ms]
    for name in old:
        del session.uploads[name]
    return len(old)


def is_over(session: Session, clock_ms: int, rules: SessionRules) -> bool:
    """Whether the session is to be forgotten: nothing came for long, and nothing is left to do."""
    idle = not (session.uploads or session.waiting or session.working)
    return idle and clock_ms >= session.seen_ms + rules.kept_ms


def due_ms(session: Session, clock_ms: int, rules: SessionRules) -> int:
    """When there is something to do without a chunk: the deadline of the session's row, ms since 1970."""
    deadlines = [upload.seen_ms + rules.upload_ms for upload in session.uploads.values()]
    if session.gap_since_ms and session.working is None:
        deadlines.append(session.gap_since_ms + rules.gap_ms)
    # While something is worked its end looks after the session; the row must not be due for ever.
    return min(deadlines, default=max(session.seen_ms, clock_ms) + rules.kept_ms)


def _is_absent(session: Session, number: int) -> bool:
    return any(first <= number <= last for first, last in session.absent)


def _without(span: Range, number: int) -> list[Range]:
    first, last = span
    if not first <= number <= last:
        return [span]
    return [part for part in ((first, number - 1), (number + 1, last)) if part[0] <= part[1]]
