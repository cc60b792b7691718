"""How large a view may become, and what is done when it is too large."""

from typing import Any

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import MEASURED_BYTES, VIEW_BYTES_MAX
from services.processor.applications.video_views.view import folded as of_folded
from services.processor.applications.video_views.view.folded_state import StepTaken
from services.processor.applications.video_views.view.state import ViewState


def may_grow(view: ViewState, taken: StepTaken, next_step: Step) -> bool:
    """Whether the step may have made the view larger: most steps only change numbers, which have their places already."""
    if not taken.is_new:
        return False
    grows = taken.dimensions_changed or next_step.state or next_step.ad or next_step.failure is not None
    return bool(grows or view.folded.recent or view.order.has_gaps)


def bound(view: ViewState, dimensions: dict[str, Any], beacon_bytes: int) -> None:
    """Keeps the view within its bytes after a beacon of this size. Measures only if it may be beyond them.

    What is recent is settled. If what is folded is still too large, the view is truncated.
    """
    view.bytes_at_most += beacon_bytes
    if view.bytes_at_most <= MEASURED_BYTES:
        return
    folded, order = view.folded, view.order
    order.shrink(folded)
    movable_bytes = of_folded.recent_bytes(folded) + sum(map(of_folded.bytes_of, order.waiting))
    folded_bytes = len(msgspec.msgpack.encode(view)) + len(msgspec.msgpack.encode(dimensions)) - movable_bytes
    if folded_bytes > VIEW_BYTES_MAX and not folded.is_full:
        folded.is_full = True
        folded.settled_dimensions = {}
    view.bytes_at_most = movable_bytes if folded.is_full else movable_bytes + folded_bytes
