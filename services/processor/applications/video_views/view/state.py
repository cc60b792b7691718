"""The view as it is stored while it is not closed: what is folded, what waits, and what is remembered of what came."""

from typing import Any, NamedTuple

import msgspec

from services.processor.applications.video_views.beacons.step import DERIVED, Step
from services.processor.applications.video_views.bounds import CUSTOM_VALUES_MAX, KEYS_MAX, VIEW_BYTES_MAX
from services.processor.applications.video_views.view.clock import is_nearer_copy
from services.processor.applications.video_views.view.progress import Progress, copied, fold
from services.processor.applications.video_views.view.seen import (
    Closed,
    Ranges,
    count_of,
    is_by_time,
    key_of,
    numbered_key_of,
    numbers_of,
)
from shared.sources import SOURCES

#: Where a step stands among those of its session: when it was told, its number, its own time.
Place = tuple[int, int, int]


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
    given_up: Ranges = []
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
    #: Of sources without numbers: keys of the settled steps, and of those that came too late (see `lateness`).
    settled_keys: list[int] = []
    #: The last place that is settled: time and tie, or of CMCD a `Place`.
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
    #: Of a play of a session: the newest values of the session's counters in the plays before it.
    counters_before: dict[str, int] = {}
    #: In which slices the gauges count it among the started.
    started_in: list[str] = []
    #: The first sequence number that is its own.
    first_seq: int = 0
    #: The numbers that have come: of a truncated view, and of one put in order by time whose client numbers its beacons.
    numbers: Ranges = []
    #: Of a source that is put in order by time: each of its beacons has a number, so numbers put them in order.
    is_numbered: bool = True
    #: When the row was due last because the view goes on for long (see `finish.writes_at_ms`); 0: never.
    written_ms: int = 0


class Taken(NamedTuple):
    """What became of a step: whether it was new, and whether the view's dimensions changed with it."""

    is_new: bool
    dimensions_changed: bool
    #: Whether it is a duplicate that travelled faster than all before it: then the row changes.
    is_nearer: bool = False


def place_of(one: Step) -> Place:
    """Where the step stands among those of its session. The beacon numbered 0 tells its own time, whatever it tells of."""
    return (one.told_ms if one.seq else one.at_ms, one.seq, one.at_ms)


def may_grow(view: ViewState, taken: Taken, next_step: Step) -> bool:
    """Whether the step may have made the view larger: without a gap most change numbers, which have their places already."""
    if not taken.is_new or view.is_truncated:
        return False
    grows = taken.dimensions_changed or view.held or view.given_up or next_step.failure is not None
    return bool(grows or next_step.state or next_step.ad or view.recent)


def is_too_large(view: ViewState, dimensions: dict[str, Any], beacon_bytes: int) -> bool:
    """Whether the view is too large after a beacon of this size. Measures only when it may be so."""
    view.bytes_at_most += beacon_bytes
    if view.bytes_at_most <= VIEW_BYTES_MAX or view.is_truncated:
        return False
    view.bytes_at_most = len(msgspec.msgpack.encode(view)) + len(msgspec.msgpack.encode(dimensions))
    return view.bytes_at_most > VIEW_BYTES_MAX


def truncate(view: ViewState, dimensions: dict[str, Any]) -> None:
    """Ends the folding of a view that is too large. What waits is folded as it came; of each beacon stays that it came."""
    view.settled_offset_ms = min(_offsets(view), default=None)
    if is_by_time(view.source):
        view.settled_keys = [*view.settled_keys, *map(key_of, view.recent)][-KEYS_MAX:]
    else:
        view.numbers = _numbers(view)
        view.settled_at = list(max([*map(place_of, (*view.recent, *view.held)), tuple(view.settled_at)]))
    view.progress, whole = complete_progress(view, dimensions)
    if whole is not dimensions:
        dimensions.update(whole)
    if view.held:
        view.next_seq = view.held[-1].seq + 1
    view.settled_next_seq = view.next_seq
    view.settled, view.settled_dimensions = None, {}
    view.recent, view.held, view.given_up = [], [], []
    view.is_truncated = True


def closed_of(view: ViewState) -> Closed:
    """What is to be remembered of the view once its lateness window is over."""
    if is_by_time(view.source):
        return Closed(view.revision, view.source, keys=[*view.settled_keys, *map(key_of, view.recent)])
    if not SOURCES[view.source].takes_back or view.is_truncated:
        return Closed(view.revision, view.source, _numbers(view))
    # Numbers begin anew within its session: what is not settled is known by its time, too.
    numbers = numbers_of(view.first_seq, view.settled_next_seq, view.given_up, ())
    return Closed(view.revision, view.source, numbers, [*map(numbered_key_of, (*view.recent, *view.held))])


def _numbers(view: ViewState) -> Ranges:
    if view.is_truncated:
        return view.numbers
    return numbers_of(view.first_seq, view.next_seq, view.given_up, [one.seq for one in view.held])


def clock_offset_ms(view: ViewState, progress: Progress) -> int:
    """What to add to corrected times: as the fastest of the view's requests showed it, since it is the least delayed one.

    Where the client's clock stepped, requests of after the step show another clock's: the first beacon's counts.
    """
    first = progress.clock.first
    if progress.clock.step_count and first is not None:
        return first.server_ms - first.at_ms
    return min(_offsets(view), default=0)


def _offsets(view: ViewState) -> list[int]:
    told = [one.clock_offset_ms for one in (*view.recent, *view.held) if one.clock_offset_ms is not None]
    if view.settled_offset_ms is not None:
        told.append(view.settled_offset_ms)
    return told


def note_offset(view: ViewState, offset_ms: int | None) -> bool:
    """Lets a beacon's clock offset count for the view, for good; whether it is the smallest."""
    known = view.settled_offset_ms
    if offset_ms is None or (known is not None and offset_ms >= known):
        return False
    view.settled_offset_ms = offset_ms
    return True


def has_numbers(view: ViewState) -> bool:
    """Whether the beacons of the view are numbered, each of them."""
    return view.is_numbered or not is_by_time(view.source)


def missing(view: ViewState) -> int:
    """Sequence numbers below the highest one seen (or the next play's first) that never came; 0 where there are none."""
    if is_by_time(view.source):
        # Where the client numbers its beacons at all; rows of former versions do not know their first numbers.
        return view.numbers[-1][1] - count_of(view.numbers) if view.numbers and view.first_seq else 0
    if view.is_truncated:
        end = max(view.numbers[-1][1] + 1 if view.numbers else view.first_seq, view.until_seq)
        return end - view.first_seq - count_of(view.numbers)
    highest = view.held[-1].seq if view.held else view.next_seq - 1
    # Of what follows a gap and of what precedes the next play the numbers are known, too.
    end = max(highest + 1, view.until_seq)
    return count_of(view.given_up) + end - view.next_seq - len(view.held)


def complete_progress(view: ViewState, dimensions: dict[str, Any]) -> tuple[Progress, dict[str, Any]]:
    """Progress and dimensions with the held steps folded in too, in order, leaving the view as it is."""
    if not view.held:
        return view.progress, dimensions
    progress = copied(view.progress)
    dimensions = dict(dimensions)
    for held in view.held:
        fold(progress, held)
        merge(dimensions, held)
    return progress, dimensions


def newest_counters(view: ViewState) -> dict[str, int]:
    """The newest values of the counters that are a session's, in the view's order."""
    names = SOURCES[view.source].session_counters
    found: dict[str, int] = {}
    for counters in (view.progress.counters, *(held.counters for held in view.held)):
        found.update((name, counters[name]) for name in names & counters.keys())
    return found


def since(counters: dict[str, Any], before: dict[str, int]) -> dict[str, Any]:
    """The counters less those before; one that is lower than before counts again from 0."""
    if not before:
        return counters
    return {
        name: value - before[name] if name in before and value >= before[name] else value
        for name, value in counters.items()
    }


def stated(dimensions: dict[str, Any]) -> dict[str, Any]:
    """The dimensions as fields of the row: what the collector derived stands where the client states nothing."""
    if DERIVED not in dimensions:
        return dimensions
    return {**_values(dimensions[DERIVED]), **{name: value for name, value in dimensions.items() if name != DERIVED}}


def merge(dimensions: dict[str, Any], newer: Step) -> bool:
    """Puts a step's dimensions over older ones, but for derived ones, of which the first stay; whether anything changed."""
    changed = False
    for name, value in newer.dimensions.items():
        if name == DERIVED:
            changed = _derive(dimensions, newer, value) or changed
            continue
        merged = _merged(dimensions.get(name, {}), value) if isinstance(value, dict) else value
        if dimensions.get(name) != merged:
            dimensions[name] = merged
            changed = True
    return changed


def add_missing(dimensions: dict[str, Any], late: Step) -> bool:
    """Adds the dimensions of a step that no other has given; whether there were any."""
    missing_names = late.dimensions.keys() - dimensions.keys()
    for name in missing_names:
        value = late.dimensions[name]
        dimensions[name] = [_derivation(late, value)] if name == DERIVED else value
    return bool(missing_names)


def derived(view: ViewState, dimensions: dict[str, Any]) -> dict[str, Any]:
    """What the collector derived, by field, from the view's steps and those that it holds."""
    found = {DERIVED: dimensions.get(DERIVED, [])}
    for held in view.held:
        _derive(found, held, held.dimensions.get(DERIVED, {}))
    return _values(found[DERIVED])


def derive_from_copy(dimensions: dict[str, Any], copy: Step) -> None:
    """Lets the copy of a step that was received before the known one decide what the collector derived from it."""
    known = dimensions.get(DERIVED)
    if known is None:
        return
    place = [copy.seq, copy.tie, copy.at_ms]
    dimensions[DERIVED] = [
        _derivation(copy, copy.dimensions.get(DERIVED, {}))
        if one[:3] == place and is_nearer_copy(copy, one[3], one[4])
        else one
        for one in known
    ]


def _derive(dimensions: dict[str, Any], one: Step, values: dict[str, Any]) -> bool:
    """Adds what the collector derived from a step, unless earlier ones gave it all; whether it added anything."""
    known = dimensions.get(DERIVED, [])
    if values.keys() <= _values(known).keys():
        return False
    dimensions[DERIVED] = [*known, _derivation(one, values)]
    return True


def _derivation(one: Step, values: dict[str, Any]) -> list[Any]:
    """What was derived from a step: what identifies the step, when the copy that counts was received, the values by field."""
    return [one.seq, one.tie, one.at_ms, one.recv_ms, one.server_ms, values]


def _values(derivations: list[list[Any]]) -> dict[str, Any]:
    return {name: value for one in reversed(derivations) for name, value in one[-1].items()}


def _merged(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    merged = {**older, **newer}
    return merged if len(merged) <= CUSTOM_VALUES_MAX else dict(list(merged.items())[:CUSTOM_VALUES_MAX])
