"""The whole timeline of a view, of which its row keeps the first events alone: its beacons are folded again. Pure.

It is the fold that made the row. Events that can change no more are taken out of the view after each step, so that there is always
room for the next ones.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from services.processor.applications.video_views.beacons.sources import said_of, to_step
from services.processor.applications.video_views.beacons.step import FAILED, Failure, Step
from services.processor.applications.video_views.bounds import RECENT_STEPS_MAX, TIMELINE_EVENTS_MAX
from services.processor.applications.video_views.plays.place import follow, place
from services.processor.applications.video_views.plays.rearrange import settle_oldest
from services.processor.applications.video_views.plays.session import Session
from services.processor.applications.video_views.row.row import begun_ms_of, timeline_of
from services.processor.applications.video_views.view.folded import (
    oldest_step,
    recent_steps,
    settled_progress,
    taken_events,
)
from services.processor.applications.video_views.view.folded_state import Folded, StepTaken
from services.processor.applications.video_views.view.growth import bound, may_grow
from services.processor.applications.video_views.view.order.by_number import ByNumber
from services.processor.applications.video_views.view.order.by_time import ByTime
from services.processor.applications.video_views.view.progress.fold_step import fold
from services.processor.applications.video_views.view.progress.progress import (
    ON_ERROR,
    ON_WARNING,
    Progress,
    copied,
)
from services.processor.applications.video_views.view.progress.timeline import NO_EVENTS, events_of
from services.processor.applications.video_views.view.state import (
    ViewState,
    clock_offset_ms,
    new_view,
    server_ms,
    since,
)
from shared import codec
from shared.codec import Undecodable
from shared.schemas.view import TimelineEvent
from shared.sources import SOURCES

#: An event as it is packed: client time (ms), code, playhead (ms), bitrate (bps).
Packed = tuple[int, int, int, int]
#: A step changes the state, the bitrate and one thing more at the most: what can still move always has room.
_EVENTS_OF_STEP_MAX: Final = 3
assert _EVENTS_OF_STEP_MAX * (RECENT_STEPS_MAX + 1) < TIMELINE_EVENTS_MAX
#: So many texts of errors and warnings are kept.
_SAID_MAX: Final = 2_000
#: The codes of errors and warnings, of which a beacon may say more.
_EXPLAINED: Final = frozenset({FAILED, ON_ERROR, ON_WARNING})
#: What a step has in common with its copies alone: number, place within its millisecond, time of the client's clock.
_Name = tuple[int, int, int]


class Told(NamedTuple):
    """An event, and what its beacon says of it: of an error or a warning alone, None where that is not known."""

    event: TimelineEvent
    said: Failure | None


class WholeTimeline(NamedTuple):
    """What the beacons that were folded say of one view."""

    events: list[Told]
    #: When its first beacon was appended, and when it started on the server's clock, ms since 1970.
    first_append_ms: int
    start_ms: int
    #: Distinct beacons of the view.
    beacon_count: int
    #: Up to when they say what it did, ms from its start.
    known_to_ms: int


#: Settles the oldest steps of a view until so many are left.
_Settle = Callable[[Folded, int], None]


def _settled_one_by_one(folded: Folded, steps_max: int, settle: _Settle, taken: list[tuple[Packed, Step]]) -> None:
    """Settles the oldest steps, and takes the events of each out of the view as that of its own."""
    while len(folded.recent) > steps_max:
        oldest = oldest_step(folded)
        settle(folded, len(folded.recent) - 1)
        taken += ((event, oldest) for event in taken_events(folded))


class _ByNumber(ByNumber):
    """The order of a view whose events are taken out of it: a gap that is given up lets many steps follow at once."""

    taken: list[tuple[Packed, Step]] = msgspec.field(default_factory=list)

    def fold_next(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> bool:
        changed = super().fold_next(folded, dimensions, next_step)
        # If steps are kept, none is left: events were taken as their steps were settled.
        self.taken += ((event, next_step) for event in taken_events(folded))
        return changed

    def _settle(self, folded: Folded, steps_max: int) -> None:
        _settled_one_by_one(folded, steps_max, super()._settle, self.taken)


class _ByTime(ByTime):
    """The same of a view whose beacons are put in order by time."""

    taken: list[tuple[Packed, Step]] = msgspec.field(default_factory=list)

    def take_step(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> StepTaken:
        taken = super().take_step(folded, dimensions, next_step)
        self.taken += ((event, next_step) for event in taken_events(folded))
        return taken

    def _settle(self, folded: Folded, steps_max: int) -> None:
        _settled_one_by_one(folded, steps_max, super()._settle, self.taken)


def _new(source: str, append_ms: int, first_seq: int | None = None) -> ViewState:
    view = new_view(source, append_ms, first_seq)
    order = view.order
    if isinstance(order, ByNumber):
        view.order = _ByNumber(
            order.first_seq, order.next_seq, settled_next_seq=order.settled_next_seq, spans=order.spans
        )
    else:
        view.order = _ByTime()
    return view


def _order_of(view: ViewState) -> _ByNumber | _ByTime:
    assert isinstance(view.order, _ByNumber | _ByTime)
    return view.order


class _Shelf:
    """The views of a key's plays, in memory, by ordinal."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.append_ms = 0
        self.views: dict[int, tuple[ViewState, dict[str, Any]]] = {}

    def open(self, ordinal: int) -> tuple[ViewState, dict[str, Any]] | None:
        return self.views.get(ordinal)

    def new(self, ordinal: int, first_seq: int | None) -> tuple[ViewState, dict[str, Any]]:
        found = self.views[ordinal] = (_new(self.source, self.append_ms, first_seq), {})
        return found

    def drop(self, ordinal: int) -> None:
        del self.views[ordinal]


class Refolding:
    """Takes the beacons of one key in the order of their append."""

    def __init__(self, source: str) -> None:
        self._shelf = _Shelf(source)
        self._session: Session | None = None
        #: By ordinal of a play, the events that were taken out of its view.
        self._taken: dict[int, list[tuple[Packed, Failure | None]]] = {}
        #: What beacons say of warnings: the steps of errors have it.
        self._warnings: dict[_Name, Failure] = {}
        self._texts_left = _SAID_MAX

    def take(self, append_ms: int, value: bytes) -> None:
        """The next beacon. What the fold rejects is left out, as beacons of another client than `source`."""
        try:
            beacon = codec.BEACON.decode(value)
            step = to_step(beacon)
        except Undecodable:
            return
        source = SOURCES[beacon.source]
        if source.name != self._shelf.source:
            return
        self._shelf.append_ms = append_ms
        if step.is_warning and len(self._warnings) < _SAID_MAX and (said := said_of(beacon, step)) is not None:
            # Of copies the first one counts.
            self._warnings.setdefault(_name(step), said)
        if source.has_plays:
            self._place(step, len(value))
        else:
            self._fold(step, len(value))
        self._collect()

    def _fold(self, step: Step, beacon_bytes: int) -> None:
        view, dimensions = self._shelf.open(1) or self._shelf.new(1, None)
        taken = view.order.take_step(view.folded, dimensions, step)
        view.beacon_count += taken.is_new
        if may_grow(view, taken, step):
            # A view is measured with all that it holds.
            self._collect()
            bound(view, dimensions, beacon_bytes)

    def _place(self, step: Step, beacon_bytes: int) -> None:
        if self._session is None:
            self._session = Session(first_append_ms=self._shelf.append_ms)
        placed = place(self._session, self._shelf, step)
        if placed.taken is None:
            return
        follow(self._session, self._shelf, placed, step)
        opened = self._shelf.open(placed.ordinal)
        if opened is not None and may_grow(opened[0], placed.taken, step):
            self._collect()
            bound(*opened, beacon_bytes)
        settle_oldest(self._session, self._shelf, placed)

    def _collect(self) -> None:
        """Takes from the views the events that can change no more, with what their beacons say."""
        for ordinal, (view, _) in self._shelf.views.items():
            if taken := _order_of(view).taken:
                of_play = self._taken.setdefault(ordinal, [])
                for event, step in taken:
                    said = self._said_of(event, step) if self._texts_left else None
                    self._texts_left -= said is not None
                    of_play.append((event, said))
                taken.clear()

    def _said_of(self, event: Packed, step: Step) -> Failure | None:
        """What the beacon of this step says of its event; None where it says nothing."""
        if event[1] not in _EXPLAINED:
            return None
        said = self._warnings.get(_name(step)) if event[1] == ON_WARNING else step.failure
        return said if said is not None and (said.code or said.message) else None

    def timelines(self, *, are_all: bool) -> list[WholeTimeline]:
        """Of each view that the beacons show, in their order; of a client without plays there is one at most.

        `are_all`: there are no other beacons. If there may be, steps that wait for those before them are left out.
        """
        ordinals = [1] if self._session is None else [play.ordinal for play in self._session.plays]
        opened = ((ordinal, self._shelf.open(ordinal)) for ordinal in ordinals)
        return [self._timeline(ordinal, one[0], are_all=are_all) for ordinal, one in opened if one is not None]

    def _timeline(self, ordinal: int, view: ViewState, *, are_all: bool) -> WholeTimeline:
        progress = copied(view.progress)
        found = [*self._taken.get(ordinal, ()), *self._unsettled(view)]
        for one in view.order.waiting if are_all else ():
            found += self._folded(progress, one)
        begun_ms = begun_ms_of(progress, since(progress, view.play.counters_before))
        events = timeline_of((packed for packed, _ in found), begun_ms)
        known_to_ms = max(progress.at_ms - begun_ms, *(one.at_ms for one in events[-1:]), 0)
        told = [Told(event, said) for event, (_, said) in zip(events, found, strict=True)]
        start_ms = server_ms(begun_ms, clock_offset_ms(view, progress))
        return WholeTimeline(told, view.first_append_ms, start_ms, view.beacon_count, known_to_ms)

    def _unsettled(self, view: ViewState) -> list[tuple[Packed, Failure | None]]:
        """The events that are still in the view, which are those of its newest steps."""
        events = events_of(view.progress.timeline)
        progress, found = settled_progress(view.folded), list[tuple[Packed, Failure | None]]()
        for one in recent_steps(view.folded):
            found += self._folded(progress, one)
        # What came too late to be put in its place may have changed what the newest steps mean.
        return found if [packed for packed, _ in found] == events else [(packed, None) for packed in events]

    def _folded(self, progress: Progress, step: Step) -> list[tuple[Packed, Failure | None]]:
        """The events of the step, which is the next one in order."""
        progress.timeline = NO_EVENTS
        fold(progress, step)
        return [(packed, self._said_of(packed, step)) for packed in events_of(progress.timeline)]


def _name(step: Step) -> _Name:
    return (step.seq, step.tie, step.at_ms)
