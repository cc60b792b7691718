"""`GET /views/<customer>/<view>`: a view as it is now, while it runs and as long as it is remembered.

Of a session with several plays it tells the first; the others have keys of their own, which no path names.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from services.processor.applications.video_views.finish import has_begun
from services.processor.applications.video_views.metrics import GoodRules
from services.processor.applications.video_views.plays import Session
from services.processor.applications.video_views.row import to_row
from services.processor.applications.video_views.view import ViewState
from services.processor.engine.application import Lookup, LookupWrong, Rows, StoreSpec
from shared.partitioning import view_key
from shared.schemas.beacon import CUSTOMER_ID, VIEW_ID_CHARS_MAX
from shared.schemas.view import View


class ViewNow(msgspec.Struct, frozen=True):
    """The answer. `revision` counts the rows emitted so far."""

    state: Literal["open", "finished", "closed"]
    revision: int
    #: The row that would be emitted if the view finished now, or the one that was; None once the view is closed.
    row: View | None


def view_lookup(
    views: StoreSpec[ViewState],
    dimensions: StoreSpec[Any],
    closed: StoreSpec[int],
    sessions: StoreSpec[Session],
    good: GoodRules,
) -> Lookup:
    """The lookup over these stores; those of `dimensions` have a dict `values`."""

    def answer(rows: Rows, key: bytes) -> bytes | None:
        view = rows.get(views, key)
        if view is None:
            revision = rows.get(closed, key)
            return None if revision is None else msgspec.json.encode(ViewNow("closed", revision, None))
        if not has_begun(view):
            return None
        known = rows.get(dimensions, key)
        session = rows.get(sessions, key)
        customer_id, _, view_id = key.decode().partition(":")
        row = to_row(
            view,
            known.values if known is not None else {},
            customer_id=customer_id,
            view_id=view_id,
            revision=view.revision if view.finished_ms else view.revision + 1,
            first_append_ms=session.first_append_ms if session is not None else view.first_append_ms,
            good=good,
        )
        return msgspec.json.encode(ViewNow("finished" if view.finished_ms else "open", view.revision, row))

    return Lookup("/views/{customer}/{view}", _key_of, answer)


def _key_of(parts: Mapping[str, str]) -> bytes:
    customer_id, view_id = parts["customer"], parts["view"]
    if not CUSTOMER_ID.fullmatch(customer_id):
        raise LookupWrong(f"a customer id matches {CUSTOMER_ID.pattern}")
    if not 0 < len(view_id) <= VIEW_ID_CHARS_MAX:
        raise LookupWrong(f"a view id has 1 to {VIEW_ID_CHARS_MAX} characters")
    return view_key(customer_id, view_id)
