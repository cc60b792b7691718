"""Rearranges the plays of a session when a beacon shows that they begin elsewhere."""

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from services.processor.applications.video_views.beacons.step import Head, Step
from services.processor.applications.video_views.bounds import (
    ARRANGED_STEPS_MAX,
    PLAYS_MAX,
    SESSION_STEPS_MAX,
)
from services.processor.applications.video_views.plays.arrangement import (
    CLOSED_ORDINAL,
    UNKNOWN,
    Arranged,
    Misfit,
    Settled,
    arranged,
    reports_later,
)
from services.processor.applications.video_views.plays.session import Placed, Play, Session, Shelf
from services.processor.applications.video_views.view.folded import recent_heads, recent_steps, take_late
from services.processor.applications.video_views.view.folded_state import NEW_WITH_DIMENSIONS
from services.processor.applications.video_views.view.order.by_number import Place, place_of
from services.processor.applications.video_views.view.order.seen import add_key, numbered_key_of
from services.processor.applications.video_views.view.order.set_back import all_shifted, found_in
from services.processor.applications.video_views.view.order.spans import Span
from services.processor.applications.video_views.view.state import ViewState, by_number

#: It can be put in no play.
PLACED_LATE: Final = Placed(None)


def rearrange(session: Session, shelf: Shelf, step: Step, *, is_all: bool = False) -> Placed:
    """Arranges the plays around a step again, with that step in one of them; all open ones, if there may be several clocks."""
    if is_all or (session.set_back and _movable_count(session, shelf) < ARRANGED_STEPS_MAX):
        return _rearranged(session, shelf, [step], slice(session.closed, len(session.plays)), is_all=True)
    return _rearranged(session, shelf, [step], _stretch(session, step), is_all=False)


def rearrange_all(session: Session, shelf: Shelf, copied: Placed, copy: Step) -> Placed:
    """Arranges all open plays again after a copy counts instead of a step, which shows another delay."""
    found = _rearranged(session, shelf, [], slice(session.closed, len(session.plays)), is_all=True)
    if found.taken is None:
        return copied
    views = ((play.ordinal, shelf.open(play.ordinal)) for play in session.plays[session.closed :])
    home = (
        ordinal
        for ordinal, view in views
        if view is not None and any(one.seq == copy.seq and one.at_ms == copy.at_ms for one in movable(view[0]))
    )
    ordinal = next(home, found.ordinal)
    return Placed(copied.taken, ordinal, found.changed | {ordinal}, is_rearranged=True)


def _rearranged(session: Session, shelf: Shelf, new: list[Step], stretch: slice, *, is_all: bool) -> Placed:
    if len(session.plays) >= PLAYS_MAX:
        return PLACED_LATE
    old = session.plays[stretch]
    opened = [shelf.open(play.ordinal) for play in old]
    if None in opened:
        return PLACED_LATE
    views = [one[0] for one in opened if one is not None]
    steps = {play.ordinal: list(movable(view)) for play, view in zip(old, views, strict=True)}
    settled = [
        *_closed_part(session, stretch),
        *filter(None, (_settled_part(session, *one) for one in zip(old, views, strict=True))),
    ]
    if is_all:
        new, steps = _by_its_clock(session, new, steps, settled_spans(views))
    found, misfits = arranged(
        [*(one for of_play in steps.values() for one in of_play), *new], settled, _unknown(session)
    )
    is_of_closed = any(Misfit(CLOSED_ORDINAL, one) in misfits for one in new)
    if len(session.plays) - len(old) + len(found) > PLAYS_MAX or is_of_closed:
        return PLACED_LATE
    ordinals = _ordinals(session, found, steps)
    changed = _carry_out(shelf, found, ordinals, steps)
    for misfit in misfits:
        ordinal = misfit.ordinal or ordinals[0]
        changed.add(ordinal)
        view, dimensions = _stands(shelf, ordinal)
        by_number(view).fill(misfit.step.seq)
        take_late(view.folded, dimensions, misfit.step)
        view.late_count += 1
        view.beacon_count += 1
        add_key(session.late_keys, numbered_key_of(misfit.step))
    session.plays[stretch] = [
        Play(ordinal, one.run[0], one.first_seq, one.content, one.run[1], one.run[2])
        for one, ordinal in zip(found, ordinals, strict=True)
    ]
    home = next(
        (
            ordinal
            for one, ordinal in zip(found, ordinals, strict=True)
            if any(step is other for step in new for other in one.steps)
        ),
        ordinals[0],
    )
    return Placed(NEW_WITH_DIMENSIONS, home, frozenset(changed), is_rearranged=True)


def movable(view: ViewState) -> tuple[Step, ...]:
    """The steps of a play that can still be moved to another one."""
    return (*recent_steps(view.folded), *by_number(view).held)


def movable_heads(view: ViewState) -> tuple[Head, ...]:
    """As `movable`, of each step at least its first fields."""
    return (*recent_heads(view.folded), *by_number(view).held)


def settle_oldest(session: Session, shelf: Shelf, placed: Placed) -> set[int]:
    """Settles plays while more steps than `SESSION_STEPS_MAX` can be moved; their ordinals. Their rows stay as they are.

    A step that only lengthens the last play makes it necessary to look at no other one.
    """
    found: set[int] = set()
    if not placed.is_rearranged and placed.ordinal == session.plays[-1].ordinal:
        return found
    left = _movable_count(session, shelf)
    for play in session.plays[session.closed : -1]:
        if left <= SESSION_STEPS_MAX:
            break
        opened = shelf.open(play.ordinal)
        if opened is not None and (count := _count(opened[0])):
            by_number(opened[0]).settle_all(opened[0].folded, opened[1])
            found.add(play.ordinal)
            left -= count
    return found


def settled_spans(views: Iterable[ViewState]) -> list[Span]:
    """When the steps of plays were sent that cannot be moved."""
    return [span for view in views if view.folded.settled is not None for span in by_number(view).spans or []]


def _movable_count(session: Session, shelf: Shelf) -> int:
    opened = (shelf.open(play.ordinal) for play in session.plays[session.closed :])
    return sum(_count(one[0]) for one in opened if one is not None)


def _count(view: ViewState) -> int:
    return len(view.folded.recent) + len(by_number(view).held)


def _by_its_clock(
    session: Session, new: list[Step], steps: dict[int, list[Step]], settled: list[Span]
) -> tuple[list[Step], dict[int, list[Step]]]:
    """The steps with the shifts of the clocks that they were sent by."""
    every = [*(one for of_play in steps.values() for one in of_play), *new]
    session.set_back = found_in(every, session.set_back, settled)
    rest = iter(all_shifted(every, session.set_back))
    by_ordinal = {ordinal: list(islice(rest, len(of_play))) for ordinal, of_play in steps.items()}
    return list(rest), by_ordinal


def _settled_part(session: Session, play: Play, view: ViewState) -> Settled | None:
    order = by_number(view)
    if view.folded.settled is None:
        return None
    return Settled(
        *(play.ordinal, play.run, play.first_seq, order.settled_next_seq, play.content),
        *(order.settled_from, order.settled_at, order.gaps, order.spans or []),
        session.set_back,
    )


def _stretch(session: Session, step: Step) -> slice:
    """The plays that a step may rearrange: from the known beginning before it to the next one after it.

    Steps from before the first known beginning go with the run after it: whether they are of that run is decided again.
    """
    plays = session.plays
    if session.closed == len(plays):
        return slice(session.closed, session.closed)
    starts = [session.closed]
    starts += [n for n in range(session.closed + 1, len(plays)) if _begins_known(plays[n - 1], plays[n])]
    found = max((n for n, start in enumerate(starts) if plays[start].run <= place_of(step)), default=0)
    first = last = found
    if last + 1 < len(starts) and reports_later(step, plays[starts[last + 1]].run):
        last += 1
    if plays[session.closed].run == _unknown(session) and found <= 1:
        first, last = 0, max(last, 1)
    end = starts[last + 1] if last + 1 < len(starts) else len(plays)
    return slice(starts[first], end)


def _unknown(session: Session) -> Place:
    """Where a run begins whose beginning is not known: after all that is closed."""
    return (session.plays[session.closed - 1].ended_ms + 1, 0, 0) if session.closed else UNKNOWN


def _begins_known(before: Play, play: Play) -> bool:
    return play.run != before.run and not play.run_seq


def _closed_part(session: Session, stretch: slice) -> list[Settled]:
    """What is closed of the run with which the stretch begins."""
    if not session.closed or stretch.start != session.closed or stretch.start == stretch.stop:
        return []
    last, following = session.plays[session.closed - 1 : session.closed + 1]
    if last.run != following.run:
        return []
    last_at = (last.ended_ms, 1 << 62, 0)
    return [Settled(CLOSED_ORDINAL, last.run, 0, following.first_seq, last.content, last.run, last_at, [], [], [])]


def _ordinals(session: Session, found: list[Arranged], steps: dict[int, list[Step]]) -> list[int]:
    """Where each play is stored: where its settled part is, else where most of its steps are, else in a new place."""
    was_in = {id(one): ordinal for ordinal, of_play in steps.items() for one in of_play}
    free = set(steps) - {one.settled for one in found}
    ordinals = []
    for one in found:
        ordinal = one.settled
        if not ordinal:
            shares = Counter(was_in[id(member)] for member in one.steps if id(member) in was_in)
            ordinal = next((other for other, _ in shares.most_common() if other in free), 0)
            free.discard(ordinal)
        if not ordinal:
            session.ordinals += 1
            ordinal = session.ordinals
        ordinals.append(ordinal)
    return ordinals


def _carry_out(shelf: Shelf, found: list[Arranged], ordinals: list[int], steps: dict[int, list[Step]]) -> set[int]:
    """Makes the views be what was found; the ordinals of those that changed."""
    changed = set()
    for one, ordinal in zip(found, ordinals, strict=True):
        before = steps.get(ordinal)
        view, dimensions = _stands(shelf, ordinal) if before is not None else shelf.new(ordinal, one.first_seq)
        order = by_number(view)
        of_view, of_play = list(movable(view)), one.steps
        is_longer = before is not None and order.first_seq == one.first_seq and of_view == of_play[: len(of_view)]
        if is_longer and len(of_view) == len(of_play):
            continue
        changed.add(ordinal)
        if is_longer and len(of_view) + 1 == len(of_play):
            view.beacon_count += 1
            order.take_step(view.folded, dimensions, one.steps[-1])
            continue
        order.begin_at(one.first_seq)
        view.beacon_count += len(one.steps) - len(before or ())
        order.take_all(view.folded, dimensions, one.steps)
    for gone in steps.keys() - set(ordinals):
        # Late and duplicate beacons that were counted there must stay counted.
        view, first = _stands(shelf, gone)[0], _stands(shelf, ordinals[0])[0]
        first.late_count += view.late_count
        first.beacon_count += view.late_count
        first.duplicate_count += view.duplicate_count
        changed.add(ordinals[0])
        shelf.drop(gone)
    return changed


def _stands(shelf: Shelf, ordinal: int) -> tuple[ViewState, dict[str, Any]]:
    opened = shelf.open(ordinal)
    if opened is None:
        raise RuntimeError(f"play {ordinal} is arranged, but not there")
    return opened
