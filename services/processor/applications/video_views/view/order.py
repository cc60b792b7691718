"""Steps in their order, whatever order they came in.

Sources with sequence numbers: the steps up to the first gap are folded into `Progress`; those after it wait in `held` until
the gap closes. Only when too many wait is the gap given up (and counted). Sources without are put in order by the client's
time, or by numbers where every beacon of the view has one: the newest steps stay in `recent`, so that one that comes late is
folded in its place.

The row follows from the set of beacons alone, so of the copies of a beacon the one that was received first counts.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from services.processor.applications.video_views.beacons.step import DERIVED, Step
from services.processor.applications.video_views.bounds import HELD_STEPS_MAX, KEYS_MAX, RECENT_STEPS_MAX
from services.processor.applications.video_views.view.clock import ORDINARY_MS, First, is_nearer_copy
from services.processor.applications.video_views.view.progress import (
    Progress,
    copied,
    elapsed_to,
    fold,
    fold_out_of_place,
)
from services.processor.applications.video_views.view.seen import Ranges, add_key, add_number, is_by_time, key_of
from services.processor.applications.video_views.view.state import (
    Taken,
    ViewState,
    add_missing,
    clock_offset_ms,
    derive_from_copy,
    derived,
    merge,
    note_offset,
    place_of,
)
from shared.sources import SOURCES

_DUPLICATE: Final = Taken(is_new=False, dimensions_changed=False)


def take(view: ViewState, dimensions: dict[str, Any], next_step: Step) -> Taken:
    """Takes a step in wherever it belongs, once. `dimensions` follow the order too."""
    if is_by_time(view.source):
        if view.is_numbered and not next_step.seq:
            _order_by_time(view, dimensions)
        by_time = _take_truncated if view.is_truncated else _take_by_time
        taken = by_time(view, dimensions, next_step)
        if taken.is_new and next_step.seq:
            add_number(view.numbers, next_step.seq)
        return taken
    if view.is_truncated:
        return _take_truncated(view, dimensions, next_step)
    seq = next_step.seq
    if seq == view.next_seq:
        changed = _apply(view, dimensions, next_step)
        return Taken(is_new=True, dimensions_changed=_release(view, dimensions) or changed)
    if seq > view.next_seq:
        return _hold(view, dimensions, next_step)
    if _fill(view.given_up, seq):
        return take_late(view, dimensions, next_step)
    return _again(view, dimensions, next_step)


def take_late(view: ViewState, dimensions: dict[str, Any], step: Step) -> Taken:
    """Counts a step that comes too late to be put in its place, and folds what it shows wherever it stands."""
    view.late_count += 1
    return _take_out_of_place(view, dimensions, step)


def take_all_anew(view: ViewState, dimensions: dict[str, Any], steps: Iterable[Step]) -> None:
    """Folds these steps, in the order of their numbers, in the place of all that are not settled."""
    _back_to_settled(view, dimensions)
    view.next_seq = view.settled_next_seq if view.settled is not None else view.first_seq
    view.settled_next_seq = view.next_seq
    view.held = []
    # What was given up among steps that are folded anew is held anew, and given up if it must be.
    view.given_up = [gap for gap in view.given_up if gap[1] < view.next_seq]
    for one in steps:
        take(view, dimensions, one)


def _take_out_of_place(view: ViewState, dimensions: dict[str, Any], step: Step) -> Taken:
    for progress in (view.settled, view.progress):
        if progress is not None:
            fold_out_of_place(progress, step)
    if view.settled is not None:
        add_missing(view.settled_dimensions, step)
    return Taken(is_new=True, dimensions_changed=add_missing(dimensions, step))


def _take_truncated(view: ViewState, dimensions: dict[str, Any], step: Step) -> Taken:
    """What `take` is for a truncated view: what came is known, and nothing is put in its place."""
    if is_by_time(view.source):
        is_new = add_key(view.settled_keys, key_of(step))
    else:
        is_new = add_number(view.numbers, step.seq)
        if is_new:
            view.next_seq = view.settled_next_seq = max(view.next_seq, step.seq + 1)
            view.settled_at = max(view.settled_at, list(place_of(step)))
    return _take_out_of_place(view, dimensions, step) if is_new else _DUPLICATE


def _apply(view: ViewState, dimensions: dict[str, Any], next_step: Step) -> bool:
    keeps = SOURCES[view.source].takes_back or view.settled is not None
    if not keeps and _is_clock_step(view.progress, next_step):
        # From here on the row depends on which copy of a beacon was received first, which a later copy may change.
        view.settled, view.settled_dimensions = copied(view.progress), dict(dimensions)
        view.settled_next_seq = view.next_seq
        keeps = True
    fold(view.progress, next_step)
    view.next_seq = next_step.seq + 1
    if keeps:
        view.recent.append(next_step)
        _settle(view)
    else:
        note_offset(view, next_step.clock_offset_ms)
    return bool(next_step.dimensions) and merge(dimensions, next_step)


def _is_clock_step(progress: Progress, next_step: Step) -> bool:
    if not progress.at_ms or not next_step.is_timed:
        return False
    if 0 <= next_step.at_ms + progress.clock.shift_ms - progress.at_ms <= ORDINARY_MS:
        return False
    return elapsed_to(progress, next_step).is_step


def _settle(view: ViewState) -> None:
    """Settles the oldest steps when too many could be taken back."""
    while len(view.recent) > RECENT_STEPS_MAX:
        oldest = view.recent.pop(0)
        if view.settled is None:
            view.settled = Progress()
        fold(view.settled, oldest)
        merge(view.settled_dimensions, oldest)
        note_offset(view, oldest.clock_offset_ms)
        view.settled_next_seq = oldest.seq + 1
        if is_by_time(view.source):
            view.settled_at = list(_place_in_view(view, oldest))
            view.settled_keys = [*view.settled_keys[1 - KEYS_MAX :], key_of(oldest)]
        else:
            view.settled_at = max(view.settled_at, list(place_of(oldest)))


def _back_to_settled(view: ViewState, dimensions: dict[str, Any]) -> None:
    view.progress = Progress() if view.settled is None else copied(view.settled)
    dimensions.clear()
    dimensions.update(view.settled_dimensions)
    view.recent = []


def _fold_again(view: ViewState, dimensions: dict[str, Any], steps: list[Step]) -> None:
    """Folds these steps in the place of the recent ones."""
    _back_to_settled(view, dimensions)
    for one in steps:
        _apply(view, dimensions, one)


def _again(view: ViewState, dimensions: dict[str, Any], duplicate: Step) -> Taken:
    """A duplicate measures the clock offset too; where it was received before the first one, it counts instead."""
    had_stepped, offset_ms = view.progress.clock.step_count > 0, clock_offset_ms(view, view.progress)
    known, values = dimensions.get(DERIVED), derived(view, dimensions)
    is_received_first = _put_copy(view, dimensions, duplicate)
    has_stepped = had_stepped or view.progress.clock.step_count > 0
    is_nearer = (is_received_first and has_stepped) or clock_offset_ms(view, view.progress) != offset_ms
    is_nearer = is_nearer or derived(view, dimensions) != values
    return _DUPLICATE._replace(is_nearer=is_nearer, dimensions_changed=dimensions.get(DERIVED) != known)


def _put_copy(view: ViewState, dimensions: dict[str, Any], copy: Step) -> bool:
    """Notes what a copy of a step shows; whether it was received before the one that is known."""
    for steps in (view.recent, view.held):
        for at, one in enumerate(steps):
            if one.seq == copy.seq and one.tie == copy.tie and one.at_ms == copy.at_ms:
                is_first = is_nearer_copy(copy, one.recv_ms, one.server_ms)
                steps[at] = _of_both(one, copy, is_first=is_first)
                if is_first and steps is view.recent:
                    _fold_again(view, dimensions, steps)
                return is_first
    note_offset(view, copy.clock_offset_ms)
    derive_from_copy(view.settled_dimensions, copy)
    derive_from_copy(dimensions, copy)
    first = view.progress.clock.first
    if first is None or (first.seq, first.tie, first.at_ms) != (copy.seq, copy.tie, copy.at_ms):
        return False
    if not is_nearer_copy(copy, first.recv_ms, first.server_ms):
        return False
    for progress in (view.settled, view.progress):
        if progress is not None:
            progress.clock.first = First(copy.seq, copy.tie, copy.at_ms, copy.recv_ms, copy.server_ms)
    if view.recent:
        _fold_again(view, dimensions, view.recent)
    return True


def _of_both(one: Step, copy: Step, *, is_first: bool) -> Step:
    offsets = [step.clock_offset_ms for step in (one, copy) if step.clock_offset_ms is not None]
    received = copy if is_first else one
    return msgspec.structs.replace(
        one,
        clock_offset_ms=min(offsets, default=None),
        recv_ms=received.recv_ms,
        server_ms=received.server_ms,
        is_stamped=received.is_stamped,
        # Of equal content, these are the ones that the collector derived.
        dimensions=received.dimensions,
    )


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
        return _again(view, dimensions, next_step)
    view.held = [*view.held[:at], next_step, *view.held[at:]]
    changed = False
    if len(view.held) > HELD_STEPS_MAX:
        view.given_up = [*view.given_up, [view.next_seq, view.held[0].seq - 1]]
        view.next_seq = view.held[0].seq
        changed = _release(view, dimensions)
    return Taken(is_new=True, dimensions_changed=changed)


def _fill(given_up: Ranges, seq: int) -> bool:
    """Takes `seq` out of the gaps given up; False when it is in none of them."""
    for at, (first, last) in enumerate(given_up):
        if first <= seq <= last:
            given_up[at : at + 1] = [part for part in ([first, seq - 1], [seq + 1, last]) if part[0] <= part[1]]
            return True
    return False


def _place_in_view(view: ViewState, one: Step) -> tuple[int, int, int]:
    """Where a step stands in a view that is put in order by time, or by numbers where every beacon has one."""
    return (one.seq if view.is_numbered else 0, one.at_ms, one.tie)


def _order_by_time(view: ViewState, dimensions: dict[str, Any]) -> None:
    """A beacon without a number has come: numbers put the view in order no more."""
    view.is_numbered = False
    view.settled_at[:1] = [0] * len(view.settled_at[:1])
    in_order = sorted(view.recent, key=lambda one: _place_in_view(view, one))
    if in_order != view.recent:
        _fold_again(view, dimensions, in_order)


def _take_by_time(view: ViewState, dimensions: dict[str, Any], next_step: Step) -> Taken:
    place = _place_in_view(view, next_step)
    recent = view.recent
    at = len(recent)
    while at and _place_in_view(view, recent[at - 1]) > place:
        at -= 1
    if at and _place_in_view(view, recent[at - 1]) == place:
        return _again(view, dimensions, next_step)
    if not at and view.settled is not None and place <= tuple(view.settled_at):
        if not add_key(view.settled_keys, key_of(next_step)):
            return _again(view, dimensions, next_step)
        note_offset(view, next_step.clock_offset_ms)
        return take_late(view, dimensions, next_step)
    if at == len(recent):
        return Taken(is_new=True, dimensions_changed=_apply(view, dimensions, next_step))
    _fold_again(view, dimensions, [*recent[:at], next_step, *recent[at:]])
    return Taken(is_new=True, dimensions_changed=True)
