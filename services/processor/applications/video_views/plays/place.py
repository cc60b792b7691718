"""The plays within one CMCD session: the same plays for any order of their beacons (`arrangement`).

Players keep one session id over several plays (hls.js over `loadSource`). Most steps only lengthen the play they belong to. If a
step shows that plays begin elsewhere, the session is arranged again around that step. Plays close in their order; what then comes
for a closed one is late, and what restarts the sequence after it is a new play.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from services.processor.applications.video_views.beacons.step import Head, Step
from services.processor.applications.video_views.bounds import ARRANGED_STEPS_MAX
from services.processor.applications.video_views.plays.arrangement import (
    begins_at,
    content_of,
    reports_later,
)
from services.processor.applications.video_views.plays.rearrange import (
    PLACED_LATE,
    movable,
    movable_heads,
    rearrange,
    rearrange_all,
    settled_spans,
)
from services.processor.applications.video_views.plays.runs import are_of_two_runs
from services.processor.applications.video_views.plays.session import Placed, Play, Session, Shelf
from services.processor.applications.video_views.view.folded import know_delay, newest_step
from services.processor.applications.video_views.view.folded_state import DUPLICATE
from services.processor.applications.video_views.view.order.by_number import Place, place_of, sent_ms
from services.processor.applications.video_views.view.order.seen import Closed, add_key, has_number, numbered_key_of
from services.processor.applications.video_views.view.order.set_back import (
    found_in,
    has_slow,
    is_delayed,
    may_differ,
    ranged,
    shifted,
    shifts_ms,
)
from services.processor.applications.video_views.view.order.spans import may_be_sent
from services.processor.applications.video_views.view.state import (
    ViewState,
    begins_with,
    by_number,
    counters_after,
    delay_after,
)


def place(session: Session, shelf: Shelf, step: Step) -> Placed:
    """Takes the step into the play it belongs to, and counts it there; begins plays and moves steps between them as it shows."""
    if session.late_keys and numbered_key_of(step) in session.late_keys:
        return Placed(DUPLICATE)
    delays_ms = ranged(session.delays_ms, [step])
    if delays_ms is not None and may_differ(delays_ms):
        views = _open_views(session, shelf)
        steps = [*(one for view in views for one in movable(view)), step]
        delays_ms = ranged(None, steps)
        is_bounded = len(steps) <= ARRANGED_STEPS_MAX
        may_be_by_clocks = is_bounded and (
            bool(session.set_back) or (has_slow(steps) and not _only_lengthens(views, steps))
        )
    else:
        may_be_by_clocks = bool(session.set_back) and is_delayed(shifted(step, session.set_back), session.set_back)
    placed = _place_by_clocks(session, shelf, step) if may_be_by_clocks else _place(session, shelf, step)
    if placed.taken is None or delays_ms == session.delays_ms:
        return placed
    session.delays_ms = delays_ms
    return placed._replace(is_rearranged=True)


def _place_by_clocks(session: Session, shelf: Shelf, step: Step) -> Placed:
    """Takes the step in by arranging all again: any step may change what is known of the session's clocks."""
    # A copy that was received much later than the first one has another delay: it is a copy all the same.
    stood = [one for view in _open_views(session, shelf) for one in movable_heads(view) if _is_same(one, step)]
    before = _taken_before(session, shelf, step, session.plays[session.closed :])
    if before is None:
        is_late = not session.set_back and not _is_admitted(session, step)
        return PLACED_LATE if is_late else rearrange(session, shelf, step, is_all=True)
    is_nearer = before.taken is not None and (before.taken.is_nearer or stood[0].recv_ms > step.recv_ms)
    return rearrange_all(session, shelf, before, step) if is_nearer else before


def _only_lengthens(views: Sequence[ViewState], steps: Sequence[Step]) -> bool:
    """Whether the last of these steps is behind all others of its session, and none of them shows a clock that was set back.

    Then it lengthens the last play, as if all had been quick.
    """
    *before, step = steps
    last_seq = by_number(views[-1]).last_seq if views else step.seq
    if step.seq <= last_seq or any(by_number(view).last_seq > last_seq for view in views):
        return False
    is_behind = place_of(step) > max(map(newest_of, views)) and all(one.recv_ms <= step.recv_ms for one in before)
    return is_behind and not found_in(steps, (), settled_spans(views))


def _open_views(session: Session, shelf: Shelf) -> list[ViewState]:
    opened = (shelf.open(play.ordinal) for play in session.plays[session.closed :])
    return [one[0] for one in opened if one is not None]


def _place(session: Session, shelf: Shelf, step: Step) -> Placed:
    """Takes the step into its play by the clocks that are known."""
    step = shifted(step, session.set_back)
    at = place_of(step)
    later = () if step.is_timed else [one for one in session.plays[session.closed :] if reports_later(step, one.run)]
    for one in later:
        of_later = shelf.open(one.ordinal)
        if of_later is not None and one.first_seq <= step.seq and _is_known(session, of_later[0], step):
            return _taken(session, one, of_later, step)
    play = session.plays[-1] if session.plays else None
    # Nearly always it is the last play's.
    if play is None or session.closed or not step.seq or at < play.run or step.seq < play.first_seq:
        if not _is_admitted(session, step):
            return _again_in_first_run(session, shelf, step)
        play = _home(session, step)
    if play is None:
        return rearrange(session, shelf, step)
    opened = shelf.open(play.ordinal)
    if opened is None:
        return PLACED_LATE
    is_known = _is_known(session, opened[0], step)
    content = content_of(step)
    shows_other = content is not None and play.content not in (None, content)
    if is_known is None or (not is_known and (shows_other or at < play.run or later or _falls(opened[0], step))):
        return rearrange(session, shelf, step)
    return _taken(session, play, opened, step)


def _taken_before(session: Session, shelf: Shelf, step: Step, plays: Iterable[Play]) -> Placed | None:
    """Takes a step that is in one of these plays already; None for a step that is in none of them."""
    for play in plays:
        opened = shelf.open(play.ordinal)
        if opened is not None and any(_is_same(one, step) for one in movable_heads(opened[0])):
            return _taken(session, play, opened, step)
    return None


def _is_same(one: Head, copy: Step) -> bool:
    return one.seq == copy.seq and one.at_ms == copy.at_ms


def _again_in_first_run(session: Session, shelf: Shelf, step: Step) -> Placed:
    """A step that would be late now may already be in the first open run, although it was sent before that run began."""
    plays = session.plays[session.closed :]
    return _taken_before(session, shelf, step, (play for play in plays if play.run == plays[0].run)) or PLACED_LATE


def _taken(session: Session, play: Play, opened: tuple[ViewState, dict[str, Any]], step: Step) -> Placed:
    """Takes the step into a play that it only lengthens, or that it was in before."""
    view, dimensions = opened
    taken = view.order.take_step(view.folded, dimensions, step)
    view.beacon_count += taken.is_new
    view.duplicate_count += not taken.is_new
    is_rearranged = False
    if taken.is_late:
        view.late_count += 1
        is_rearranged = add_key(session.late_keys, numbered_key_of(step))
    elif taken.is_new and play.content is None and (content := content_of(step)) is not None:
        play.content, is_rearranged = content, True
    changed = frozenset({play.ordinal}) if taken.is_new or taken.is_nearer else frozenset()
    return Placed(taken, play.ordinal, changed, is_rearranged)


def newest_of(view: ViewState) -> Place:
    """Where the last step of the view stands."""
    return max([by_number(view).settled_at, *map(place_of, movable(view))])


def has_come(session: Session, play: Play, closed: Closed, step: Step) -> bool:
    """Whether a step is of a closed play and came before that closed."""
    if numbered_key_of(step) in closed.keys:
        return True
    # A settled step is known by its number alone, and by the time in which the play was sent.
    is_in_time = play.run <= place_of(step) and place_of(step)[0] <= play.ended_ms
    if not is_in_time or not has_number(closed.numbers, step.seq):
        return False
    return may_be_sent(closed.spans, step.seq, sent_ms(step), shifts_ms(step, session.set_back))


def close(session: Session, view: ViewState | None) -> None:
    """Closes the first play that is open. `view` is None if its row is gone."""
    play = session.plays[session.closed]
    play.has_begun = view is None or view.revision > 0
    if view is not None:
        order = by_number(view)
        play.ended_ms = newest_of(view)[0]
        play.last_seq = order.last_seq
    before = session.plays[session.closed - 1].counters if session.closed else {}
    play.counters = before if view is None else counters_after(view, before)
    play.delay_ms = None if view is None else delay_after(view)
    if session.closed:
        # Steps sent before any of them has ended are of them.
        play.ended_ms = max(play.ended_ms, session.plays[session.closed - 1].ended_ms)
    session.closed += 1


def carry(session: Session, shelf: Shelf) -> set[int]:
    """Gives each open play the session's counters and delay as they were before it; the ordinals of those whose rows change."""
    changed = set()
    last = session.plays[session.closed - 1] if session.closed else None
    before, delay_ms = ({}, None) if last is None else (last.counters, last.delay_ms)
    for play in session.plays[session.closed :]:
        opened = shelf.open(play.ordinal)
        if opened is None:
            continue
        view = opened[0]
        if view.play.counters_before != before:
            view.play.counters_before = before
            changed.add(play.ordinal)
        view.play.delay_ms_before = delay_ms
        if know_delay(view.folded, opened[1], view.order.waiting, delay_ms):
            changed.add(play.ordinal)
        if play is not session.plays[-1]:
            delay_ms = delay_after(view)
            before = counters_after(view, before)
    return changed


def follow(session: Session, shelf: Shelf, placed: Placed, step: Step) -> set[int]:
    """Carries on what the plays after the placed step's need of those before, where the step may have changed that; as `carry`."""
    # Two plays that are found to be one have nothing before them any more.
    if not placed.is_rearranged:
        if len(session.plays) <= 1:
            return set()
        if placed.ordinal == session.plays[-1].ordinal:
            opened = shelf.open(placed.ordinal)
            if opened is None or not begins_with(opened[0], step):
                return set()
    return carry(session, shelf)


def _home(session: Session, step: Step) -> Play | None:
    """The open play to which the step belongs as the plays are; None if they must be rearranged."""
    plays = session.plays[session.closed :]
    run = _run_of(plays, step) or (plays[0].run if plays else None)
    if not step.seq and run != begins_at(step):
        return None
    home = [play for play in plays if play.run == run and play.first_seq <= step.seq]
    return home[-1] if home else None


def _run_of(plays: list[Play], step: Step) -> Place | None:
    """Where the last run begins that began before the step was sent."""
    at = place_of(step)
    return max((play.run for play in plays if play.run <= at), default=None)


def _is_admitted(session: Session, step: Step) -> bool:
    """Whether the step can belong to a play that is not closed."""
    if not session.closed:
        return True
    last, following = session.plays[session.closed - 1], session.plays[session.closed :]
    run = _run_of(following, step)
    if run == last.run and step.seq >= following[0].first_seq:
        return True
    if place_of(step)[0] <= last.ended_ms:
        return False
    restarts = step.seq <= last.last_seq
    return run not in (None, last.run) or restarts or not last.has_begun


def _falls(view: ViewState, step: Step) -> bool:
    """Whether a step may not be of the view's run: its number does not rise with the time."""
    order = by_number(view)
    newest = order.held[-1] if order.held else newest_step(view.folded)
    if newest is None or (step.seq > newest.seq and not are_of_two_runs(step, newest)):
        return False
    return any(are_of_two_runs(step, one) for one in movable(view))


def _is_known(session: Session, view: ViewState, step: Step) -> bool | None:
    """Whether the step is the one that stands in its place already; None when another one does."""
    order = by_number(view)
    if step.seq < order.settled_next_seq:
        if not order.may_have(step, shifts_ms(step, session.set_back)):
            return None
        return not order.is_missing(step.seq)
    if step.seq >= order.next_seq and not order.held:
        return False
    rival = next((one for one in movable_heads(view) if one.seq == step.seq), None)
    return False if rival is None else True if rival.at_ms == step.at_ms else None
