"""The fold of sources whose key is a session's (CMCD): each record into the play it belongs to, which may change others.

A session row is stored whenever it has changed: what was changed in place and not stored would be lost in a crash.
"""

from typing import Final, NamedTuple

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import MEASURED_BYTES
from services.processor.applications.video_views.keys import play_key, session_key
from services.processor.applications.video_views.live.rows import LiveRow
from services.processor.applications.video_views.outputs import Outputs, of_another
from services.processor.applications.video_views.plays.place import close, follow, has_come, place
from services.processor.applications.video_views.plays.rearrange import settle_oldest
from services.processor.applications.video_views.plays.session import Placed, Play, Session
from services.processor.applications.video_views.shelf import StoredShelf
from services.processor.applications.video_views.stores import Stores, reopen
from services.processor.applications.video_views.view.growth import bound, may_grow
from services.processor.applications.video_views.view.order.seen import add_key, numbered_key_of
from services.processor.applications.video_views.view.state import ViewState, closed_of
from services.processor.engine.record import Record
from shared.schemas.beacon import Beacon

#: A play that may not close before those in front of it asks again after this time, ms.
CLOSE_AGAIN_MS: Final = 60_000


class _Order(NamedTuple):
    """What a play's row says of its place in the session."""

    number: int
    is_superseded: bool
    until_seq: int


class Sessions:
    """Sessions and their plays, of one partition."""

    def __init__(self, stores: Stores, outputs: Outputs) -> None:
        self._stores = stores
        self._outputs = outputs

    def fold(self, record: Record, key: bytes, beacon: Beacon, next_step: Step) -> None:
        """Takes one beacon of a session in."""
        stores = self._stores
        session = stores.sessions.get(key) or self._begin(record, key, beacon)
        shelf = StoredShelf(key, stores, source=beacon.source, append_ms=record.timestamp_ms)
        before = list(session.plays)
        placed = place(session, shelf, next_step)
        bucket = stores.live.of(beacon.customer_id)
        if placed.taken is None:
            if self._has_come(key, session, next_step) or not add_key(session.late_keys, numbered_key_of(next_step)):
                bucket.duplicates += 1
            else:
                self._outputs.late(record, key, beacon)
                stores.put_session(key, session)
            return
        bucket.beacons += placed.taken.is_new
        bucket.duplicates += not placed.taken.is_new
        changed = set(placed.changed)
        if placed.is_rearranged:
            for ordinal, view in shelf.dropped:
                stores.gauges.forget(view, bucket)
                stores.forget(play_key(key, ordinal))
            changed |= self._number(session, shelf, _orders(before, session.closed))
            self._take_back_rows(key, session)
            stores.put_session(key, session)
        changed |= follow(session, shelf, placed, next_step)
        self._store(shelf, placed, changed, bucket, next_step=next_step, beacon_bytes=len(record.value or b""))
        for ordinal in settle_oldest(session, shelf, placed):
            view, dimensions = shelf.opened[ordinal]
            stores.dimensions.put(play_key(key, ordinal), dimensions)
            stores.put_view(play_key(key, ordinal), view)

    def _begin(self, record: Record, key: bytes, beacon: Beacon) -> Session:
        other = self._stores.views.get(key) or self._stores.closed.get(key)
        if other is not None and other.source != beacon.source:
            raise of_another(other.source, beacon)
        return Session(first_append_ms=record.timestamp_ms)

    def _has_come(self, key: bytes, session: Session, step: Step) -> bool:
        for play in session.plays[: session.closed]:
            closed = self._stores.closed.get(play_key(key, play.ordinal))
            if closed is not None and has_come(session, play, closed, step):
                return True
        return False

    def _store(
        self,
        shelf: StoredShelf,
        placed: Placed,
        changed: set[int],
        bucket: LiveRow,
        *,
        next_step: Step,
        beacon_bytes: int,
    ) -> None:
        taken = placed.taken
        assert taken is not None
        for ordinal in sorted(changed | {placed.ordinal} if placed.ordinal else changed):
            view, dimensions = shelf.opened[ordinal]
            key = play_key(shelf.key, ordinal)
            dimensions_changed = taken.dimensions_changed or placed.is_rearranged
            # A rearranged play may have grown by any number of steps: it is measured.
            grown_bytes = MEASURED_BYTES if placed.is_rearranged else beacon_bytes
            may_have_grown = placed.is_rearranged or may_grow(view, taken, next_step)
            if may_have_grown:
                bound(view, dimensions.values, grown_bytes)
            if ordinal in changed:
                reopen(view, bucket, shelf.append_ms, is_new=taken.is_new and ordinal == placed.ordinal)
                self._stores.gauges.note(view, dimensions.values, bucket)
            if dimensions_changed:
                self._stores.dimensions.put(key, dimensions)
            self._stores.put_view(key, view)

    def _number(self, session: Session, shelf: StoredShelf, before: dict[int, _Order]) -> set[int]:
        """Sets the number of each play and what follows it. Returns the plays for which that changed: their rows change."""
        changed = set()
        for ordinal, order in _orders(session.plays, session.closed).items():
            if before.get(ordinal) != order and shelf.open(ordinal) is not None:
                view = shelf.opened[ordinal][0]
                view.play.number, view.play.is_superseded, view.play.until_seq = order
                changed.add(ordinal)
        return changed

    def _take_back_rows(self, key: bytes, session: Session) -> None:
        """Deletes the rows of plays whose beacons have turned out to be of other plays."""
        for number in range(len(session.plays) + 1, len(session.revisions) + 1):
            self._delete_row(key, session, number)

    def _delete_row(self, key: bytes, session: Session, number: int) -> None:
        if number > len(session.revisions) or not session.revisions[number - 1] or number in session.deleted:
            return
        session.revisions[number - 1] += 1
        session.deleted.append(number)
        self._outputs.tombstone(key, number, session.revisions[number - 1], session.first_append_ms)

    def finish(self, key: bytes, view: ViewState) -> tuple[int, int] | None:
        """The revision that a play's row now has, and the append time of its session's first beacon; None without a session."""
        of_session = session_key(key)
        session = self._stores.sessions.get(of_session)
        if session is None:
            return None
        session.revisions += [0] * (view.play.number - len(session.revisions))
        session.revisions[view.play.number - 1] += 1
        if view.play.number in session.deleted:
            session.deleted.remove(view.play.number)
        self._stores.put_session(of_session, session)
        # Numbers may move between plays, rows must not move between days.
        return session.revisions[view.play.number - 1], session.first_append_ms

    def take_back_row(self, key: bytes, view: ViewState) -> None:
        """A play that finished is no view: a row that was emitted under its number is taken back."""
        of_session = session_key(key)
        session = self._stores.sessions.get(of_session)
        if session is not None:
            self._delete_row(of_session, session, view.play.number)
            self._stores.put_session(of_session, session)

    def close(self, key: bytes, view: ViewState, closes_ms: int) -> None:
        """A play's lateness window is over: it closes, unless one in front of it has yet to."""
        stores, of_session = self._stores, session_key(key)
        session = stores.sessions.get(of_session)
        if session is None:
            stores.forget(key)
            return
        while stores.views.get(play_key(of_session, session.plays[session.closed].ordinal)) is None:
            # Its row is gone: it was written to `rejected`.
            close(session, None)
        if play_key(of_session, session.plays[session.closed].ordinal) != key:
            stores.put_session(of_session, session)
            stores.views.put(key, view, stores.context.clock_ms + CLOSE_AGAIN_MS)
            return
        close(session, view)
        stores.put_session(of_session, session)
        stores.forget(key)
        stores.closed.put(key, closed_of(view), closes_ms + stores.rules.closed_ms)

    def fire(self, key: bytes) -> None:
        """A session's time is over, unless any of its plays can still be hit by a beacon."""
        stores = self._stores
        session = stores.sessions.get(key)
        if session is None:
            return
        keys = [play_key(key, play.ordinal) for play in session.plays]
        if any(stores.views.get(one) is not None or stores.closed.get(one) is not None for one in keys):
            stores.put_session(key, session)
        else:
            stores.sessions.delete(key)


def _orders(plays: list[Play], closed: int) -> dict[int, _Order]:
    """By ordinal, the order of each open play."""
    return {
        play.ordinal: _Order(at + 1, at + 1 < len(plays), _until_seq(play, plays[at + 1 : at + 2]))
        for at, play in enumerate(plays)
        if at >= closed
    }


def _until_seq(play: Play, following: list[Play]) -> int:
    return following[0].first_seq if following and following[0].run == play.run else 0
