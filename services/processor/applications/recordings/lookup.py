"""Lookups of recordings: the list of a session's stored payloads, and the payloads themselves, streamed from the object store."""

from collections.abc import Mapping
from typing import Final

import msgspec

from services.processor.applications.recordings.session import Session
from services.processor.engine.application.application import (
    Candidate,
    Lookup,
    LookupWrong,
    MapSpec,
    Objects,
    Rows,
    StoredObject,
    StoreSpec,
)
from shared.partitioning import recording_key
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.recording import SEQUENCE_DIGITS_MAX, SEQUENCE_MAX, SESSION_ID, RecordingIndex, StoredPayload
from shared.schemas.span import DEFAULT_CUSTOMER

#: Payloads in one answer; `next` is where the rest begins.
LISTED_MAX: Final = 2_048

SESSIONS: Final = StoreSpec(
    name="sessions", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(Session).decode
)
#: What of each session is stored, by number (`stored_entry`).
STORED: Final = MapSpec(
    name="stored",
    id=3,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(StoredPayload).decode,
)


class _Question(msgspec.Struct, frozen=True, array_like=True):
    key: bytes
    first: int
    last: int


_questions: Final = msgspec.msgpack.Decoder(_Question)
_listed: Final = msgspec.json.Decoder(RecordingIndex)


def stored_entry(number: int) -> bytes:
    """The entry of a stored payload: entries are in the order of numbers."""
    return number.to_bytes(4, "big")


def lookups() -> tuple[Lookup, ...]:
    """`GET /recordings/<session>` streams all payloads in order, `…/index` lists them, `…/<number>` gives one as it came."""
    parameters = frozenset({"customer", "from"})
    return (
        Lookup("/recordings/{session}", _candidates_of, _answer, parameters, is_document=True, objects_of=_all_of),
        Lookup("/recordings/{session}/index", _candidates_of, _answer, parameters, is_document=True),
        Lookup(
            "/recordings/{session}/{number:[0-9]{1,6}}",
            _one_candidate_of,
            _answer_one,
            frozenset({"customer"}),
            is_document=True,
            objects_of=_one_of,
        ),
    )


def _answer(rows: Rows, subject: bytes) -> bytes | None:
    question = _questions.decode(subject)
    session = rows.get(SESSIONS, question.key)
    if session is None:
        return None
    after = stored_entry(question.first - 1) if question.first else None
    limit = min(LISTED_MAX, question.last - question.first) + 1
    found = rows.items(STORED, question.key, limit, after=after)
    payloads = [one for _, one in found if one.sequence <= question.last]
    customer_id, _, session_id = question.key.decode().partition(":")
    listed = RecordingIndex(
        customer_id=customer_id,
        session_id=session_id,
        payloads=payloads[:LISTED_MAX],
        absent=session.absent,
        waiting=session.waiting,
        working=None if session.working is None else session.working[0],
        next=payloads[LISTED_MAX].sequence if len(payloads) > LISTED_MAX else None,
    )
    return msgspec.json.encode(listed)


def _answer_one(rows: Rows, subject: bytes) -> bytes | None:
    document = _answer(rows, subject)
    return document if document is not None and _listed.decode(document).payloads else None


def _candidates_of(parts: Mapping[str, str]) -> tuple[Candidate, ...]:
    first = parts.get("from", "0")
    # The length first: Python refuses to read a number of thousands of digits.
    if not (first.isascii() and first.isdigit()) or len(first) > SEQUENCE_DIGITS_MAX or int(first) > SEQUENCE_MAX:
        raise LookupWrong(f"from is a number up to {SEQUENCE_MAX}")
    return _candidates(parts, int(first), SEQUENCE_MAX)


def _one_candidate_of(parts: Mapping[str, str]) -> tuple[Candidate, ...]:
    return _candidates(parts, int(parts["number"]), int(parts["number"]))


def _candidates(parts: Mapping[str, str], first: int, last: int) -> tuple[Candidate, ...]:
    customer_id, session_id = parts.get("customer", DEFAULT_CUSTOMER), parts["session"]
    if not CUSTOMER_ID.fullmatch(customer_id):
        raise LookupWrong(f"a customer id matches {CUSTOMER_ID.pattern}")
    if not SESSION_ID.fullmatch(session_id):
        raise LookupWrong(f"a session id matches {SESSION_ID.pattern}")
    key = recording_key(customer_id, session_id)
    return (Candidate(key, msgspec.msgpack.encode(_Question(key, first, last))),)


def _all_of(document: bytes) -> Objects:
    listed = _listed.decode(document)
    rest = None if listed.next is None else {"from": str(listed.next)}
    return Objects([_stored(one) for one in listed.payloads], rest=rest)


def _one_of(document: bytes) -> Objects:
    return Objects([_stored(one) for one in _listed.decode(document).payloads[:1]], is_one=True)


def _stored(one: StoredPayload) -> StoredObject:
    headers = {
        "Content-Type": one.content_type or "application/octet-stream",
        "Playhead-Sequence": str(one.sequence),
        "Playhead-Sha256": one.sha256,
    }
    if one.content_encoding:
        headers["Content-Encoding"] = one.content_encoding
    return StoredObject(one.object, one.size_bytes, headers)
