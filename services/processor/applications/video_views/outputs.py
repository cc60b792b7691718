"""The outputs of the application: rows, revisions that delete a row, and late beacons."""

import msgspec

from services.processor.applications.video_views.keys import session_key
from services.processor.applications.video_views.row.mux_export import to_video_view
from services.processor.applications.video_views.row.row import to_row
from services.processor.applications.video_views.row.scores import GoodRules
from services.processor.applications.video_views.stores import Stores
from services.processor.applications.video_views.view.state import ViewState, clock_offset_ms
from services.processor.engine.record import Record
from shared import codec, topics
from shared.codec import Undecodable
from shared.schemas.beacon import Beacon
from shared.schemas.view import SCHEMA_VERSION, View
from shared.sources import SESSION_SOURCE

_DAY_MS = 86_400_000


def ids_of(key: bytes) -> tuple[str, str]:
    """The customer, and the view id of the first play, of a store key."""
    customer_id, _, view_id = session_key(key).decode().partition(":")
    return customer_id, view_id


def numbered(view_id: str, number: int) -> str:
    """The view id of the play of this number."""
    return view_id if number == 1 else f"{view_id}.{number}"


def of_another(source: str, beacon: Beacon) -> Undecodable:
    """The error for a beacon of another kind of client: the two number and count differently, so no row can be made of both."""
    return Undecodable(f"the view is reported by {source}, this beacon is of {beacon.source}")


class Outputs:
    """Emits with the open checkpoint."""

    def __init__(self, stores: Stores, good: GoodRules, generation: int, *, exports_protobuf: bool) -> None:
        self._stores = stores
        self._good = good
        self._generation = generation
        self._exports_protobuf = exports_protobuf

    def row(self, key: bytes, view: ViewState, revision: int, first_append_ms: int) -> View:
        """Emits the view's row as it is now, and returns it."""
        customer_id, view_id = ids_of(key)
        dimensions = self._stores.dimensions.get(key)
        row = to_row(
            view,
            dimensions.values if dimensions is not None else {},
            customer_id=customer_id,
            view_id=numbered(view_id, view.play.number),
            revision=revision,
            first_append_ms=first_append_ms,
            good=self._good,
        )
        if self._generation != row.generation:
            row = msgspec.structs.replace(row, generation=self._generation)
        self._emit(row)
        if self._exports_protobuf:
            headers = (("revision", str(revision).encode()),)
            value = to_video_view(row, clock_offset_ms(view, view.progress))
            self._stores.context.emit(topics.VIEWS_PROTOBUF, _key_of(row), value, headers)
        return row

    def tombstone(self, key: bytes, number: int, revision: int, first_append_ms: int) -> None:
        """Emits a revision that says that there is no such view: its beacons are of other views."""
        customer_id, view_id = ids_of(key)
        clock_ms = self._stores.context.clock_ms
        self._emit(
            View(
                schema_version=SCHEMA_VERSION,
                generation=self._generation,
                revision=revision,
                customer_id=customer_id,
                view_id=numbered(view_id, number),
                source=SESSION_SOURCE,
                view_epoch=number,
                day=first_append_ms // _DAY_MS,
                first_append_ms=first_append_ms,
                last_append_ms=clock_ms,
                view_start_ms=clock_ms,
                view_end_ms=clock_ms,
                end_reason="superseded",
                view_dropped=False,
                beacon_count=0,
                deleted=True,
            )
        )

    def late(self, record: Record, key: bytes, beacon: Beacon) -> None:
        """Emits a beacon that came after its view's lateness window to topic `late`, and counts it."""
        self._stores.context.emit(topics.LATE, key, record.value or b"")
        self._stores.live.of(beacon.customer_id).late += 1

    def _emit(self, row: View) -> None:
        self._stores.context.emit(topics.VIEWS, _key_of(row), codec.VIEW.encode(row))


def _key_of(row: View) -> bytes:
    return f"{row.customer_id}:{row.view_id}".encode()
