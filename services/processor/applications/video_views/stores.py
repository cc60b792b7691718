"""The stores of the application, and the changes of their rows that several modules make."""

from typing import Any, Final

import msgspec

from services.processor.applications.video_views.keys import play_key, session_key
from services.processor.applications.video_views.live.buckets import LiveBuckets
from services.processor.applications.video_views.live.gauges import Gauges
from services.processor.applications.video_views.live.rows import LiveRow
from services.processor.applications.video_views.plays.session import Session
from services.processor.applications.video_views.view.finish import due_ms
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.applications.video_views.view.order.seen import Closed
from services.processor.applications.video_views.view.state import ViewState
from services.processor.engine.application.application import Context, Store, StoreSpec


class Dimensions(msgspec.Struct, array_like=True, gc=False):
    """What the view is, by field of its row. A row of its own, because it changes seldom and the view with every beacon."""

    values: dict[str, Any] = {}


VIEWS: Final = StoreSpec(
    name="views",
    id=1,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(ViewState).decode,
    record_key=session_key,
)
DIMENSIONS: Final = StoreSpec(
    name="dimensions",
    id=2,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Dimensions).decode,
    goes_with="views",
    record_key=session_key,
)
#: Views whose lateness window is over, by key.
CLOSED_VIEWS: Final = StoreSpec(
    name="closed",
    id=4,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Closed).decode,
    record_key=session_key,
)
#: The plays of sessions, for sources whose key is one (CMCD).
SESSIONS: Final = StoreSpec(
    name="sessions",
    id=5,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Session).decode,
)


class Stores:
    """The rows of one partition."""

    def __init__(self, context: Context, rules: FinishRules, live_dimensions: tuple[str, ...]) -> None:
        self.context = context
        self.rules = rules
        self.views: Store[ViewState] = context.store(VIEWS)
        self.dimensions: Store[Dimensions] = context.store(DIMENSIONS)
        self.closed: Store[Closed] = context.store(CLOSED_VIEWS)
        self.sessions: Store[Session] = context.store(SESSIONS)
        self.live = LiveBuckets(context, live_dimensions)
        self.gauges = Gauges(context, self.live, live_dimensions)

    def put_view(self, key: bytes, view: ViewState) -> None:
        """Stores a view that a beacon has changed."""
        self.views.put_by(key, view, due_ms(view, self.rules))

    def put_session(self, key: bytes, session: Session) -> None:
        """Stores a session, with a timer for when none of its present plays can be open any more."""
        self.sessions.put(key, session, self.context.clock_ms + self.rules.view_max_ms)

    def play_keys(self, key: bytes) -> list[bytes]:
        """The keys of a session's plays; none of a view that is no session's."""
        session = self.sessions.get(key)
        return [] if session is None else [play_key(key, play.ordinal) for play in session.plays]

    def forget(self, key: bytes) -> None:
        """Deletes a view."""
        self.views.delete(key)
        self.dimensions.delete(key)


def reopen(view: ViewState, bucket: LiveRow, append_ms: int, *, is_new: bool) -> None:
    """Notes that the view has changed. If it had finished, it is open again and finishes by the same rules."""
    if view.finished_ms:
        view.finished_ms = 0
        view.last_append_ms = append_ms
        bucket.dropped -= view.dropped_count
        view.dropped_count = 0
    elif is_new:
        view.last_append_ms = append_ms
