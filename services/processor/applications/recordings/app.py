"""recordings: topics, stores and the fold that joins chunks to payloads and requests their storage, one at a time per session."""

from typing import Any, Final

import msgspec

from services.processor.applications.recordings.lookup import SESSIONS, STORED, lookups, stored_entry
from services.processor.applications.recordings.session import (
    Payload,
    Session,
    drop_old_uploads,
    due_ms,
    end_working,
    give_up_gap,
    is_over,
    may_begin,
    take_chunk,
)
from services.processor.applications.recordings.settings import SessionRules
from services.processor.applications.recordings.waiting import NUMBERS, WAITING, WaitingPayloads
from services.processor.engine.application.application import (
    Application,
    Context,
    Processor,
    Store,
    StoreSpec,
    media_store,
)
from services.processor.engine.application.media_requests import MediaOutcome, MediaRequest
from services.processor.engine.record import Record
from shared import codec, topics
from shared.chunks import chunk_of
from shared.codec import Undecodable
from shared.partitioning import recording_key
from shared.schemas.recording import SCHEMA_VERSION, RecordingRow, RecordingState, StoredPayload

REQUESTS: Final = media_store(2)
#: Of a payload's SHA-256, in the name of its object.
_OBJECT_HASH_BYTES: Final = 16
#: Stored payloads of a session that are forgotten at once.
_FORGOTTEN_AT_ONCE: Final = 5_000
_STATES: Final[dict[MediaOutcome, RecordingState]] = {
    "stored": "stored",
    "gone": "lost",
    "corrupt": "corrupt",
    "refused": "refused",
}


def object_name(customer_id: str, session_id: str, number: int, sha256: bytes) -> str:
    """Where a payload is stored. Its content is in the name: once its session is forgotten, another payload replaces nothing."""
    return f"{customer_id}/{session_id}/{number:06d}-{sha256[:_OBJECT_HASH_BYTES].hex()}"


class Recordings:
    """The processor of one partition."""

    def __init__(self, context: Context, rules: SessionRules) -> None:
        self._context = context
        self._rules = rules
        self._sessions: Store[Session] = context.store(SESSIONS)
        self._stored = context.map(STORED)
        self._waiting = WaitingPayloads(context)

    def fold(self, record: Record) -> None:
        """Takes one chunk in; its bytes stay where they are."""
        chunk = chunk_of(record.headers)
        key = record.key or b""
        customer_id, _, session_id = key.decode(errors="replace").partition(":")
        if session_id != chunk.session_id or recording_key(customer_id, session_id) != key:
            raise Undecodable("the key names another session than the headers")
        session = self._sessions.get(key) or Session()
        outcome, payload = take_chunk(
            session,
            chunk,
            record.offset,
            self._context.clock_ms,
            rules=self._rules,
            is_known=lambda number: self._waiting.has(key, number) or self._is_stored(key, number),
        )
        if payload is not None:
            self._waiting.add(key, session, chunk.sequence, payload)
        if outcome in {"again", "torn"}:
            self._context.tally("repeated_payloads" if outcome == "again" else "torn_chunks", 1)
        self._go_on(key, session)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:  # noqa: ARG002 - sessions alone have deadlines
        """An upload is silent or a gap open for too long, or the session is to be forgotten."""
        session = self._sessions.get(key)
        if session is None:
            return
        drop_old_uploads(session, self._context.clock_ms, self._rules)
        if is_over(session, self._context.clock_ms, self._rules):
            if self._stored.clear(key, _FORGOTTEN_AT_ONCE) < _FORGOTTEN_AT_ONCE:
                self._sessions.delete(key)
            else:
                self._sessions.put(key, session, self._context.clock_ms + 1)
            return
        self._go_on(key, session)

    def media_done(self, key: bytes, request: MediaRequest, outcome: MediaOutcome) -> None:
        """The payload that was worked is stored, or it never can be."""
        session = self._sessions.get(key)
        if session is None or session.working is None:
            return
        number, payload = end_working(session, is_stored=outcome == "stored")
        stored = request.name if outcome == "stored" else ""
        if stored:
            self._list(key, number, payload, stored)
            self._context.tally("stored_payloads", 1)
            self._context.tally("stored_bytes", payload.size_bytes)
        self._emit_row(key, session, (number, number), _STATES[outcome], payload=payload, name=stored)
        self._go_on(key, session)

    def release(self, spec: StoreSpec[Any], key: bytes) -> None:
        """A request that cannot be followed up is rejected: its payload counts as lost, so that the session goes on."""
        session = self._sessions.get(key)
        if spec is REQUESTS and session is not None and session.working is not None:
            end_working(session, is_stored=False)
            # The request's row exists until this returns: the next request is made when the session fires.
            self._sessions.put(key, session, self._context.clock_ms + 1)

    def _go_on(self, key: bytes, session: Session) -> None:
        """Does the next step of the session, and sets the deadline of the step after it."""
        clock_ms = self._context.clock_ms
        while not self._begin_next(key, session):
            absent = give_up_gap(session, self._waiting.first(key, session), clock_ms, self._rules)
            if absent is None:
                break
            self._context.tally("missing_payloads", absent[1] - absent[0] + 1)
            self._emit_row(key, session, absent, "missing")
        self._sessions.put(key, session, due_ms(session, clock_ms, self._rules))

    def _begin_next(self, key: bytes, session: Session) -> bool:
        """Has the payload stored whose turn it is; whether there is one."""
        number = self._waiting.first(key, session)
        if number is None or not may_begin(session, number, self._context.clock_ms):
            return False
        payload = self._waiting.take_payload(key, session, number)
        session.working = number, payload
        customer_id, _, session_id = key.decode().partition(":")
        name = object_name(customer_id, session_id, number, payload.sha256)
        request = MediaRequest(name, topics.RECORDINGS.name, payload.runs, payload.size_bytes, payload.sha256)
        self._context.request_media(key, request)
        return True

    def _is_stored(self, key: bytes, number: int) -> bool:
        return self._stored.get(key, stored_entry(number)) is not None

    def _list(self, key: bytes, number: int, payload: Payload, name: str) -> None:
        # One that was stored before is replaced.
        stored = StoredPayload(
            number, payload.size_bytes, payload.sha256.hex(), payload.content_type, payload.content_encoding, name
        )
        self._stored.put(key, stored_entry(number), stored)

    def _emit_row(
        self,
        key: bytes,
        session: Session,
        numbers: tuple[int, int],
        state: RecordingState,
        *,
        payload: Payload | None = None,
        name: str = "",
    ) -> None:
        customer_id, _, session_id = key.decode().partition(":")
        session.revision += 1
        row = RecordingRow(
            schema_version=SCHEMA_VERSION,
            customer_id=customer_id,
            session_id=session_id,
            sequence=numbers[0],
            sequence_last=numbers[1],
            state=state,
            revision=session.revision,
            at_ms=self._context.clock_ms if payload is None else payload.at_ms,
            object=name,
        )
        if payload is not None:
            row = msgspec.structs.replace(
                row,
                size_bytes=payload.size_bytes,
                sha256=payload.sha256.hex(),
                content_type=payload.content_type,
                content_encoding=payload.content_encoding,
                chunks=payload.chunks,
            )
        self._context.emit(topics.RECORDING_INDEX, key, codec.RECORDING.encode(row))


def application(rules: SessionRules) -> Application:
    """The application under these rules."""

    def start(context: Context) -> Processor:
        return Recordings(context, rules)

    return Application(
        name="recordings",
        inputs=(topics.RECORDINGS,),
        outputs=(topics.RECORDING_INDEX, topics.REJECTED),
        changelog=topics.RECORDINGS_CHANGELOG,
        stores=(SESSIONS, REQUESTS, STORED, WAITING, NUMBERS),
        start=start,
        cannot_grow="its state names the offsets in topic recordings at which payloads are",
        by_headers=True,
        is_forgetting=True,
        media=REQUESTS,
        lookups=lookups(),
        tallies=("stored_payloads", "stored_bytes", "missing_payloads", "repeated_payloads", "torn_chunks"),
    )
