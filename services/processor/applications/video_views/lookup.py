"""`GET /views/<customer>/<view>`: a view as it is now, while it runs and as long as it is remembered.

The view is named as in its row: `<session>` and `<session>.2`, `<session>.3` ... are the plays of a session, in their order.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from services.processor.applications.video_views.bounds import PLAYS_MAX
from services.processor.applications.video_views.keys import play_key
from services.processor.applications.video_views.outputs import numbered
from services.processor.applications.video_views.plays.session import Session
from services.processor.applications.video_views.row.row import to_row
from services.processor.applications.video_views.row.scores import GoodRules
from services.processor.applications.video_views.stores import Dimensions
from services.processor.applications.video_views.view.finish import has_begun
from services.processor.applications.video_views.view.order.seen import Closed
from services.processor.applications.video_views.view.state import ViewState
from services.processor.engine.application.application import Candidate, Lookup, LookupWrong, Rows, StoreSpec
from shared.partitioning import view_key
from shared.schemas.beacon import CUSTOMER_ID, VIEW_ID_CHARS_MAX
from shared.schemas.view import View

#: Ends a subject that is a later play of its session; no view id of a path holds it.
_SEPARATOR: Final = b"\x00"
_LATER_PLAY: Final = re.compile(r"(?P<session>.+)\.(?P<number>[1-9][0-9]{0,2})", re.DOTALL)


class ViewNow(msgspec.Struct, frozen=True):
    """The answer. `revision` counts the rows emitted so far."""

    state: Literal["open", "finished", "closed"]
    revision: int
    #: The row that would be emitted if the view finished now, or the one that was; None once the view is closed.
    row: View | None


def view_lookup(
    views: StoreSpec[ViewState],
    dimensions: StoreSpec[Dimensions],
    closed: StoreSpec[Closed],
    sessions: StoreSpec[Session],
    good: GoodRules,
) -> Lookup:
    """The lookup over these stores."""

    def answer(rows: Rows, subject: bytes) -> bytes | None:
        key, _, ordinal = subject.partition(_SEPARATOR)
        number = int(ordinal or 1)
        session = rows.get(sessions, key)
        plays = session.plays if session is not None else []
        if number > max(1, len(plays)):
            return None
        # Plays are numbered by their order, and stored by the order in which they were found.
        store_key = play_key(key, plays[number - 1].ordinal) if plays else key
        view = rows.get(views, store_key)
        if view is None:
            known = rows.get(closed, store_key)
            return (
                None
                if known is None or not known.revision
                else msgspec.json.encode(ViewNow("closed", known.revision, None))
            )
        if not has_begun(view):
            return None
        revision = view.revision
        if session is not None:
            revision = session.revisions[number - 1] if number <= len(session.revisions) else 0
        dimension_row = rows.get(dimensions, store_key)
        customer_id, _, view_id = key.decode().partition(":")
        row = to_row(
            view,
            dimension_row.values if dimension_row is not None else {},
            customer_id=customer_id,
            view_id=numbered(view_id, number),
            revision=revision if view.finished_ms else revision + 1,
            first_append_ms=session.first_append_ms if session is not None else view.first_append_ms,
            good=good,
        )
        return msgspec.json.encode(ViewNow("finished" if view.finished_ms else "open", revision, row))

    return Lookup("/views/{customer}/{view}", _candidates_of, answer)


def _candidates_of(parts: Mapping[str, str]) -> tuple[Candidate, ...]:
    customer_id, view_id = parts["customer"], parts["view"]
    if not CUSTOMER_ID.fullmatch(customer_id):
        raise LookupWrong(f"a customer id matches {CUSTOMER_ID.pattern}")
    if _SEPARATOR.decode() in view_id:
        raise LookupWrong("a view id has no null character")
    candidates = []
    if 0 < len(view_id) <= VIEW_ID_CHARS_MAX:
        key = view_key(customer_id, view_id)
        candidates.append(Candidate(key, key))
    later = _LATER_PLAY.fullmatch(view_id)
    if later is not None and 1 < int(later["number"]) <= PLAYS_MAX and len(later["session"]) <= VIEW_ID_CHARS_MAX:
        # A client's own view ids may look like this too: whether there is a session shows only where its rows are.
        key = view_key(customer_id, later["session"])
        candidates.append(Candidate(key, key + _SEPARATOR + later["number"].encode()))
    if not candidates:
        raise LookupWrong(f"a view id has 1 to {VIEW_ID_CHARS_MAX} characters")
    return tuple(candidates)
