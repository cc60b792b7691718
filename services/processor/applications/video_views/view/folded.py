"""The steps of a view that are folded, in their order. The newest of them are kept, so that they can be folded again.

`by_number` and `by_time` decide the order. Steps are folded again if one comes late, or if another copy of one counts. The row
follows from the set of beacons alone, so the copy of a beacon that was received first counts.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile
from typing import Any, Final

import msgspec

from services.processor.applications.video_views.beacons.step import DERIVED, PLAYED_OUT, PLAYING, Head, Step
from services.processor.applications.video_views.bounds import RECENT_BYTES_MAX
from services.processor.applications.video_views.view.dimensions import add_missing, derive_from_copy, derived, merge
from services.processor.applications.video_views.view.folded_state import DUPLICATE, Folded, StepTaken
from services.processor.applications.video_views.view.progress import started
from services.processor.applications.video_views.view.progress.fold_step import fold
from services.processor.applications.video_views.view.progress.progress import (
    Progress,
    copied,
    note_least,
)
from services.processor.applications.video_views.view.progress.timeline import events_of, without_first
from services.processor.applications.video_views.view.timing.clock import is_nearer_copy
from services.processor.applications.video_views.view.timing.clock_state import Clock, First
from services.processor.applications.video_views.view.timing.delay import is_near, usual_ms
from services.processor.applications.video_views.view.timing.elapsed import depends_on_receipt


def apply(folded: Folded, dimensions: dict[str, Any], next_step: Step) -> bool:
    """Folds the next step in order. Returns whether the dimensions changed. The caller settles what becomes too old."""
    progress, keeps = folded.progress, folded.keeps
    if not keeps and next_step.is_timed and _depends_on_receipt(progress, next_step):
        # From here on the row depends on which copy of a beacon was received first, which a later copy may change.
        folded.settled = copied(progress)
        folded.settled_dimensions = {} if folded.is_full else dict(dimensions)
        folded.keeps = keeps = True
    fold(progress, next_step)
    if keeps:
        folded.recent.append(_packed(next_step))
    else:
        note_offset(folded, next_step.clock_offset_ms)
    return bool(next_step.dimensions) and not folded.is_full and merge(dimensions, next_step)


def bytes_of(one: Step) -> int:
    """What a step takes in the store, bytes."""
    return len(msgspec.msgpack.encode(one))


def recent_steps(folded: Folded) -> list[Step]:
    """The newest steps, in their order; always new objects."""
    return list(map(_unpacked, folded.recent))


def recent_heads(folded: Folded) -> list[Head]:
    """The first fields of the newest steps, in their order: they cost a fraction of whole steps."""
    return list(map(_head_of, folded.recent))


def recent_bytes(folded: Folded) -> int:
    """What the newest steps take in the store, bytes."""
    return sum(map(_length_of, folded.recent))


def newest_step(folded: Folded) -> Step | None:
    """The last one of them, if there are any."""
    return _unpacked(folded.recent[-1]) if folded.recent else None


def oldest_step(folded: Folded) -> Step:
    """The first one of the newest steps, of which there is one at least."""
    return _unpacked(folded.recent[0])


def _packed(one: Step) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(one))


def _length_of(packed: msgspec.Raw) -> int:
    return len(memoryview(packed))


_unpacked: Final = msgspec.msgpack.Decoder(Step).decode
_head_of: Final = msgspec.msgpack.Decoder(Head).decode


def newest_within(steps: list[msgspec.Raw]) -> int:
    """How many of the newest steps take at most `RECENT_BYTES_MAX` together."""
    sums = accumulate(map(_length_of, reversed(steps)))
    return sum(1 for _ in takewhile(lambda total: total <= RECENT_BYTES_MAX, sums))


def settle(folded: Folded, steps_max: int) -> Iterator[Step]:
    """Settles the oldest kept steps while there are more than `steps_max`, and yields each."""
    while len(folded.recent) > steps_max:
        oldest = _unpacked(folded.recent.pop(0))
        if folded.settled is None:
            folded.settled = _nothing(folded)
        fold(folded.settled, oldest)
        if not folded.is_full:
            merge(folded.settled_dimensions, oldest)
        note_offset(folded, oldest.clock_offset_ms)
        yield oldest


def fold_again(folded: Folded, dimensions: dict[str, Any], steps: Iterable[Step]) -> None:
    """Folds these steps in the place of the recent ones."""
    back_to_settled(folded, dimensions)
    for one in steps:
        apply(folded, dimensions, one)


def back_to_settled(folded: Folded, dimensions: dict[str, Any]) -> None:
    """Takes all recent steps back."""
    folded.progress = settled_progress(folded)
    if not folded.is_full:
        dimensions.clear()
        dimensions.update(folded.settled_dimensions)
    folded.recent = []


def settled_progress(folded: Folded) -> Progress:
    """What the steps before the recent ones amount to: a copy."""
    return _nothing(folded) if folded.settled is None else copied(folded.settled)


def taken_events(folded: Folded) -> list[tuple[int, int, int, int]]:
    """Takes out of the view the events that can change no more, those of steps that are settled, and returns them.

    Only the number of its events depends on those before: what is folded later is the same without them.
    """
    progress, settled = folded.progress, folded.settled
    if settled is None and folded.keeps:
        return []
    events = events_of((settled or progress).timeline)
    if events:
        for one in (progress,) if settled is None else (progress, settled):
            one.timeline = without_first(one.timeline, len(events))
    return events


def first_timed(folded: Folded, waiting: list[Step]) -> First | Step | None:
    """The view's first timed step, which waits while those before it are missing."""
    first = folded.progress.clock.first
    return first if first is not None else next((one for one in waiting if one.is_timed), None)


def _nothing(folded: Folded) -> Progress:
    """What no step amounts to."""
    return Progress(clock=Clock(is_usual_at_first=folded.is_usual_at_first))


def know_delay(folded: Folded, dimensions: dict[str, Any], waiting: list[Step], delay_ms: int | None) -> bool:
    """Takes in the usual delay before the view, by the client's clock as it was then. Returns whether that changed the view.

    It does not as soon as steps are settled. `waiting` are the steps that are not folded yet.
    """
    first = first_timed(folded, waiting)
    is_usual = first is not None and delay_ms is not None and is_near(first.server_ms - first.at_ms, delay_ms)
    if is_usual == folded.is_usual_at_first or folded.settled is not None:
        return False
    folded.is_usual_at_first = is_usual
    fold_again(folded, dimensions, recent_steps(folded))
    return True


def take_late(folded: Folded, dimensions: dict[str, Any], late: Step) -> StepTaken:
    """Folds what a step shows wherever it stands: it came too late to be put in its place."""
    for progress in (folded.settled, folded.progress):
        if progress is not None:
            _fold_out_of_place(progress, late)
    changed = False
    if not folded.is_full:
        changed = add_missing(dimensions, late)
        if folded.settled is not None:
            add_missing(folded.settled_dimensions, late)
    return StepTaken(is_new=True, dimensions_changed=changed, is_late=True)


def _fold_out_of_place(progress: Progress, late: Step) -> None:
    """Folds what a step shows wherever it stands: it comes too late to be put in its place.

    A view must not depend on the order of its beacons for its existence, its start and its end.
    """
    if late.begins and not progress.has_begun:
        progress.has_begun = True
        progress.begun_at_ms = late.at_ms
        started.begin(progress.started, late)
    if late.shows_playing or late.state == PLAYING or late.ends == PLAYED_OUT:
        started.show(progress.started, late.reported_ms or late.at_ms)
    progress.ended |= late.ends
    progress.signature = max(progress.signature, late.signature)
    progress.playhead_ms = max(progress.playhead_ms, late.playhead or 0)
    for name, value in late.counters.items():
        progress.counters.setdefault(name, value)
    if late.counts_session:
        note_least(progress.least_counters, late.counters)


def take_copy(folded: Folded, dimensions: dict[str, Any], copy: Step, waiting: list[Step]) -> StepTaken:
    """Notes the clock offset of a duplicate. If it was received before the step that came first, it counts instead.

    `waiting` are the steps that are not folded yet, in which the copy takes the place of its original.
    """
    had_stepped, offset_ms = folded.progress.clock.step_count > 0, clock_offset_ms(folded, folded.progress, waiting)
    known, values = dimensions.get(DERIVED), derived(dimensions, waiting)
    is_received_first = _put_copy(folded, dimensions, copy, waiting)
    has_stepped = had_stepped or folded.progress.clock.step_count > 0
    has_moved = clock_offset_ms(folded, folded.progress, waiting) != offset_ms
    # Whether the clock steps in what waits is not known yet.
    may_count = is_received_first and (has_stepped or bool(waiting))
    is_nearer = may_count or has_moved or derived(dimensions, waiting) != values
    return DUPLICATE._replace(is_nearer=is_nearer, dimensions_changed=dimensions.get(DERIVED) != known)


def clock_offset_ms(folded: Folded, progress: Progress, waiting: list[Step]) -> int:
    """What to add to corrected times to get server times: the smallest offset, since that request was the least delayed.

    If the client's clock stepped, later offsets belong to another clock: that of the first beacon counts.
    """
    first = progress.clock.first
    if progress.clock.step_count and first is not None:
        return first.server_ms - first.at_ms
    return min(offsets(folded, waiting), default=0)


def offsets(folded: Folded, waiting: list[Step]) -> list[int]:
    """The clock offsets that count for the view."""
    known = [one.clock_offset_ms for one in recent_heads(folded) if one.clock_offset_ms is not None]
    known += [one.clock_offset_ms for one in waiting if one.clock_offset_ms is not None]
    if folded.settled_offset_ms is not None:
        known.append(folded.settled_offset_ms)
    return known


def note_offset(folded: Folded, offset_ms: int | None) -> None:
    """Counts the clock offset of a beacon for the view, also if the beacon is late."""
    known = folded.settled_offset_ms
    if offset_ms is not None and (known is None or offset_ms < known):
        folded.settled_offset_ms = offset_ms


def _depends_on_receipt(progress: Progress, next_step: Step) -> bool:
    """Whether it matters when the step was received: the times of the client alone do not say what elapsed."""
    if not next_step.trusts_first and next_step.clock_offset_ms is not None:
        # The delays of all its requests are compared.
        return True
    if not progress.at_ms:
        return False
    return depends_on_receipt(progress.clock, progress.at_ms, next_step, is_playing=progress.state == PLAYING)


def _put_copy(folded: Folded, dimensions: dict[str, Any], copy: Step, waiting: list[Step]) -> bool:
    """Notes what a copy of a step shows. Returns whether it was received before the one that is known."""
    recent = recent_steps(folded)
    for steps in (recent, waiting):
        for at, one in enumerate(steps):
            if one.seq == copy.seq and one.tie == copy.tie and one.at_ms == copy.at_ms:
                is_first = is_nearer_copy(copy, one.recv_ms, one.server_ms)
                steps[at] = _of_both(one, copy, is_first=is_first)
                if steps is recent:
                    folded.recent[at] = _packed(steps[at])
                    if is_first:
                        fold_again(folded, dimensions, recent)
                return is_first
    note_offset(folded, copy.clock_offset_ms)
    derive_from_copy(folded.settled_dimensions, copy)
    derive_from_copy(dimensions, copy)
    return _put_first_copy(folded, dimensions, copy)


def _put_first_copy(folded: Folded, dimensions: dict[str, Any], copy: Step) -> bool:
    """As `_put_copy`, of a copy of a settled step: only the view's first timed step still matters."""
    first = folded.progress.clock.first
    if first is None or (first.seq, first.tie, first.at_ms) != (copy.seq, copy.tie, copy.at_ms):
        return False
    if not is_nearer_copy(copy, first.recv_ms, first.server_ms):
        return False
    for progress in (folded.settled, folded.progress):
        if progress is not None:
            progress.clock.first = First(copy.seq, copy.tie, copy.at_ms, copy.recv_ms, copy.server_ms)
            progress.clock.usual_ms = usual_ms(progress.clock, copy)
    if folded.recent:
        fold_again(folded, dimensions, recent_steps(folded))
    return True


def _of_both(one: Step, copy: Step, *, is_first: bool) -> Step:
    known = [step.clock_offset_ms for step in (one, copy) if step.clock_offset_ms is not None]
    received = copy if is_first else one
    return msgspec.structs.replace(
        one,
        clock_offset_ms=min(known, default=None),
        recv_ms=received.recv_ms,
        server_ms=received.server_ms,
        is_stamped=received.is_stamped,
        trusts_first=received.trusts_first,
        signature=received.signature,
        # Of equal content, these are the ones that the collector derived.
        dimensions=received.dimensions,
    )
