"""The fold of beacons into views: what each record and each passing of time does to the rows of a partition."""

from typing import Any

from services.processor.applications.video_views.beacons.sources import to_step
from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.keys import SEPARATOR
from services.processor.applications.video_views.live.rows import LIVE_ROWS, LiveRow
from services.processor.applications.video_views.outputs import Outputs, ids_of, of_another
from services.processor.applications.video_views.sessions import Sessions
from services.processor.applications.video_views.stores import CLOSED_VIEWS, SESSIONS, VIEWS, Dimensions, Stores, reopen
from services.processor.applications.video_views.view.finish import due_ms as due_of
from services.processor.applications.video_views.view.finish import finishes_at_ms, has_begun, writes_at_ms
from services.processor.applications.video_views.view.growth import bound, may_grow
from services.processor.applications.video_views.view.order.seen import is_late
from services.processor.applications.video_views.view.state import ViewState, closed_of, new_view
from services.processor.engine.application.application import StoreSpec
from services.processor.engine.record import Record
from shared import codec
from shared.codec import Undecodable
from shared.schemas.beacon import Beacon
from shared.sources import SESSION_SOURCE, SOURCES


class VideoViews:
    """The processor of one partition."""

    def __init__(self, stores: Stores, outputs: Outputs) -> None:
        self._stores = stores
        self._outputs = outputs
        self._sessions = Sessions(stores, outputs)
        # Attributes of its own for what every beacon needs.
        self._views = stores.views
        self._dimensions = stores.dimensions
        self._live = stores.live
        self._gauges = stores.gauges
        self._put_view = stores.put_view

    def fold(self, record: Record) -> None:
        """Folds one beacon. Raises `Undecodable` if it is no beacon, or of another client than the rest of its view."""
        key = record.key
        if record.value is None or key is None:
            raise Undecodable("the record has no key or no value")
        if SEPARATOR in key:
            # Its rows would be those of the view that its key begins with, and it may be of another partition.
            raise Undecodable("the view id has a character NUL")
        beacon = codec.BEACON.decode(record.value)
        next_step = to_step(beacon)
        if SOURCES[beacon.source].has_plays:
            self._sessions.fold(record, key, beacon, next_step)
        else:
            self._fold_into_view(record, key, beacon, next_step)

    def _fold_into_view(self, record: Record, key: bytes, beacon: Beacon, next_step: Step) -> None:
        view = self._views.get(key)
        if view is None and not self._is_closed(record, key, beacon, next_step):
            view = new_view(beacon.source, record.timestamp_ms)
        if view is not None:
            if view.source != beacon.source:
                raise of_another(view.source, beacon)
            self._fold_step(record, key, view, next_step, self._live.of(beacon.customer_id))

    def _fold_step(self, record: Record, key: bytes, view: ViewState, next_step: Step, bucket: LiveRow) -> None:
        dimensions = self._dimensions.get(key) or Dimensions()
        taken = view.order.take_step(view.folded, dimensions.values, next_step)
        view.late_count += taken.is_late
        if may_grow(view, taken, next_step):
            bound(view, dimensions.values, len(record.value or b""))
        if taken.is_new or taken.is_nearer:
            # A duplicate that counts instead of its original changes the row: the view is open again.
            reopen(view, bucket, record.timestamp_ms, is_new=taken.is_new)
        if taken.dimensions_changed:
            self._dimensions.put(key, dimensions)
        if taken.is_new:
            bucket.beacons += 1
            view.beacon_count += 1
            self._gauges.note(view, dimensions.values, bucket, dimensions_changed=taken.dimensions_changed)
        else:
            view.duplicate_count += 1
            bucket.duplicates += 1
        self._put_view(key, view)

    def _is_closed(self, record: Record, key: bytes, beacon: Beacon, next_step: Step) -> bool:
        """Whether the beacon belongs to a view that has closed: then it is counted, as late or as a duplicate."""
        closed, session = self._stores.closed.get(key), self._stores.sessions.get(key)
        source = SESSION_SOURCE if session is not None else closed.source if closed is not None else beacon.source
        if source != beacon.source:
            raise of_another(source, beacon)
        if closed is not None:
            if is_late(closed, next_step):
                self._outputs.late(record, key, beacon)
                self._stores.closed.put(key, closed, self._stores.closed.deadline_ms(key))
            else:
                self._live.of(beacon.customer_id).duplicates += 1
        return closed is not None

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        """Something is due without a beacon: a live bucket, a finish, the end of a window."""
        if spec is LIVE_ROWS:
            self._live.fire(key)
        elif spec is CLOSED_VIEWS:
            self._stores.closed.delete(key)
        elif spec is SESSIONS:
            self._sessions.fire(key)
        else:
            self._fire_view(key)

    def row_keys(self, key: bytes) -> list[bytes]:
        """The keys of a session's plays: their rows are of its records, too."""
        return self._stores.play_keys(key)

    def release(self, spec: StoreSpec[Any], key: bytes) -> None:
        """A view cannot be finished: it does not count as open any more."""
        view = self._views.get(key) if spec is VIEWS else None
        if view is not None:
            # Only the customer is read: the rest of the key may be unreadable.
            self._gauges.close(view, self._live.of(key.partition(b":")[0].decode()))

    def _fire_view(self, key: bytes) -> None:
        view = self._views.get(key)
        if view is None:
            return
        clock_ms, rules = self._stores.context.clock_ms, self._stores.rules
        if view.finished_ms:
            closes_ms = view.finished_ms + rules.lateness_ms
            if clock_ms >= closes_ms:
                self._close(key, view, closes_ms)
                return
        elif clock_ms >= finishes_at_ms(view, rules):
            self._finish(key, view)
        elif clock_ms >= writes_at_ms(view, rules):
            view.written_ms = clock_ms
            if has_begun(view):
                self._emit_row(key, view)
        elif view.shown.viewer and clock_ms >= view.last_append_ms + rules.live_silence_ms:
            customer_id, _ = ids_of(key)
            self._gauges.hide(view, self._live.of(customer_id))
        # Also if nothing changed: a deadline that is too early (see `Store.put_by`) moves to its right time.
        self._views.put(key, view, due_of(view, rules))

    def _close(self, key: bytes, view: ViewState, closes_ms: int) -> None:
        if SOURCES[view.source].has_plays:
            self._sessions.close(key, view, closes_ms)
            return
        self._stores.forget(key)
        if view.revision:
            self._stores.closed.put(key, closed_of(view), closes_ms + self._stores.rules.closed_ms)

    def _finish(self, key: bytes, view: ViewState) -> None:
        customer_id, _ = ids_of(key)
        bucket, gauges = self._live.of(customer_id), self._gauges
        gauges.hide(view, bucket)
        view.finished_ms = finishes_at_ms(view, self._stores.rules)
        gauges.count(view, bucket, {})
        if has_begun(view):
            self._emit_row(key, view)
            return
        # The view has not begun, so there is no row. Its start may still come within the lateness window.
        view.dropped_count = view.beacon_count
        bucket.dropped += view.dropped_count
        if SOURCES[view.source].has_plays:
            self._sessions.take_back_row(key, view)

    def _emit_row(self, key: bytes, view: ViewState) -> None:
        customer_id, _ = ids_of(key)
        bucket = self._live.of(customer_id)
        of_play = self._sessions.finish(key, view) if SOURCES[view.source].has_plays else None
        view.revision, first_append_ms = of_play or (view.revision + 1, view.first_append_ms)
        row = self._outputs.row(key, view, view.revision, first_append_ms)
        if view.revision > 1:
            bucket.views_revised += 1
        else:
            self._gauges.finish(bucket, row)
