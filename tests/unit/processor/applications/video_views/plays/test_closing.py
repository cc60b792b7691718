"""Plays close in their order; a session's row is stored with each change of it."""

from typing import Any, cast

from services.processor.applications.video_views.keys import play_key
from services.processor.applications.video_views.outputs import Outputs
from services.processor.applications.video_views.plays.session import Play, Session
from services.processor.applications.video_views.sessions import CLOSE_AGAIN_MS, Sessions
from services.processor.applications.video_views.stores import Stores
from services.processor.applications.video_views.view.state import ViewState

KEY = b"acme:s1"
CLOCK_MS = 1_000


class Rows(dict[bytes, Any]):
    """A store of rows with their deadlines."""

    def put(self, key: bytes, row: object, deadline_ms: int) -> None:
        self[key] = row
        self.deadlines = {key: deadline_ms}


class Kept:
    """The stores that a play needs to close; `stored` are the numbers of closed plays of the session's row, by each put."""

    def __init__(self, session: Session, views: dict[bytes, ViewState]) -> None:
        self.sessions, self.views = {KEY: session}, Rows(views)
        self.context = self
        self.clock_ms = CLOCK_MS
        self.stored: list[int] = []

    def put_session(self, key: bytes, session: Session) -> None:
        assert key == KEY
        self.stored.append(session.closed)


def test_a_play_whose_row_is_gone_is_stored_as_closed_although_the_one_that_asked_waits() -> None:
    """In a crash the session was again what it had been before."""
    waits, open_ = cast("ViewState", object()), cast("ViewState", object())
    gone_first = Session(0, plays=[Play(1, 10, 0), Play(2, 20, 0), Play(3, 30, 0)], ordinals=3)
    kept = Kept(gone_first, {play_key(KEY, 2): open_, play_key(KEY, 3): waits})
    Sessions(cast("Stores", kept), cast("Outputs", None)).close(play_key(KEY, 3), waits, 0)
    assert kept.stored == [1]
    assert kept.views.deadlines == {play_key(KEY, 3): CLOCK_MS + CLOSE_AGAIN_MS}
