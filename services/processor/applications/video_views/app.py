"""video_views: topics, stores and the fold that makes finished rows and live gauges of beacons."""

from typing import Any, Final

import msgspec

from services.processor.applications.video_views import live
from services.processor.applications.video_views.export import to_video_view
from services.processor.applications.video_views.finish import FinishRules, due_ms, finishes_at_ms, has_begun
from services.processor.applications.video_views.gauges import OPEN_VIEWS, Gauges
from services.processor.applications.video_views.live import LiveBoard, LiveRow
from services.processor.applications.video_views.lookup import view_lookup
from services.processor.applications.video_views.metrics import GoodRules
from services.processor.applications.video_views.plays import Session, place
from services.processor.applications.video_views.progress import Progress
from services.processor.applications.video_views.row import to_row
from services.processor.applications.video_views.shelf import Dimensions, StoredShelf, play_key, session_key
from services.processor.applications.video_views.sources import FIRST_SEQ, clock_offset_ms, to_step
from services.processor.applications.video_views.step import Step
from services.processor.applications.video_views.view import ViewState, is_too_large, may_grow, note_offset, take
from services.processor.applications.video_views.view import clock_offset_ms as offset_of
from services.processor.engine.application import Application, Context, Processor, Store, StoreSpec
from services.processor.engine.record import Record
from shared import codec, topics
from shared.codec import Undecodable
from shared.schemas.beacon import Beacon

VIEWS: Final = StoreSpec(
    name="views", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(ViewState).decode
)
DIMENSIONS: Final = StoreSpec(
    name="dimensions",
    id=2,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Dimensions).decode,
    goes_with="views",
)
#: Keys of views whose lateness window is over. What hits one is late, and never a second view.
CLOSED: Final = StoreSpec(
    name="closed", id=4, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(int).decode
)
#: The plays of sessions, for sources whose key is one (CMCD).
SESSIONS: Final = StoreSpec(
    name="sessions", id=5, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(Session).decode
)


class VideoViews:
    """The processor of one partition."""

    def __init__(
        self,
        context: Context,
        rules: FinishRules,
        good: GoodRules,
        live_dimensions: tuple[str, ...],
        *,
        exports_protobuf: bool,
        generation: int,
    ) -> None:
        self._context = context
        self._generation = generation
        self._exports_protobuf = exports_protobuf
        self._rules = rules
        self._good = good
        self._views: Store[ViewState] = context.store(VIEWS)
        self._dimensions: Store[Dimensions] = context.store(DIMENSIONS)
        self._closed: Store[int] = context.store(CLOSED)
        self._sessions: Store[Session] = context.store(SESSIONS)
        self._live = LiveBoard(context)
        self._gauges = Gauges(context, self._live, live_dimensions)

    def fold(self, record: Record) -> None:
        """Takes one beacon in."""
        if record.value is None or record.key is None:
            raise Undecodable("the record has no key or no value")
        beacon = codec.BEACON.decode(record.value)
        next_step = to_step(beacon)
        if beacon.source == "cmcd":
            self._fold_play(record, record.key, beacon, next_step)
            return
        key = record.key
        view = self._views.get(key)
        if view is None:
            if self._closed.get(key) is not None:
                self._set_late(record, key, beacon)
                return
            view = ViewState(
                source=beacon.source,
                next_seq=FIRST_SEQ.get(beacon.source, 0),
                first_append_ms=record.timestamp_ms,
                last_append_ms=record.timestamp_ms,
                progress=Progress(),
            )
        elif view.source != beacon.source:
            raise _of_another(view, beacon)
        dimensions = self._dimensions.get(key) or Dimensions()
        taken = take(view, dimensions.values, next_step)
        if may_grow(view, taken, next_step):
            view.is_truncated = is_too_large(view, dimensions.values, len(record.value))
        board = self._live.of(beacon.customer_id)
        is_nearer = next_step.clock_offset_ms is None and note_offset(view, clock_offset_ms(beacon))
        if taken.is_new or is_nearer or taken.is_nearer:
            # A duplicate may have travelled faster than the original: then the row changes, and the view is open again.
            self._reopen(view, board, record.timestamp_ms, is_new=taken.is_new)
        if taken.is_new:
            board.beacons += 1
            view.beacon_count += 1
            if taken.dimensions_changed:
                self._dimensions.put(key, dimensions)
            self._gauges.note(view, dimensions.values, board)
        else:
            view.duplicate_count += 1
            board.duplicates += 1
        self._store(key, view)

    def _fold_play(self, record: Record, key: bytes, beacon: Beacon, next_step: Step) -> None:
        """Takes one beacon of a session in: into the play it belongs to, which may change others."""
        session = self._sessions.get(key)
        if session is None:
            view = self._views.get(key)
            if view is not None and view.source != beacon.source:
                raise _of_another(view, beacon)
            session = Session(first_append_ms=record.timestamp_ms)
        shelf = StoredShelf(key, self._views, self._dimensions, source=beacon.source, append_ms=record.timestamp_ms)
        before, strays = _arrangement(session), session.strays
        ordinal, taken = place(session, shelf, next_step)
        if taken is None:
            self._set_late(record, key, beacon)
            return
        board = self._live.of(beacon.customer_id)
        board.beacons += taken.is_new
        board.duplicates += not taken.is_new
        for gone in shelf.dropped:
            self._gauges.forget(shelf.opened.pop(gone)[0], board)
            self._forget(play_key(key, gone))
        if before != _arrangement(session):
            self._number(session, shelf)
        if before != _arrangement(session) or strays is not session.strays:
            self._sessions.put(key, session, self._context.clock_ms + self._rules.view_max_ms)
        for one, (view, dimensions) in shelf.opened.items():
            if one == ordinal and may_grow(view, taken, next_step):
                view.is_truncated = is_too_large(view, dimensions.values, len(record.value or b""))
            if taken.is_new or taken.is_nearer:
                self._reopen(view, board, record.timestamp_ms, is_new=taken.is_new and one == ordinal)
                self._gauges.note(view, dimensions.values, board)
                if taken.dimensions_changed or len(shelf.opened) > 1:
                    self._dimensions.put(play_key(key, one), dimensions)
            self._store(play_key(key, one), view)

    def _number(self, session: Session, shelf: StoredShelf) -> None:
        """Numbers the plays by their order, and tells each what follows it. One that gets another number revises its row."""
        for at, play in enumerate(session.plays):
            after = session.plays[at + 1] if at + 1 < len(session.plays) else None
            until_seq = after.first_seq if after is not None and after.run_ms == play.run_ms else 0
            opened = shelf.open(play.ordinal)
            if opened is not None:
                view = opened[0]
                view.epoch, view.is_superseded, view.until_seq = at + 1, after is not None, until_seq

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        """Something is due without a beacon: a live bucket, a finish, the end of a window."""
        if spec is live.STORE:
            self._live.fire(key)
        elif spec is CLOSED:
            self._closed.delete(key)
        elif spec is SESSIONS:
            self._fire_session(key)
        else:
            self._fire_view(key)

    def let_go(self, spec: StoreSpec[Any], key: bytes) -> None:
        """A view cannot be finished: it counts as open no longer."""
        view = self._views.get(key) if spec is VIEWS else None
        if view is not None:
            # The customer alone: the rest of the key may be what cannot be understood.
            self._gauges.close(view, self._live.of(key.partition(b":")[0].decode()))

    def _fire_session(self, key: bytes) -> None:
        session = self._sessions.get(key)
        if session is None:
            return
        keys = [play_key(key, play.ordinal) for play in session.plays]
        if any(self._views.get(one) is not None or self._closed.get(one) is not None for one in keys):
            # While any play can still be hit by a beacon, the others must be known.
            self._sessions.put(key, session, self._context.clock_ms + self._rules.view_max_ms)
        else:
            self._sessions.delete(key)

    def _fire_view(self, key: bytes) -> None:
        view = self._views.get(key)
        if view is None:
            return
        clock_ms = self._context.clock_ms
        if view.finished_ms:
            closes_ms = view.finished_ms + self._rules.lateness_ms
            if clock_ms >= closes_ms:
                self._forget(key)
                if view.revision:
                    self._closed.put(key, view.revision, closes_ms + self._rules.closed_ms)
                return
        elif clock_ms >= finishes_at_ms(view, self._rules):
            self._finish(key, view)
        elif view.shown and clock_ms >= view.last_append_ms + self._rules.live_silence_ms:
            customer_id, _ = _ids(key)
            self._gauges.hide(view, self._live.of(customer_id))
        # Set anew even where it stays: a deadline that was kept too early (see `_store`) moves to where it belongs.
        self._views.put(key, view, due_ms(view, self._rules))

    @staticmethod
    def _reopen(view: ViewState, board: LiveRow, append_ms: int, *, is_new: bool) -> None:
        """The view has changed; if it had finished, it finishes again, by the same rules from now on."""
        if view.finished_ms:
            view.finished_ms = 0
            view.last_append_ms = append_ms
            board.dropped -= view.dropped_count
            view.dropped_count = 0
        elif is_new:
            view.last_append_ms = append_ms

    def _finish(self, key: bytes, view: ViewState) -> None:
        customer_id, view_id = _ids(key)
        board = self._live.of(customer_id)
        self._gauges.hide(view, board)
        view.finished_ms = finishes_at_ms(view, self._rules)
        self._gauges.count(view, board, {})
        if not has_begun(view):
            # No view, so no row; but its start may still come within the lateness window.
            view.dropped_count = view.beacon_count
            board.dropped += view.dropped_count
            return
        first_append_ms = view.first_append_ms
        revision = view.revision + 1
        session = self._sessions.get(session_key(key)) if view.source == "cmcd" else None
        if session is not None:
            session.revisions += [0] * (view.epoch - len(session.revisions))
            revision = session.revisions[view.epoch - 1] = session.revisions[view.epoch - 1] + 1
            # Numbers may move between plays, rows must not move between days.
            first_append_ms = session.first_append_ms
            self._sessions.put(session_key(key), session, self._context.clock_ms + self._rules.view_max_ms)
        view.revision = revision
        dimensions = self._dimensions.get(key) or Dimensions()
        row = to_row(
            view,
            dimensions.values,
            customer_id=customer_id,
            view_id=view_id if view.epoch == 1 else f"{view_id}.{view.epoch}",
            revision=revision,
            first_append_ms=first_append_ms,
            good=self._good,
        )
        if self._generation != row.generation:
            row = msgspec.structs.replace(row, generation=self._generation)
        row_key = f"{customer_id}:{row.view_id}".encode()
        self._context.emit(topics.VIEWS, row_key, codec.VIEW.encode(row))
        if self._exports_protobuf:
            headers = (("revision", str(revision).encode()),)
            self._context.emit(topics.VIEWS_PROTOBUF, row_key, to_video_view(row, offset_of(view)), headers)
        if revision > 1:
            board.views_revised += 1
        else:
            self._gauges.finish(board, row)

    def _set_late(self, record: Record, key: bytes, beacon: Beacon) -> None:
        self._context.emit(topics.LATE, key, record.value or b"")
        self._live.of(beacon.customer_id).late += 1

    def _forget(self, key: bytes) -> None:
        self._views.delete(key)
        self._dimensions.delete(key)

    def _store(self, key: bytes, view: ViewState) -> None:
        due = due_ms(view, self._rules)
        armed = self._views.deadline_ms(key)
        # A timer that fires early is set anew then; moving it with every beacon would cost far more.
        self._views.put(key, view, armed if 0 < armed <= due else due)


def _of_another(view: ViewState, beacon: Beacon) -> Undecodable:
    """Two kinds of client under one view id count and number their beacons each in its own way: no row can be made of both."""
    return Undecodable(f"the view is told by {view.source}, this beacon is of {beacon.source}")


def _arrangement(session: Session) -> list[tuple[int, int, int]]:
    return [(play.ordinal, play.run_ms, play.first_seq) for play in session.plays]


def _ids(key: bytes) -> tuple[str, str]:
    customer_id, _, view_id = session_key(key).decode().partition(":")
    return customer_id, view_id


def application(
    rules: FinishRules,
    good: GoodRules | None = None,
    live_dimensions: tuple[str, ...] = (),
    *,
    exports_protobuf: bool = False,
    generation: int = 1,
) -> Application:
    """The application under these rules; the live gauges are sliced by the given fields of the row.

    `generation` is that of its rows: a larger one stands in for every revision of a smaller one.
    With `exports_protobuf` each row also goes to topic `views.protobuf`, in the same transaction.
    """

    def start(context: Context) -> Processor:
        return VideoViews(
            context,
            rules,
            good or GoodRules(),
            live_dimensions,
            exports_protobuf=exports_protobuf,
            generation=generation,
        )

    exports = (topics.VIEWS_PROTOBUF,) if exports_protobuf else ()

    return Application(
        name="video_views",
        inputs=(topics.BEACONS,),
        outputs=(topics.VIEWS, *exports, topics.LIVE, topics.LATE, topics.REJECTED),
        changelog=topics.VIDEO_VIEWS_CHANGELOG,
        stores=(VIEWS, DIMENSIONS, live.STORE, CLOSED, SESSIONS),
        start=start,
        tallies=(OPEN_VIEWS,),
        lookups=(view_lookup(VIEWS, DIMENSIONS, CLOSED, SESSIONS, good or GoodRules()),),
    )
