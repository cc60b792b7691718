"""The plays within one CMCD session, told apart the same way in whatever order their beacons come (`arrangement`).

Players keep one session id over several plays (hls.js over `loadSource`). Most steps only lengthen the play they belong to;
one that shows that plays begin elsewhere than was thought makes the session be arranged anew, around that step. Plays close
in their order; what then comes for a closed one is late, and what restarts the sequence after it is a new play.
"""

from collections import Counter
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from services.processor.applications.video_views.arrangement import (
    CLOSED,
    UNKNOWN,
    Arranged,
    Misfit,
    Settled,
    arranged,
    begins_at,
    content_of,
)
from services.processor.applications.video_views.bounds import PLAYS_MAX
from services.processor.applications.video_views.lateness import Closed, add_key, has_number, numbered_key_of
from services.processor.applications.video_views.order import take, take_all_anew
from services.processor.applications.video_views.step import Step
from services.processor.applications.video_views.view import Place, Taken, ViewState, place_of

_NEW: Final = Taken(is_new=True, dimensions_changed=True)
_DUPLICATE: Final = Taken(is_new=False, dimensions_changed=False)


class Play(msgspec.Struct, array_like=True):
    """One play: where it is stored, and where it begins."""

    ordinal: int
    #: Where its run of the sequence begins, as a `view.Place`; 0, 0, 0 while that is not known.
    run_ms: int
    first_seq: int
    content: str | None = None
    run_seq: int = 0
    run_at_ms: int = 0
    #: Of a closed play: when its last step was told (client's clock), its last number, and whether it was a view at all.
    ended_ms: int = 0
    last_seq: int = 0
    has_begun: bool = False

    @property
    def run(self) -> Place:
        """Where its run begins."""
        return (self.run_ms, self.run_seq, self.run_at_ms)


class Session(msgspec.Struct, array_like=True):
    """The stored row of a session: its plays in order, and the revisions of the rows that were made of them."""

    first_append_ms: int
    plays: list[Play] = []
    #: By number of the play; and the numbers whose newest revision says that there is no such view.
    revisions: list[int] = []
    ordinals: int = 0
    #: The first so many plays are closed.
    closed: int = 0
    #: Of the beacons that were late: they are duplicates when they come again.
    late_keys: list[int] = []
    deleted: list[int] = []


class Shelf(Protocol):
    """Where the views of a session's plays are kept."""

    def open(self, ordinal: int) -> tuple[ViewState, dict[str, Any]] | None:
        """The view and its dimensions, to be changed; None when it is closed."""
        ...

    def new(self, ordinal: int, first_seq: int) -> tuple[ViewState, dict[str, Any]]:
        """An empty view."""
        ...

    def drop(self, ordinal: int) -> None:
        """Forgets a view whose steps have all turned out to be another's."""
        ...


class Placed(NamedTuple):
    """What became of a step in its session. `taken` is None for one that is late: it is in no play."""

    taken: Taken | None
    #: The play that has it, and all whose steps have changed.
    ordinal: int = 0
    changed: frozenset[int] = frozenset()
    #: Whether the session has changed.
    is_rearranged: bool = False


_LATE = Placed(None)


def place(session: Session, shelf: Shelf, step: Step) -> Placed:
    """Takes the step into the play it belongs to, and counts it there; begins plays and moves steps between them as it shows."""
    if session.late_keys and numbered_key_of(step) in session.late_keys:
        return Placed(_DUPLICATE)
    if not _is_admitted(session, step):
        return _LATE
    plays = session.plays[session.closed :]
    if not plays:
        return _rearranged(session, shelf, step, slice(session.closed, session.closed))
    at = place_of(step)
    runs = [play.run for play in plays]
    run = max((one for one in runs if one <= at), default=runs[0])
    home = [play for play in plays if play.run == run and play.first_seq <= step.seq]
    begins_run = not step.seq and run != begins_at(step)
    if begins_run or not home:
        return _rearranged(session, shelf, step, _stretch(session, at))
    play = home[-1]
    opened = shelf.open(play.ordinal)
    if opened is None:
        return _LATE
    is_known = _is_known(opened[0], step)
    content = content_of(step)
    shows_other = content is not None and play.content not in (None, content)
    if is_known is None or (not is_known and (shows_other or at < runs[0])):
        return _rearranged(session, shelf, step, _stretch(session, at))
    return _taken(session, play, opened, step)


def _taken(session: Session, play: Play, opened: tuple[ViewState, dict[str, Any]], step: Step) -> Placed:
    """Takes the step into a play that it only lengthens, or that it was in before."""
    view, dimensions = opened
    late_count = view.late_count
    taken = take(view, dimensions, step)
    view.beacon_count += taken.is_new
    view.duplicate_count += not taken.is_new
    is_rearranged = False
    if view.late_count != late_count:
        is_rearranged = add_key(session.late_keys, numbered_key_of(step))
    elif taken.is_new and play.content is None and (content := content_of(step)) is not None:
        play.content, is_rearranged = content, True
    changed = frozenset({play.ordinal}) if taken.is_new or taken.is_nearer else frozenset()
    return Placed(taken, play.ordinal, changed, is_rearranged)


def has_come(play: Play, closed: Closed, step: Step) -> bool:
    """Whether a step is of a closed play and came before that closed."""
    if numbered_key_of(step) in closed.keys:
        return True
    # What was settled is known by its number alone, and by the time in which the play was told.
    return has_number(closed.numbers, step.seq) and play.run <= place_of(step) and place_of(step)[0] <= play.ended_ms


def close(session: Session, view: ViewState | None) -> None:
    """Closes the first play that is open; None where its view was set aside."""
    play = session.plays[session.closed]
    play.has_begun = view is None or view.revision > 0
    if view is not None:
        told = [place_of(one)[0] for one in (*view.recent, *view.held)]
        play.ended_ms = max(told + view.settled_at[:1], default=0)
        play.last_seq = view.held[-1].seq if view.held else view.next_seq - 1
    if session.closed:
        # What is told before any of them has ended is of them.
        play.ended_ms = max(play.ended_ms, session.plays[session.closed - 1].ended_ms)
    session.closed += 1


def _is_admitted(session: Session, step: Step) -> bool:
    """Whether the step can belong to a play that is not closed."""
    if not session.closed:
        return True
    last, at = session.plays[session.closed - 1], place_of(step)
    following = session.plays[session.closed] if session.closed < len(session.plays) else None
    if following is not None and following.run == last.run and step.seq >= following.first_seq and at >= last.run:
        return True
    if at[0] <= last.ended_ms:
        return False
    if following is not None and at >= following.run and following.run != last.run:
        return True
    restarts = step.seq <= last.last_seq
    return restarts or not last.has_begun


def _is_known(view: ViewState, step: Step) -> bool | None:
    """Whether the step is the one that stands in its place already; None when another one does."""
    if step.seq < view.settled_next_seq:
        has_come = has_number(view.numbers, step.seq) if view.is_truncated else not _is_missing(view, step.seq)
        if has_come:
            return True if list(place_of(step)) <= view.settled_at else None
        return False
    if step.seq >= view.next_seq and not view.held:
        return False
    rival = next((one for one in (*view.recent, *view.held) if one.seq == step.seq), None)
    return False if rival is None else True if rival.at_ms == step.at_ms else None


def _is_missing(view: ViewState, seq: int) -> bool:
    return any(first <= seq <= last for first, last in view.given_up)


def _stretch(session: Session, at: Place) -> slice:
    """The plays that a step told at `at` may rearrange: from the known beginning before it to the next one.

    What was told before the first known beginning goes with the run after it: whether it is of that one must be asked anew.
    """
    plays = session.plays
    starts = [session.closed]
    starts += [n for n in range(session.closed + 1, len(plays)) if _begins_known(plays[n - 1], plays[n])]
    found = max((n for n, start in enumerate(starts) if plays[start].run <= at), default=0)
    first = last = found
    if plays[session.closed].run == _unknown(session) and found <= 1:
        first, last = 0, 1
    end = starts[last + 1] if last + 1 < len(starts) else len(plays)
    return slice(starts[first], end)


def _unknown(session: Session) -> Place:
    """Where a run begins whose beginning is not known: after all that is closed."""
    return (session.plays[session.closed - 1].ended_ms + 1, 0, 0) if session.closed else UNKNOWN


def _begins_known(before: Play, play: Play) -> bool:
    return play.run != before.run and not play.run_seq


def _rearranged(session: Session, shelf: Shelf, step: Step, stretch: slice) -> Placed:
    """Arranges the plays of a stretch anew, with one more step."""
    if len(session.plays) >= PLAYS_MAX:
        return _LATE
    old = session.plays[stretch]
    steps: dict[int, list[Step]] = {}
    settled: list[Settled] = _closed_part(session, stretch)
    for play in old:
        opened = shelf.open(play.ordinal)
        if opened is None:
            return _LATE
        view = opened[0]
        steps[play.ordinal] = [*view.recent, *view.held]
        if view.settled is not None or view.is_truncated:
            last = (view.settled_at[0], view.settled_at[1], view.settled_at[2] if len(view.settled_at) > 2 else 0)
            settled.append(Settled(play.ordinal, play.run, play.first_seq, view.settled_next_seq, play.content, last))
    found, misfits = arranged(
        [*(one for of_play in steps.values() for one in of_play), step], settled, _unknown(session)
    )
    if len(session.plays) - len(old) + len(found) > PLAYS_MAX or Misfit(CLOSED, step) in misfits:
        return _LATE
    ordinals = _ordinals(session, found, steps)
    changed = _carry_out(shelf, found, ordinals, steps)
    for misfit in misfits:
        ordinal = misfit.ordinal or ordinals[0]
        changed.add(ordinal)
        view = _stands(shelf, ordinal)[0]
        view.late_count += 1
        view.beacon_count += 1
        add_key(session.late_keys, numbered_key_of(misfit.step))
    session.plays[stretch] = [
        Play(ordinal, one.run[0], one.first_seq, one.content, one.run[1], one.run[2])
        for one, ordinal in zip(found, ordinals, strict=True)
    ]
    home = next((ordinal for one, ordinal in zip(found, ordinals, strict=True) if step in one.steps), ordinals[0])
    return Placed(_NEW, home, frozenset(changed), is_rearranged=True)


def _closed_part(session: Session, stretch: slice) -> list[Settled]:
    """What is closed of the run with which the stretch begins."""
    if not session.closed or stretch.start != session.closed or stretch.start == stretch.stop:
        return []
    last, following = session.plays[session.closed - 1 : session.closed + 1]
    if last.run != following.run:
        return []
    return [Settled(CLOSED, last.run, 0, following.first_seq, last.content, (last.ended_ms, 1 << 62, 0))]


def _ordinals(session: Session, found: list[Arranged], steps: dict[int, list[Step]]) -> list[int]:
    """Where each play is stored: where its settled part is, else where most of its steps are, else anew."""
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
        if before is not None and view.first_seq == one.first_seq and list(map(id, before)) == list(map(id, one.steps)):
            continue
        changed.add(ordinal)
        view.first_seq = one.first_seq
        view.beacon_count += len(one.steps) - len(before or ())
        take_all_anew(view, dimensions, one.steps)
    for gone in steps.keys() - set(ordinals):
        # What came too late, or again, was counted there, and must be somewhere.
        view, heir = _stands(shelf, gone)[0], _stands(shelf, ordinals[0])[0]
        heir.late_count += view.late_count
        heir.beacon_count += view.late_count
        heir.duplicate_count += view.duplicate_count
        changed.add(ordinals[0])
        shelf.drop(gone)
    return changed


def _stands(shelf: Shelf, ordinal: int) -> tuple[ViewState, dict[str, Any]]:
    opened = shelf.open(ordinal)
    if opened is None:
        raise RuntimeError(f"play {ordinal} is arranged, but not there")
    return opened
