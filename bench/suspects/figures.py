"""The figures of cases that were searched, as a part of the benchmarks' report."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.report.results import Compared, Part
from bench.suspects.incidents import DETECTABLE_NATS, SHARES, STRENGTHS
from bench.suspects.methods import OURS
from bench.suspects.world import DIMENSIONS

WORLDS: Final = 10
#: Of an hour, where none are given.
VIEWS: Final = 150_000
#: Cohorts that must be named first, and among the first three; and calm hours without a suspect.
GOALS: Final = (0.90, 0.97, 0.99)


@dataclass(frozen=True)
class Result:
    """One case: at which place each method names the incident's cohort (0: nowhere), how many suspects, and CPU seconds."""

    seed: int
    what: str
    order: int
    is_detectable: bool
    #: Of suspects alone, and where possible ones come after them.
    places: dict[str, int]
    places_listed: dict[str, int]
    #: Ours.
    suspects: int
    possible: int
    seconds: dict[str, float]


def part_of(incidents: Sequence[Result], calm: Sequence[Result], given: argparse.Namespace) -> Part:
    detectable = [one for one in incidents if one.is_detectable]
    quiet = sum(one.suspects == 0 for one in calm)
    compared = [
        _compared("true cohort first, detectable incidents", detectable, 1, GOALS[0]),
        _compared("true cohort among the first three, detectable incidents", detectable, 3, GOALS[1]),
        _compared("true cohort first, all incidents", incidents, 1, GOALS[0]),
        _compared("true cohort among the first three, all incidents", incidents, 3, GOALS[1]),
        _compared("true cohort first, all incidents, possible ones counted", incidents, 1, GOALS[0], is_listed=True),
        _compared(
            "true cohort among the first three, all incidents, possible ones counted",
            incidents,
            3,
            GOALS[1],
            is_listed=True,
        ),
        Compared(
            "calm hours without a suspect",
            f"{quiet} of {len(calm)}",
            f"≥ {GOALS[2]:.0%}",
            quiet >= GOALS[2] * len(calm) if calm else None,
        ),
    ]
    lines = [
        (
            f"{len(incidents)} incidents of one to four dimensions, {SHARES[0]:.1%} to {SHARES[1]:.0%} of the views,"
            f" {STRENGTHS[0]:g} to {STRENGTHS[1]:g} times the usual rate; {given.views:,} views an hour beside"
            f" {given.usual:,} usual ones; {WORLDS} worlds of {len(DIMENSIONS)} dimensions."
            f" {len(incidents) - len(detectable)} incidents are not certain to differ from chance, and do not count as"
            f" detectable: their expected log likelihood ratio is below {DETECTABLE_NATS} nats, or a wider cohort explains as much."
            " `bench/suspects/incidents.py` decides it before anything is searched."
            " Methods search what the service does: a sample of views, and Playhead's cohorts are"
            " counted in all views, which is in its CPU time. Rates of values multiply in these worlds, but for pairs; there are"
            " no sums, and one incident at a time: the tests of the search have other traffic."
            " Possible cohorts are those that the answer lists below the line, after its suspects: they are no suspects, and"
            f" {sum(one.possible > 0 for one in calm)} of {len(calm)} calm hours have some."
        ),
        "",
        "| method | first | first three | first, detectable | first three, detectable | CPU a search |",
        "|---|---|---|---|---|---|",
    ]
    for name in incidents[0].places if incidents else ():
        shares = [_share(of, name, most) for of in (incidents, detectable) for most in (1, 3)]
        cpu = sum(one.seconds[name] for one in incidents) / max(1, len(incidents))
        lines.append(f"| {name} | {' | '.join(shares)} | {cpu:.2f} s |")
        if name == OURS:
            shares = [_share(of, name, most, is_listed=True) for of in (incidents, detectable) for most in (1, 3)]
            lines.append(f"| {name}, possible ones counted | {' | '.join(shares)} | in it |")
    lines += ["", "| dimensions of the incident | detectable | first | first three |", "|---|---|---|---|"]
    for order in range(1, 5):
        of = [one for one in detectable if one.order == order]
        lines.append(f"| {order} | {len(of)} | {_share(of, OURS, 1)} | {_share(of, OURS, 3)} |")
    lines += _missed(incidents, calm)
    return Part(
        name="suspects" if given.views == VIEWS else f"suspects-{given.views}",
        title=f"Suspects of injected incidents, {given.views + given.usual:,} views",
        command=(
            f"python -m bench.suspects --incidents {given.incidents} --calm {given.calm} --views {given.views}"
            f" --usual {given.usual}{' --alone' if given.alone else ''}"
        ),
        checked="each named cohort has exactly the incident's views",
        compared=compared,
        lines=lines,
    )


def _missed(incidents: Sequence[Result], calm: Sequence[Result]) -> list[str]:
    """What was not named first by suspects alone, and calm hours with suspects."""
    missed = [one for one in incidents if one.places[OURS] != 1]
    lines = [
        "",
        "| incident that is not first | detectable | place | place, possible ones counted |",
        "|---|---|---|---|",
    ]
    for one in missed:
        places = (str(place or "–") for place in (one.places[OURS], one.places_listed[OURS]))
        lines.append(f"| {one.seed}: {one.what} | {'yes' if one.is_detectable else 'no'} | {' | '.join(places)} |")
    loud = ", ".join(f"{one.seed}" for one in calm if one.suspects)
    return [*(lines if missed else []), *(["", f"Calm hours with suspects: {loud}."] if loud else [])]


def _named(of: Sequence[Result], name: str, most: int, *, is_listed: bool = False) -> int:
    return sum(0 < (one.places_listed if is_listed else one.places)[name] <= most for one in of)


def _share(of: Sequence[Result], name: str, most: int, *, is_listed: bool = False) -> str:
    return f"{_named(of, name, most, is_listed=is_listed) / len(of):.1%}" if of else "–"


def _compared(what: str, of: Sequence[Result], most: int, goal: float, *, is_listed: bool = False) -> Compared:
    found = _named(of, OURS, most, is_listed=is_listed)
    return Compared(what, f"{found} of {len(of)}", f"≥ {goal:.0%}", found >= goal * len(of) if of else None)
