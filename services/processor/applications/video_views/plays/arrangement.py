"""How the steps of a session fall into plays: a function of the set of them, for any order in which they came.

A *run* of the sequence begins with each step numbered 0 of another time, and holds the steps sent from then until the next
run. Where a number comes a second time within it, the step numbered 0 between the two was lost: another run begins with the
second one. Steps from before the first known beginning are of the first run, if it has none of their numbers; else they are a
run of its own. What is settled stays where it is: the beginning of a settled play that comes late belongs to it, and is a
misfit. Within a run, in the order of numbers, a *play* begins where the content becomes another one.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.view.by_number import NOWHERE, Place, place_of
from services.processor.applications.video_views.view.seen import Ranges

#: Where a run begins, for the order of runs, whose beginning is not known.
UNKNOWN: Final[Place] = NOWHERE
#: Stands for the plays that are closed.
CLOSED_ORDINAL: Final = 0


class Settled(NamedTuple):
    """The part of a play that cannot be moved any more: numbers `first_seq` up to `next_seq`, but for `gaps`.

    It was sent from `first` to `last`.
    """

    ordinal: int
    run: Place
    first_seq: int
    next_seq: int
    content: str | None
    first: Place
    last: Place
    gaps: Ranges

    def has(self, seq: int) -> bool:
        """Whether the beacon of this number is settled."""
        return self.first_seq <= seq < self.next_seq and not any(first <= seq <= last for first, last in self.gaps)


class Arranged(NamedTuple):
    """One play: where its run and it begin, what it shows, its steps in their order; the ordinal of its settled part, or 0."""

    run: Place
    first_seq: int
    content: str | None
    steps: list[Step]
    settled: int = 0


class Misfit(NamedTuple):
    """A step that belongs among what is settled: it came too late to be put there."""

    ordinal: int
    step: Step


def content_of(step: Step) -> str | None:
    """The content id that separates plays: of what plays, not of what was requested."""
    content: str | None = step.dimensions.get("video_id") if step.is_timed else None
    return content


def begins_at(step: Step) -> Place:
    """Where the run of a step numbered 0 begins."""
    return (step.at_ms + step.shift_ms, 0, 0)


def arranged(
    steps: Iterable[Step], settled: Sequence[Settled], unknown: Place = UNKNOWN
) -> tuple[list[Arranged], list[Misfit]]:
    """The plays of these steps, in order, around what is settled; and the steps that can be put in none of them.

    A run whose beginning is not known begins at `unknown`.
    """
    in_order = sorted(steps, key=place_of)
    settled = _begun_late(in_order, settled, unknown)
    starts = sorted({begins_at(one) for one in in_order if not one.seq} | {part.run for part in settled})
    groups: dict[Place, list[Step]] = {start: [] for start in starts}
    before: list[Step] = []
    at = -1
    for one in in_order:
        while at + 1 < len(starts) and starts[at + 1] <= place_of(one):
            at += 1
        (before if at < 0 else groups[starts[at]]).append(one)
    plays: list[Arranged] = []
    misfits: list[Misfit] = []
    if before and starts and _joins(before, groups[starts[0]], [part for part in settled if part.run == starts[0]]):
        groups[starts[0]] = before + groups[starts[0]]
    elif before:
        groups = {unknown: before} | groups
    for start, group in groups.items():
        parts = sorted((part for part in settled if part.run == start), key=lambda part: part.first_seq)
        for run, members in _runs(start, group, parts, misfits):
            plays += _plays(run, members, parts if run == start else [], misfits)
    return plays, misfits


def _begun_late(in_order: list[Step], settled: Sequence[Settled], unknown: Place) -> Sequence[Settled]:
    """What is settled; of a run whose beginning was not known with the beginning that has come, if it has."""
    known = [begins_at(one) for one in in_order if not one.seq]
    found = list(settled)
    for run in {part.run for part in settled if part.run == unknown or part.run[1]}:
        parts = [part for part in settled if part.run == run]
        first = min(part.first for part in parts)
        begun = max((start for start in known if start < first), default=None)
        others = [part.run for part in settled if part.run != run]
        if begun is None or any(begun <= other <= first for other in others):
            continue
        between = [one for one in in_order if begun <= place_of(one) < first]
        if not any(part.has(one.seq) for part in parts for one in between):
            found = [part._replace(run=begun) if part.run == run else part for part in found]
    return found


def _joins(before: list[Step], group: list[Step], parts: list[Settled]) -> bool:
    """Whether the steps before a known beginning are of the run that begins there: the clock was set back in it.

    It has none of their numbers then, and they were not received before its beginning.
    """
    beginning = next((one for one in group if not one.seq), None)
    if beginning is not None and any(one.recv_ms < beginning.recv_ms for one in before):
        return False
    first_run: set[int] = set()
    for one in group:
        if one.seq in first_run or _part_of(one, parts):
            # Another run begins.
            break
        first_run.add(one.seq)
    numbers = {one.seq for one in before}
    is_known = not numbers.isdisjoint(first_run) or any(_part_of(one, parts) for one in before)
    return len(numbers) == len(before) and not is_known


def _part_of(one: Step, parts: Sequence[Settled]) -> Settled | None:
    return next((part for part in parts if part.first_seq <= one.seq < part.next_seq), None)


def _runs(
    start: Place, in_order: list[Step], parts: Sequence[Settled], misfits: list[Misfit]
) -> list[tuple[Place, list[Step]]]:
    """The runs of a group: a new one where a number comes again."""
    runs: list[tuple[Place, list[Step]]] = [(start, [])]
    numbers: set[int] = set()
    for one in in_order:
        part = _part_of(one, parts) if len(runs) == 1 else None
        if part is not None and place_of(one) <= part.last:
            misfits.append(Misfit(part.ordinal, one))
            continue
        if part is not None or one.seq in numbers:
            runs.append((place_of(one), []))
            numbers = set()
        runs[-1][1].append(one)
        numbers.add(one.seq)
    return runs


def _plays(run: Place, members: list[Step], parts: Sequence[Settled], misfits: list[Misfit]) -> list[Arranged]:
    """The plays of a run: a new one where the content becomes another one."""
    plays: list[Arranged] = []
    #: The number before which all is of closed plays, or of none; the play that steps go to now, unless they differ.
    content: str | None = None
    is_first = True
    waiting = list(parts)
    for one in sorted(members, key=lambda step: step.seq):
        while waiting and waiting[0].first_seq <= one.seq:
            content, is_first = _settle(plays, run, waiting.pop(0), misfits), False
        named = content_of(one)
        if is_first or not plays:
            plays.append(Arranged(run, 0 if is_first else one.seq, named, [one]))
            content, is_first = named, False
        elif named is None or content in (None, named):
            plays[-1].steps.append(one)
            if content is None and named is not None:
                content = named
                plays[-1] = plays[-1]._replace(content=named)
        else:
            plays.append(Arranged(run, one.seq, named, [one]))
            content = named
    for part in waiting:
        _settle(plays, run, part, misfits)
    return plays


def _settle(plays: list[Arranged], run: Place, part: Settled, misfits: list[Misfit]) -> str | None:
    if part.ordinal != CLOSED_ORDINAL:
        first_seq = part.first_seq
        if plays and not plays[-1].settled and part.content is not None and plays[-1].content == part.content:
            # The beginning of the same play came too late to be put there.
            first_seq = plays[-1].first_seq
            misfits += [Misfit(part.ordinal, one) for one in plays.pop().steps]
        plays.append(Arranged(run, first_seq, part.content, [], part.ordinal))
    return part.content
