"""The plays within one CMCD session, told apart the same way in whatever order their beacons come.

Players keep one session id over several plays (hls.js over `loadSource`). A play begins where the sequence begins anew (a
beacon numbered 0 with another time), or where, in the order of the sequence, the content id becomes another one. A beacon
belongs to the last run of the sequence that began before it was told, and in it to the last play that began with its number
or a lower one. What was folded into the wrong play, because the beacon that begins the right one came later, is taken back.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from services.processor.applications.video_views.step import Step
from services.processor.applications.video_views.view import Taken, ViewState, take, take_back

#: Plays of one session that are told apart; the beacons of what would be more count as late in the last one.
PLAYS_MAX: Final = 100
#: Steps that may wait for the beginning of their play while another play's stand in their place.
STRAYS_MAX: Final = 64


class Play(msgspec.Struct, array_like=True):
    """One play: where it is stored, and where it begins."""

    ordinal: int
    #: The client time of the beacon numbered 0 of its run; 0 while that has not come.
    run_ms: int
    first_seq: int
    content: str | None = None


class Session(msgspec.Struct, array_like=True):
    """The stored row of a session: its plays in order, and the revisions of the rows that were made of them."""

    first_append_ms: int
    plays: list[Play] = []
    revisions: list[int] = []
    ordinals: int = 0
    #: Steps in whose place another one stands: one of the two is of a play whose beginning has not come yet.
    strays: list[Step] = []


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
    """Where a step went and what became of it there; `taken` is None when that play is closed."""

    ordinal: int
    taken: Taken | None


def place(session: Session, shelf: Shelf, step: Step) -> Placed:
    """Takes the step into the play it belongs to, and counts it there; begins plays and moves steps between them as it shows."""
    if not session.plays:
        run_ms = step.at_ms if step.seq == 0 else 0
        return _begin(session, shelf, Play(0, run_ms, 0, _content(step)), step)
    if step.seq == 0 and all(play.run_ms != step.at_ms for play in session.plays):
        unknown = [play for play in session.plays if not play.run_ms]
        if not unknown:
            return _begin_run(session, shelf, step)
        for play in unknown:
            play.run_ms = step.at_ms
    play = _home(session, step)
    opened = shelf.open(play.ordinal)
    if opened is None:
        return Placed(play.ordinal, None)
    content = _content(step)
    if content is not None and play.content not in (None, content):
        return _split(session, shelf, play, opened[0], step)
    rival = _in_its_place(opened[0], step)
    if rival is not None and rival.at_ms != step.at_ms:
        return _stray(session, play, opened[0], step)
    play.content = play.content or content
    return _take(opened, play, step)


def _in_its_place(view: ViewState, step: Step) -> Step | None:
    """What is known by the step's number: the step itself, or one of a play that has not been told apart yet."""
    if step.seq >= view.next_seq and not view.held:
        return None
    return next((one for one in (*view.recent, *view.held) if one.seq == step.seq), None)


def _stray(session: Session, play: Play, view: ViewState, step: Step) -> Placed:
    if any(one.seq == step.seq and one.at_ms == step.at_ms for one in session.strays):
        view.duplicate_count += 1
        return Placed(play.ordinal, Taken(is_new=False, dimensions_changed=False))
    if len(session.strays) < STRAYS_MAX:
        session.strays = [*session.strays, step]
    else:
        view.late_count += 1
    return Placed(play.ordinal, Taken(is_new=True, dimensions_changed=False))


def _take(opened: tuple[ViewState, dict[str, Any]], play: Play, step: Step) -> Placed:
    view, dimensions = opened
    taken = take(view, dimensions, step)
    view.beacon_count += taken.is_new
    view.duplicate_count += not taken.is_new
    return Placed(play.ordinal, taken)


def _content(step: Step) -> str | None:
    """The content id by which plays are told apart: that of what plays, not of what was requested."""
    return step.dimensions.get("video_id") if step.is_timed else None


def _runs(session: Session) -> list[int]:
    return sorted({play.run_ms for play in session.plays})


def _home(session: Session, step: Step) -> Play:
    runs = _runs(session)
    # What was told before any run began (a clock was set back) is of the earliest.
    run_ms = max((run for run in runs if run <= step.told_ms), default=runs[0])
    plays = [play for play in session.plays if play.run_ms == run_ms]
    return [play for play in plays if play.first_seq <= step.seq][-1]


def _begin(session: Session, shelf: Shelf, play: Play, step: Step) -> Placed:
    session.ordinals += 1
    play.ordinal = session.ordinals
    session.plays = sorted([*session.plays, play], key=lambda one: (one.run_ms, one.first_seq))
    return _take(shelf.new(play.ordinal, play.first_seq), play, step)


def _begin_run(session: Session, shelf: Shelf, step: Step) -> Placed:
    if len(session.plays) >= PLAYS_MAX:
        return _too_many(session, shelf)
    runs = _runs(session)
    before = max((run for run in runs if run < step.at_ms), default=None)
    affected = [play for play in session.plays if play.run_ms == (runs[0] if before is None else before)]
    if before is None and any(shelf.open(play.ordinal) is None for play in affected):
        # It would make another play of the first row, which is closed.
        return Placed(affected[0].ordinal, None)

    def is_of_it(one: Step) -> bool:
        return one.told_ms < runs[0] if before is None else one.told_ms >= step.at_ms

    moved: list[Step] = []
    for play in affected:
        # What begins by its content may begin elsewhere, or not at all, once others' steps are gone: it is told apart anew.
        opened = shelf.open(play.ordinal) if play.first_seq else None
        is_anew = opened is not None and opened[0].settled is None
        moved += _moved(session, shelf, play, (lambda _: True) if is_anew else is_of_it)
    placed = _begin(session, shelf, Play(0, step.at_ms, 0, _content(step)), step)
    _place_again(session, shelf, moved)
    strays, session.strays = session.strays, []
    _place_again(session, shelf, strays)
    return placed


def _split(session: Session, shelf: Shelf, play: Play, view: ViewState, step: Step) -> Placed:
    """The step has another content than the play in whose place it stands."""
    rival = _in_its_place(view, step)
    if rival is not None and rival.at_ms != step.at_ms:
        return _stray(session, play, view, step)
    if rival is not None or step.seq < view.settled_next_seq:
        view.duplicate_count += 1
        return Placed(play.ordinal, Taken(is_new=False, dimensions_changed=False))
    later_content = any(one.seq > step.seq and _content(one) is not None for one in (*view.recent, *view.held))
    of_run = [one for one in session.plays if one.run_ms == play.run_ms]
    following = of_run[of_run.index(play) + 1 :]
    if following and not later_content and following[0].content == _content(step):
        return _begin_earlier(session, shelf, play, following[0], step)
    if len(session.plays) >= PLAYS_MAX:
        return _too_many(session, shelf)
    moved = _moved(session, shelf, play, lambda one: one.seq > step.seq)
    if play in session.plays and play.content is None:
        # All that had the other content stands later: the step is the first that tells what this play shows.
        placed = place(session, shelf, step)
        _place_again(session, shelf, moved)
        return placed
    # The first play of a run also has what is still to come from before it.
    first_seq = step.seq if play in session.plays else play.first_seq
    placed = _begin(session, shelf, Play(0, play.run_ms, first_seq, _content(step)), step)
    _place_again(session, shelf, moved)
    return placed


def _begin_earlier(session: Session, shelf: Shelf, before: Play, play: Play, step: Step) -> Placed:
    """The step begins the play after the one in whose place it stands."""
    opened = shelf.open(play.ordinal)
    if opened is None:
        return Placed(play.ordinal, None)
    view, dimensions = opened
    if view.settled is not None:
        view.late_count += 1
        view.beacon_count += 1
        return Placed(play.ordinal, Taken(is_new=True, dimensions_changed=False))
    moved = _moved(session, shelf, before, lambda one: one.seq > step.seq)
    moved += take_back(view, dimensions, lambda _: True)
    play.first_seq = step.seq if before in session.plays else before.first_seq
    view.next_seq = view.settled_next_seq = play.first_seq
    placed = _take(opened, play, step)
    _place_again(session, shelf, moved)
    return placed


def _moved(session: Session, shelf: Shelf, play: Play, which: Callable[[Step], bool]) -> list[Step]:
    """Takes steps out of a play; a play that is left with none was none."""
    opened = shelf.open(play.ordinal)
    if opened is None:
        return []
    view, dimensions = opened
    moved = take_back(view, dimensions, which)
    if view.settled is None and not view.recent and not view.held:
        session.plays.remove(play)
        shelf.drop(play.ordinal)
    elif moved and view.settled is None:
        play.content = next((c for one in (*view.recent, *view.held) if (c := _content(one)) is not None), None)
    return moved


def _place_again(session: Session, shelf: Shelf, moved: list[Step]) -> None:
    for one in sorted(moved, key=lambda each: each.seq):
        place(session, shelf, one)


def _too_many(session: Session, shelf: Shelf) -> Placed:
    last = session.plays[-1]
    opened = shelf.open(last.ordinal)
    if opened is None:
        return Placed(last.ordinal, None)
    opened[0].late_count += 1
    opened[0].beacon_count += 1
    return Placed(last.ordinal, Taken(is_new=True, dimensions_changed=False))
