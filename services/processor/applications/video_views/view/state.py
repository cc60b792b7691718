"""The view as it is stored while it is not closed."""

from typing import Any

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import VIEW_BYTES_MAX
from services.processor.applications.video_views.view import folded as of_folded
from services.processor.applications.video_views.view.by_number import ByNumber
from services.processor.applications.video_views.view.by_time import ByTime
from services.processor.applications.video_views.view.dimensions import merge
from services.processor.applications.video_views.view.folded import Folded, Taken
from services.processor.applications.video_views.view.progress import Progress, copied, fold
from services.processor.applications.video_views.view.seen import Closed
from shared.sources import SOURCES, Ordering


class Shown(msgspec.Struct, array_like=True):
    """What the live gauges count the view as."""

    #: 0 nothing, 1 watching, 2 rebuffering; at which bitrate; in which slices.
    viewer: int = 0
    bitrate_bps: int = 0
    slices: list[str] = []
    #: Whether it counts among the started, and in which slices; among the open.
    is_started: bool = False
    started_in: list[str] = []
    is_open: bool = False


class PlayOf(msgspec.Struct, array_like=True):
    """Which play of its session the view is."""

    number: int = 1
    #: Whether a later play has begun; the number with which it begins, 0 if it begins another run of numbers or there is none.
    is_superseded: bool = False
    until_seq: int = 0
    #: The newest values of the session's counters in the plays before it.
    counters_before: dict[str, int] = {}


class ViewState(msgspec.Struct, array_like=True):
    """The stored row of a view that is not yet closed. Append times are the broker's, client times the player's."""

    source: str
    first_append_ms: int
    last_append_ms: int
    order: ByNumber | ByTime
    folded: Folded
    beacon_count: int = 0
    duplicate_count: int = 0
    late_count: int = 0
    #: How many of its beacons count among the dropped, because it finished without having begun.
    dropped_count: int = 0
    #: 0 until the first finish.
    revision: int = 0
    #: When it finished last, on the partition's clock; 0 while it is open.
    finished_ms: int = 0
    #: When the row was due last because the view goes on for long (see `finish.writes_at_ms`); 0: never.
    written_ms: int = 0
    #: At most what this row and its dimensions take, bytes; measured when it passes `VIEW_BYTES_MAX`.
    bytes_at_most: int = 0
    shown: Shown = msgspec.field(default_factory=Shown)
    play: PlayOf = msgspec.field(default_factory=PlayOf)

    @property
    def progress(self) -> Progress:
        """What the folded steps amount to."""
        return self.folded.progress

    @property
    def is_truncated(self) -> bool:
        """Whether it grew too large: what comes later is counted, and not folded in its place."""
        return self.order.is_cut


def new_view(source: str, append_ms: int, first_seq: int | None = None) -> ViewState:
    """An empty view, whose first beacon was appended at `append_ms`. Its numbers begin at `first_seq`, or as the client's do."""
    traits = SOURCES[source]
    if first_seq is None:
        first_seq = traits.first_number or 0
    by_time = traits.ordering is Ordering.TIME
    order = ByTime() if by_time else ByNumber(first_seq, first_seq, settled_next_seq=first_seq)
    return ViewState(source, append_ms, append_ms, order, Folded(keeps=traits.takes_back))


def by_number(view: ViewState) -> ByNumber:
    """The order of a view of a client that numbers its beacons. Raises `TypeError` for any other."""
    if not isinstance(view.order, ByNumber):
        raise TypeError(f"beacons of {view.source} are put in order by time")
    return view.order


def may_grow(view: ViewState, taken: Taken, next_step: Step) -> bool:
    """Whether the step may have made the view larger: most steps only change numbers, which have their places already."""
    if not taken.is_new or view.order.is_cut:
        return False
    grows = taken.dimensions_changed or view.order.has_gaps or next_step.failure is not None
    return bool(grows or next_step.state or next_step.ad or view.folded.recent)


def is_too_large(view: ViewState, dimensions: dict[str, Any], beacon_bytes: int) -> bool:
    """Whether the view is too large after a beacon of this size. Measures only if it may be."""
    view.bytes_at_most += beacon_bytes
    if view.bytes_at_most <= VIEW_BYTES_MAX or view.order.is_cut:
        return False
    view.bytes_at_most = len(msgspec.msgpack.encode(view)) + len(msgspec.msgpack.encode(dimensions))
    return view.bytes_at_most > VIEW_BYTES_MAX


def truncate(view: ViewState, dimensions: dict[str, Any]) -> None:
    """Ends the folding of a view that is too large. Waiting steps are folded as they came; later ones are only counted."""
    folded = view.folded
    folded.settled_offset_ms = min(of_folded.offsets(folded, view.order.waiting), default=None)
    folded.progress, whole = complete_progress(view, dimensions)
    if whole is not dimensions:
        dimensions.update(whole)
    view.order.cut(folded)
    folded.settled, folded.settled_dimensions, folded.recent = None, {}, []


def closed_of(view: ViewState) -> Closed:
    """What is remembered of the view after its lateness window."""
    numbers, keys = view.order.remembered(view.folded, in_session=SOURCES[view.source].has_plays)
    return Closed(view.revision, view.source, numbers, keys)


def clock_offset_ms(view: ViewState, progress: Progress) -> int:
    """What to add to the corrected times of the view to get server times."""
    return of_folded.clock_offset_ms(view.folded, progress, view.order.waiting)


def complete_progress(view: ViewState, dimensions: dict[str, Any]) -> tuple[Progress, dict[str, Any]]:
    """Progress and dimensions with the waiting steps folded in too, in order. Leaves the view as it is."""
    waiting = view.order.waiting
    if not waiting:
        return view.folded.progress, dimensions
    progress = copied(view.folded.progress)
    dimensions = dict(dimensions)
    for one in waiting:
        fold(progress, one)
        merge(dimensions, one)
    return progress, dimensions


def newest_counters(view: ViewState) -> dict[str, int]:
    """The newest values of the counters that are a session's, in the view's order."""
    names = SOURCES[view.source].session_counters
    found: dict[str, int] = {}
    for counters in (view.folded.progress.counters, *(one.counters for one in view.order.waiting)):
        found.update((name, counters[name]) for name in names & counters.keys())
    return found


def since(counters: dict[str, Any], before: dict[str, int]) -> dict[str, Any]:
    """The counters less those before. One that is lower than before counts again from 0."""
    if not before:
        return counters
    return {
        name: value - before[name] if name in before and value >= before[name] else value
        for name, value in counters.items()
    }
