"""The view as it is folded: steps in their order, whatever order they came in.

Sources with sequence numbers: the steps up to the first gap are folded into `Progress`; those after it wait in `held` until
the gap closes. Only when too many wait is the gap given up (and counted). Sources without are put in order by the client's
time: the newest steps stay in `recent`, so that one that comes late is folded in its place.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from services.processor.applications.video_views.progress import Progress, copied, fold
from services.processor.applications.video_views.step import Step

#: Steps that may wait for a gap to close. More, and the gap is given up: the row is then no longer exact, and says so.
HELD_STEPS_MAX: Final = 256
#: Folded steps that can still be taken back, where the source makes that necessary; older ones are settled.
RECENT_STEPS_MAX: Final = 64
#: Settled steps without a sequence number that are still known when they come again; older ones count as late.
SETTLED_KEYS_MAX: Final = 256
#: What a view may take in the store, bytes packed. A player gone mad must not stop its partition.
VIEW_BYTES_MAX: Final = 65_536

#: Sources whose steps may turn out to belong elsewhere: CMCD to another play, the others to another place.
_TAKES_BACK: Final = frozenset({"cmcd", "epas", "native"})
_BY_TIME: Final = frozenset({"epas", "native"})


class ViewState(msgspec.Struct, array_like=True):
    """The stored row of a view that is not yet closed. Append times are the broker's, client times the player's."""

    source: str
    next_seq: int
    first_append_ms: int
    last_append_ms: int
    progress: Progress
    #: The smallest of the settled steps'; `clock_offset_ms` below tells the view's.
    settled_offset_ms: int | None = None
    #: Steps after a gap, in the order of their sequence.
    held: list[Step] = []
    #: Gaps given up, as [first, last] sequence numbers.
    given_up: list[list[int]] = []
    beacon_count: int = 0
    duplicate_count: int = 0
    late_count: int = 0
    #: 0 until the first finish.
    revision: int = 0
    #: When it finished last, on the clock; 0 while it is open.
    finished_ms: int = 0
    #: What the live gauges count it as: 0 nothing, 1 watching, 2 rebuffering; at which bitrate; in which slices.
    shown: int = 0
    shown_bps: int = 0
    shown_in: list[str] = []
    #: Whether the gauges count it among the started, and the open; and how many of its beacons among the dropped.
    is_started: bool = False
    is_open: bool = False
    dropped_count: int = 0
    #: Of a source whose steps can be taken back: `progress` is `settled` and then `recent`.
    settled: Progress | None = None
    settled_dimensions: dict[str, Any] = {}
    settled_next_seq: int = 0
    settled_keys: list[int] = []
    settled_at: list[int] = []
    recent: list[Step] = []
    #: Which play of its key it is; whether a later one has begun; the sequence number at which that one begins (0: none).
    epoch: int = 1
    is_superseded: bool = False
    until_seq: int = 0
    #: At most what this row and its dimensions take, bytes; measured when it passes `VIEW_BYTES_MAX`.
    bytes_at_most: int = 0
    #: It grew too large: what comes later is counted, and not folded.
    is_truncated: bool = False
    #: In which slices the gauges count it among the started.
    started_in: list[str] = []


class Taken(NamedTuple):
    """What became of a step: whether it was new, and whether the view's dimensions changed with it."""

    is_new: bool
    dimensions_changed: bool
    #: Whether it is a duplicate that travelled faster than all before it: then the row changes.
    is_nearer: bool = False


_DUPLICATE: Final = Taken(is_new=False, dimensions_changed=False)


def take(view: ViewState, dimensions: dict[str, Any], next_step: Step) -> Taken:
    """Takes a step in wherever it belongs, once. `dimensions` follow the order too."""
    if view.is_truncated:
        return _count_only(view, next_step)
    if view.source in _BY_TIME:
        return _take_by_time(view, dimensions, next_step)
    seq = next_step.seq
    if seq == view.next_seq:
        changed = _apply(view, dimensions, next_step)
        return Taken(is_new=True, dimensions_changed=_release(view, dimensions) or changed)
    if seq > view.next_seq:
        return _hold(view, dimensions, next_step)
    if _fill(view.given_up, seq):
        view.late_count += 1
        return Taken(is_new=True, dimensions_changed=False)
    return _again(view, next_step)


def _count_only(view: ViewState, next_step: Step) -> Taken:
    """What `take` is for a truncated view: nothing is folded, and of what came again only what was folded is known."""
    known = (next_step.seq, next_step.at_ms, next_step.tie)
    if view.source in _BY_TIME:
        is_known = any((one.seq, one.at_ms, one.tie) == known for one in view.recent)
    else:
        is_known = next_step.seq < view.next_seq or any(held.seq == next_step.seq for held in view.held)
    return Taken(is_new=not is_known, dimensions_changed=False)


def may_grow(view: ViewState, taken: Taken, next_step: Step) -> bool:
    """Whether the step may have made the view larger: without a gap most change numbers, which have their places already."""
    if not taken.is_new or view.is_truncated:
        return False
    grows = taken.dimensions_changed or view.held or view.given_up or next_step.failure is not None
    return bool(grows or next_step.state or next_step.ad or view.source in _TAKES_BACK)


def is_too_large(view: ViewState, dimensions: dict[str, Any], beacon_bytes: int) -> bool:
    """Whether the view is too large after a beacon of this size. Measures only when it may be so."""
    view.bytes_at_most += beacon_bytes
    if view.bytes_at_most <= VIEW_BYTES_MAX:
        return False
    view.bytes_at_most = len(msgspec.msgpack.encode(view)) + len(msgspec.msgpack.encode(dimensions))
    return view.bytes_at_most > VIEW_BYTES_MAX


def take_back(view: ViewState, dimensions: dict[str, Any], which: Callable[[Step], bool]) -> list[Step]:
    """Takes the steps `which` names out again, as if they had never come; those that are settled stay."""
    kept: list[Step] = []
    taken: list[Step] = []
    for one in [*view.recent, *view.held]:
        (taken if which(one) else kept).append(one)
    if taken:
        _back_to_settled(view, dimensions)
        view.next_seq, view.held = view.settled_next_seq, []
        for one in kept:
            take(view, dimensions, one)
        view.beacon_count -= len(taken)
    return taken


def clock_offset_ms(view: ViewState) -> int:
    """What to add to client times: as the fastest of the view's requests showed it, since it is the least delayed one."""
    told = [one.clock_offset_ms for one in (*view.recent, *view.held) if one.clock_offset_ms is not None]
    if view.settled_offset_ms is not None:
        told.append(view.settled_offset_ms)
    return min(told, default=0)


def note_offset(view: ViewState, offset_ms: int | None) -> bool:
    """Lets a beacon's clock offset count for the view, for good; whether it is the smallest."""
    known = view.settled_offset_ms
    if offset_ms is None or (known is not None and offset_ms >= known):
        return False
    view.settled_offset_ms = offset_ms
    return True


def missing(view: ViewState) -> int:
    """Sequence numbers below the highest one seen (or the next play's first) that never came."""
    gone = sum(last - first + 1 for first, last in view.given_up)
    if view.source in _BY_TIME:
        return 0
    highest = view.held[-1].seq if view.held else view.next_seq - 1
    # Of what follows a gap and of what precedes the next play the numbers are known, too.
    end = max(highest + 1, view.until_seq)
    return gone + end - view.next_seq - len(view.held)


def complete_progress(view: ViewState, dimensions: dict[str, Any]) -> tuple[Progress, dict[str, Any]]:
    """Progress and dimensions with the held steps folded in too, in order, leaving the view as it is."""
    if not view.held:
        return view.progress, dimensions
    progress = copied(view.progress)
    dimensions = dict(dimensions)
    for held in view.held:
        fold(progress, held)
        merge(dimensions, held.dimensions)
    return progress, dimensions


def merge(dimensions: dict[str, Any], newer: dict[str, Any]) -> bool:
    """Puts newer dimensions over older ones; whether anything changed."""
    changed = False
    for name, value in newer.items():
        merged = {**dimensions.get(name, {}), **value} if isinstance(value, dict) else value
        if dimensions.get(name) != merged:
            dimensions[name] = merged
            changed = True
    return changed


def _apply(view: ViewState, dimensions: dict[str, Any], next_step: Step) -> bool:
    fold(view.progress, next_step)
    view.next_seq = next_step.seq + 1
    if view.source in _TAKES_BACK:
        view.recent.append(next_step)
        _settle(view)
    return bool(next_step.dimensions) and merge(dimensions, next_step.dimensions)


def _settle(view: ViewState) -> None:
    """Settles the oldest steps when too many could be taken back."""
    while len(view.recent) > RECENT_STEPS_MAX:
        oldest = view.recent.pop(0)
        if view.settled is None:
            view.settled = Progress()
        fold(view.settled, oldest)
        merge(view.settled_dimensions, oldest.dimensions)
        note_offset(view, oldest.clock_offset_ms)
        view.settled_next_seq = oldest.seq + 1
        view.settled_at = [oldest.at_ms, oldest.tie]
        if view.source in _BY_TIME:
            view.settled_keys = [*view.settled_keys[1 - SETTLED_KEYS_MAX :], _key(oldest)]


def _back_to_settled(view: ViewState, dimensions: dict[str, Any]) -> None:
    view.progress = Progress() if view.settled is None else copied(view.settled)
    dimensions.clear()
    dimensions.update(view.settled_dimensions)
    view.recent = []


def _again(view: ViewState, duplicate: Step) -> Taken:
    """A duplicate measures the clock offset too, wherever the first one stands."""
    offset_ms = duplicate.clock_offset_ms
    if offset_ms is None:
        return _DUPLICATE
    before = clock_offset_ms(view)
    for steps in (view.recent, view.held):
        for at, one in enumerate(steps):
            if one.seq == duplicate.seq and one.tie == duplicate.tie and one.at_ms == duplicate.at_ms:
                if one.clock_offset_ms is None or offset_ms < one.clock_offset_ms:
                    steps[at] = msgspec.structs.replace(one, clock_offset_ms=offset_ms)
                return _DUPLICATE._replace(is_nearer=clock_offset_ms(view) != before)
    note_offset(view, offset_ms)
    return _DUPLICATE._replace(is_nearer=clock_offset_ms(view) != before)


def _release(view: ViewState, dimensions: dict[str, Any]) -> bool:
    """Folds the held steps that no gap keeps any more; whether dimensions changed."""
    count = 0
    changed = False
    for held in view.held:
        if held.seq != view.next_seq:
            break
        changed = _apply(view, dimensions, held) or changed
        count += 1
    if count:
        view.held = view.held[count:]
    return changed


def _hold(view: ViewState, dimensions: dict[str, Any], next_step: Step) -> Taken:
    at = len(view.held)
    while at and view.held[at - 1].seq > next_step.seq:
        at -= 1
    if at and view.held[at - 1].seq == next_step.seq:
        return _again(view, next_step)
    view.held = [*view.held[:at], next_step, *view.held[at:]]
    changed = False
    if len(view.held) > HELD_STEPS_MAX:
        view.given_up = [*view.given_up, [view.next_seq, view.held[0].seq - 1]]
        view.next_seq = view.held[0].seq
        changed = _release(view, dimensions)
    return Taken(is_new=True, dimensions_changed=changed)


def _fill(given_up: list[list[int]], seq: int) -> bool:
    """Takes `seq` out of the gaps given up; False when it is in none of them."""
    for at, (first, last) in enumerate(given_up):
        if first <= seq <= last:
            given_up[at : at + 1] = [part for part in ([first, seq - 1], [seq + 1, last]) if part[0] <= part[1]]
            return True
    return False


def _key(one: Step) -> int:
    return one.at_ms * 31 ^ one.tie


def _take_by_time(view: ViewState, dimensions: dict[str, Any], next_step: Step) -> Taken:
    place = (next_step.at_ms, next_step.tie)
    recent = view.recent
    at = len(recent)
    while at and (recent[at - 1].at_ms, recent[at - 1].tie) > place:
        at -= 1
    if at and (recent[at - 1].at_ms, recent[at - 1].tie) == place:
        return _again(view, next_step)
    if not at and view.settled is not None and place <= tuple(view.settled_at):
        if _key(next_step) in view.settled_keys:
            return _again(view, next_step)
        view.late_count += 1
        note_offset(view, next_step.clock_offset_ms)
        return Taken(is_new=True, dimensions_changed=False)
    if at == len(recent):
        return Taken(is_new=True, dimensions_changed=_apply(view, dimensions, next_step))
    steps = [*recent[:at], next_step, *recent[at:]]
    _back_to_settled(view, dimensions)
    for one in steps:
        _apply(view, dimensions, one)
    return Taken(is_new=True, dimensions_changed=True)
