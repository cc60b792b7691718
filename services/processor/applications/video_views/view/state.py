"""The view as it is stored while it is not closed."""

from typing import Any

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.view import folded as of_folded
from services.processor.applications.video_views.view.dimensions import merge
from services.processor.applications.video_views.view.folded_state import Folded
from services.processor.applications.video_views.view.order.by_number import ByNumber
from services.processor.applications.video_views.view.order.by_time import ByTime
from services.processor.applications.video_views.view.order.seen import Closed
from services.processor.applications.video_views.view.progress.fold_step import fold
from services.processor.applications.video_views.view.progress.progress import Progress, copied, note_least
from services.processor.applications.video_views.view.timing.delay import known_delay_ms
from shared.schemas.view import CLIENT_TIME_MAX
from shared.sources import SOURCES, Ordering


class Shown(msgspec.Struct, array_like=True, gc=False):
    """What the live gauges count the view as."""

    #: 0 nothing, 1 watching, 2 rebuffering; at which bitrate; in which cohort (of version 0.1.0: in which slices).
    viewer: int = 0
    bitrate_bps: int = 0
    slices: list[str] = []
    #: Whether it counts among the started, and in which cohort; among the open.
    is_started: bool = False
    started_in: list[str] = []
    is_open: bool = False
    #: The start-up time that was counted, and whether it counts as failed.
    startup_ms: int | None = None
    has_failed: bool = False


class PlayOf(msgspec.Struct, array_like=True, gc=False):
    """Which play of its session the view is."""

    number: int = 1
    #: Whether a later play has begun; the number with which it begins, 0 if it begins another run of numbers or there is none.
    is_superseded: bool = False
    until_seq: int = 0
    #: The newest values of the session's counters in the plays before it.
    counters_before: dict[str, int] = {}
    #: The usual delay of the plays before it, by the client's clock as it was then.
    delay_ms_before: int | None = None


class ViewState(msgspec.Struct, array_like=True, gc=False):
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
    #: At most what this row and its dimensions take, bytes, when it is full without its folded part; measured when it passes
    #: `MEASURED_BYTES`.
    bytes_at_most: int = 0
    shown: Shown = msgspec.field(default_factory=Shown)
    play: PlayOf = msgspec.field(default_factory=PlayOf)

    @property
    def progress(self) -> Progress:
        """What the folded steps amount to."""
        return self.folded.progress

    @property
    def is_truncated(self) -> bool:
        """Whether it grew too large: its dimensions stay as they were then."""
        return self.folded.is_full


def new_view(source: str, append_ms: int, first_seq: int | None = None) -> ViewState:
    """An empty view, whose first beacon was appended at `append_ms`. Its numbers begin at `first_seq`, or as the client's do."""
    traits = SOURCES[source]
    if first_seq is None:
        first_seq = traits.first_number or 0
    by_time = traits.ordering is Ordering.TIME
    order = (
        ByTime()
        if by_time
        else ByNumber(first_seq, first_seq, settled_next_seq=first_seq, spans=[] if traits.has_plays else None)
    )
    return ViewState(source, append_ms, append_ms, order, Folded(keeps=traits.takes_back))


def by_number(view: ViewState) -> ByNumber:
    """The order of a view of a client that numbers its beacons. Raises `TypeError` for any other."""
    if not isinstance(view.order, ByNumber):
        raise TypeError(f"beacons of {view.source} are put in order by time")
    return view.order


def closed_of(view: ViewState) -> Closed:
    """What is remembered of the view after its lateness window."""
    numbers, keys = view.order.remembered(view.folded, in_session=SOURCES[view.source].has_plays)
    spans = view.order.spans if isinstance(view.order, ByNumber) else None
    return Closed(view.revision, view.source, numbers, keys, spans or [])


def clock_offset_ms(view: ViewState, progress: Progress) -> int:
    """What to add to the corrected times of the view to get server times."""
    return of_folded.clock_offset_ms(view.folded, progress, view.order.waiting)


def server_ms(at_ms: int, offset_ms: int) -> int:
    """The corrected time with the view's clock offset, within the bounds of a row: clocks that differ by ages may lead beyond."""
    return max(-CLIENT_TIME_MAX, min(at_ms + offset_ms, CLIENT_TIME_MAX))


def complete_progress(view: ViewState, dimensions: dict[str, Any]) -> tuple[Progress, dict[str, Any]]:
    """Progress and dimensions with the waiting steps folded in too, in order. Leaves the view as it is."""
    waiting = view.order.waiting
    if not waiting:
        return view.folded.progress, dimensions
    progress = copied(view.folded.progress)
    dimensions = dict(dimensions)
    for one in waiting:
        fold(progress, one)
        if not view.folded.is_full:
            merge(dimensions, one)
    return progress, dimensions


def counters_after(view: ViewState, before: dict[str, int]) -> dict[str, int]:
    """The newest values of the counters that are a session's after this view; `before` are those of the views before it."""
    names = SOURCES[view.source].session_counters
    progress = view.folded.progress
    newest, least = dict(progress.counters), dict(progress.least_counters)
    for one in view.order.waiting:
        newest.update(one.counters)
        note_least(least, one.counters)
    found = {name: newest[name] for name in names & newest.keys()}
    return found if _is_reset(least, before) else {**before, **found}


def begins_with(view: ViewState, step: Step) -> bool:
    """Whether a step, or a copy of it, is the view's first timed one."""
    first = of_folded.first_timed(view.folded, view.order.waiting)
    return first is not None and (first.seq, first.tie, first.at_ms) == (step.seq, step.tie, step.at_ms)


def delay_after(view: ViewState) -> int | None:
    """The usual delay by the client's clock after this view, or as it was before where the view does not show it."""
    progress, _ = complete_progress(view, {})
    known_ms = known_delay_ms(progress.clock)
    return view.play.delay_ms_before if known_ms is None else known_ms


def since(progress: Progress, before: dict[str, int]) -> dict[str, Any]:
    """The counters less those before. If any of them was ever lower than before, the client counts all of them from 0."""
    if not before or _is_reset(progress.least_counters, before):
        return progress.counters
    return {name: value - before[name] if name in before else value for name, value in progress.counters.items()}


def _is_reset(least: dict[str, int], before: dict[str, int]) -> bool:
    return any(least[name] < before[name] for name in least.keys() & before.keys())
