"""How the steps of a session fall into plays: a function of the set of them, for any order in which they came.

A *run* of the sequence begins with each step numbered 0 of another time, and holds the steps sent from then until the next
run. If a number comes a second time within it, or well after a greater one by the same clock, the step numbered 0 between the two
was lost. Another run begins there. Steps from before the first known beginning are of the first run, if it has none of their
numbers. Otherwise they are a run of their own. Settled steps stay where they are: the beginning of a settled play that comes late
belongs to it, and is a misfit. Within a run, in the order of numbers, a *play* begins where the content becomes another one.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.plays.runs import Ends, Falls
from services.processor.applications.video_views.view.order.by_number import (
    MISSING_SLACK_MS,
    NOWHERE,
    Place,
    latest_place_of,
    place_of,
    sent_ms,
)
from services.processor.applications.video_views.view.order.seen import Ranges
from services.processor.applications.video_views.view.order.set_back import (
    SetBack,
    shifts_ms,
)
from services.processor.applications.video_views.view.order.spans import Span, may_be_sent

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
    spans: list[Span]
    clocks: Sequence[SetBack]

    def may_have(self, one: Step) -> bool:
        """Whether a step with one of its numbers may be of it: it was sent when the number was."""
        slack_ms = 0 if self.has(one.seq) else MISSING_SLACK_MS
        return may_be_sent(self.spans, one.seq, sent_ms(one), shifts_ms(one, self.clocks), slack_ms=slack_ms)

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
    before, groups = _groups(in_order, starts, settled)
    plays: list[Arranged] = []
    misfits: list[Misfit] = []
    if before and starts and _joins(before, groups[starts[0]], [part for part in settled if part.run == starts[0]]):
        groups[starts[0]] = before + groups[starts[0]]
    elif before:
        groups = {unknown: before} | groups
    for start, group in groups.items():
        parts = sorted((part for part in settled if part.run == start), key=lambda part: part.first_seq)
        for run, members, of_run in _runs(start, group, parts, misfits):
            plays += _plays(run, members, of_run, misfits)
    return plays, misfits


def reports_later(one: Step, start: Place) -> bool:
    """Whether the step tells of a request that was over before a run began, and may be of that run."""
    return not one.is_timed and one.seq > 0 and place_of(one) < start <= latest_place_of(one)


def _groups(
    in_order: Sequence[Step], starts: Sequence[Place], settled: Sequence[Settled]
) -> tuple[list[Step], dict[Place, list[Step]]]:
    """The steps from before the first beginning, and those after each beginning up to the next one.

    By the client's clock a run may begin while what is settled of another one was sent: the clock was set back. A step that
    continues the numbers of the settled one better is of that. A request may have been over before the run that reports it
    began: its number is too small for the run before.
    """
    before: list[Step] = []
    groups: dict[Place, list[Step]] = {start: [] for start in starts}
    newest = dict.fromkeys(starts, -1)
    for part in settled:
        newest[part.run] = max(newest[part.run], part.next_seq - 1)
    at = -1
    for one in in_order:
        while at + 1 < len(starts) and starts[at + 1] <= place_of(one):
            at += 1
        if at < 0:
            before.append(one)
            continue
        start = starts[at]
        if at + 1 < len(starts) and reports_later(one, starts[at + 1]) and one.seq < newest[start]:
            start = starts[at + 1]
        within = (part.run for part in settled if part.run < start < part.last)
        run = next((run for run in within if newest[start] < newest[run] < one.seq), start)
        groups[run].append(one)
        newest[run] = max(newest[run], one.seq)
    return before, groups


def _begun_late(in_order: list[Step], settled: Sequence[Settled], unknown: Place) -> Sequence[Settled]:
    """What is settled; of a run whose beginning was not known with the beginning that has come, if it has."""
    known = [begins_at(one) for one in in_order if not one.seq]
    found = list(settled)
    for run in sorted({part.run for part in settled if part.run == unknown or part.run[1]}):
        parts = [part for part in settled if part.run == run]
        first = min(part.first for part in parts)
        begun = max((start for start in known if start < first), default=None)
        others = [part.run for part in found if part.run != run]
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
    if is_known or len(numbers) < len(before):
        return False
    falls, of_group = Falls([*before, *group]), (1 << len(group)) - 1 << len(before)
    return not any(falls.of(at) & of_group for at in range(len(before)))


def _part_of(one: Step, parts: Sequence[Settled]) -> Settled | None:
    return next((part for part in parts if part.first_seq <= one.seq < part.next_seq), None)


def _runs(
    start: Place, in_order: list[Step], parts: Sequence[Settled], misfits: list[Misfit]
) -> list[tuple[Place, list[Step], Sequence[Settled]]]:
    """The runs of a group, with what is settled of each: a new one where a number comes again."""
    first = min((part.first for part in parts), default=start)
    before: list[Step] = []
    of_settled: list[Step] = []
    for one in in_order:
        part = _part_of(one, parts)
        if part is not None and place_of(one) <= part.last and part.may_have(one):
            misfits.append(Misfit(part.ordinal, one))
        elif place_of(one) < first and (before or part is not None):
            before.append(one)
        else:
            of_settled.append(one)
    runs = _where_numbers_repeat(start, before, []) if before else []
    return [*runs, *_where_numbers_repeat(first if before else start, of_settled, parts)]


def _where_numbers_repeat(
    start: Place, in_order: list[Step], parts: Sequence[Settled]
) -> list[tuple[Place, list[Step], Sequence[Settled]]]:
    runs: list[tuple[Place, list[Step], Sequence[Settled]]] = [(start, [], parts)]
    ends = Ends()
    numbers: set[int] = set()
    newest = -1
    #: Made where a number is smaller than one before it; and the steps of the last run, as it has them.
    falls: Falls | None = None
    of_run = 0
    for at, one in enumerate(in_order):
        goes_on = ends.goes_on(runs[-1][1], one)
        if goes_on is not None:
            runs[goes_on][1].append(one)
            ends.note(goes_on, one)
            continue
        if one.seq < newest and falls is None:
            falls = Falls(in_order)
        has_fallen = one.seq < newest and falls is not None and falls.of(at) & of_run
        if one.seq in numbers or has_fallen or _part_of(one, runs[-1][2]) is not None:
            if runs[-1][1]:
                ends.note(len(runs) - 1, runs[-1][1][-1])
            runs.append((place_of(one), [], []))
            numbers, newest, of_run = set(), -1, 0
        runs[-1][1].append(one)
        numbers.add(one.seq)
        newest = max(newest, one.seq)
        of_run |= 1 << at
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
