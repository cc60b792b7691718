"""Suspects of injected incidents: `python -m bench.suspects [--incidents N] [--calm N] [--views N] [--usual N] [--processes N]`.

Each case is an hour of a random world, beside what is usual there. A case counts as named where the suspect's cohort has exactly
the views of the incident's, of both ranges: two descriptions of the same views are one cohort. Two methods of others search too.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from bench.report.results import Compared, Part, keep, table
from bench.suspects import peers
from bench.suspects.incidents import DETECTABLE_NATS, SHARES, STRENGTHS, Case, case
from bench.suspects.world import DIMENSIONS, World, counted
from services.query.core.suspects.question import SUSPECTS_MAX
from shared.statistics.suspects.counts import Counts
from shared.statistics.suspects.likelihood import Quad
from shared.statistics.suspects.search import searched
from shared.statistics.suspects.suspect import Searched, Suspect, confirmed, judgements

WORLDS: Final = 10
#: Of an hour, where none are given.
VIEWS: Final = 150_000
#: Cohorts that must be named first, and among the first three; and calm hours without a suspect.
GOALS: Final = (0.90, 0.97, 0.99)
_FIRST_CALM: Final = 1_000_000
#: Beside a case's seed: its sample is drawn apart from its views.
_SAMPLED: Final = 1
Cohort = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Result:
    """One case: at which place each method names the incident's cohort (0: nowhere), how many suspects, and CPU seconds."""

    seed: int
    what: str
    order: int
    is_detectable: bool
    places: dict[str, int]
    suspects: int
    seconds: dict[str, float]


def ours(made: Case, counts: Counts) -> list[Cohort]:
    """The suspects as `/v1/suspects` has them: those of a sample are confirmed by all views, and all are ranked by excess."""
    searched_views = counts.now.events.size + counts.usual.events.size
    if searched_views == made.now.events.size + made.usual.events.size:
        return [_cohort(one) for one in sorted(searched(counts).found, key=lambda one: -one.excess)]
    found = searched(counts, limit=SUSPECTS_MAX)
    while True:
        quads, total = counted_in_all(made, found)
        said = judgements(found, quads, total)
        places = confirmed(found, said)
        again = found.to_be_counted_again(places)
        if again is None:
            return [_cohort(found.listed[place]) for place in sorted(places, key=lambda place: -said[place].excess)]
        found = again


def counted_in_all(made: Case, found: Searched) -> tuple[list[Quad], Quad]:
    """The counts of each cohort in all views, without views of those found before it; and of all views."""
    quads: list[list[float]] = [[] for _ in found.listed]
    total: list[float] = []
    for hour in (made.now, made.usual):
        is_free = np.ones(hour.events.size, bool)
        for number, one in enumerate(found.listed):
            is_in = is_free & np.all([hour.columns[place] == code for place, code in _cohort(one)], axis=0)
            quads[number] += [float(hour.events[is_in].sum()), float(is_in.sum())]
            if number < len(found.found):
                is_free &= ~is_in
        total += [float(hour.events.sum()), float(hour.events.size)]
    return [Quad(*map(np.array, quad)) for quad in quads], Quad(*map(np.array, total))


def _cohort(one: Suspect) -> Cohort:
    return tuple((DIMENSIONS.index(name), int(value or "")) for name, value in one.values)


def _of_codes(found: Sequence[Cohort], counts: Counts) -> list[Cohort]:
    return [tuple((place, int(counts.values[place][code] or "-1")) for place, code in one) for one in found]


def theirs(method: Callable[[Counts], list[Cohort]], _made: Case, counts: Counts) -> list[Cohort]:
    """What another method names, by the world's values. It searches the same sample."""
    return _of_codes(method(counts), counts)


METHODS: Final[dict[str, Callable[[Case, Counts], list[Cohort]]]] = {
    "Playhead": ours,
    "Adtributor": partial(theirs, peers.adtributor),
    "RiskLoc": partial(theirs, peers.riskloc),
}


def run(seed: int, *, views: int, usual: int, is_alone: bool = False) -> Result:
    """One case, searched by every method; a calm hour, and every case where `is_alone`, by ours alone."""
    is_calm = seed >= _FIRST_CALM
    made = case(World(seed % WORLDS), seed, views=views, usual_views=usual, is_calm=is_calm)
    counts = counted(made.world, made.now, made.usual, np.random.default_rng([seed, _SAMPLED]))
    places, seconds, number = {}, {}, 0
    for name, method in METHODS.items():
        if (is_calm or is_alone) and name != "Playhead":
            continue
        began = time.process_time()
        found = method(made, counts)
        seconds[name] = time.process_time() - began
        places[name] = _place(made, found)
        number = len(found) if name == "Playhead" else number
    incident = made.incident
    return Result(
        seed,
        "calm" if incident is None else f"{incident}, {incident.strength:.1f}×, {incident.share:.2%} of views",
        0 if incident is None else len(incident.values),
        incident is not None and incident.is_detectable,
        places,
        number,
        seconds,
    )


def _place(made: Case, found: Sequence[Cohort]) -> int:
    if made.incident is None:
        return 0
    sides = (made.now.columns, made.usual.columns)
    wanted = [made.incident.within(columns) for columns in sides]
    for number, cohort in enumerate(found, start=1):
        is_in = (np.all([columns[place] == code for place, code in cohort], axis=0) for columns in sides)
        if all(np.array_equal(mine, its) for mine, its in zip(is_in, wanted, strict=True)):
            return number
    return 0


def main() -> int:
    """0 when every case was searched."""
    parser = argparse.ArgumentParser(prog="python -m bench.suspects", description=__doc__)
    parser.add_argument("--incidents", type=int, default=200)
    parser.add_argument("--calm", type=int, default=200)
    parser.add_argument("--views", type=int, default=VIEWS, help="of the hour")
    parser.add_argument("--usual", type=int, default=3 * VIEWS, help="views of what is usual")
    parser.add_argument(
        "--first", type=int, default=0, help="seed of the first case: 0 has the figures, others are to develop"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="without the methods of others")
    parser.add_argument("--misses", action="store_true", help="print what was not named first")
    given = parser.parse_args()
    seeds = [given.first + number for number in range(given.incidents)]
    seeds += [_FIRST_CALM + given.first + number for number in range(given.calm)]
    with ProcessPoolExecutor(given.processes) as pool:
        results = list(pool.map(partial(run, views=given.views, usual=given.usual, is_alone=given.alone), seeds))
    incidents, calm = results[: given.incidents], results[given.incidents :]
    if given.misses:
        for one in incidents:
            if one.places["Playhead"] != 1:
                known = "" if one.is_detectable else ", not detectable"
                print(f"{one.seed}: place {one.places['Playhead']} of {one.suspects}: {one.what}{known}")
        for one in calm:
            if one.suspects:
                print(f"{one.seed}: {one.suspects} suspects in a calm hour")
    part = _part(incidents, calm, given)
    if given.first == 0 and given.usual == 3 * given.views:
        keep(part)
    print("\n".join([*table([part]), "", *part.lines]))
    return 0


def _part(incidents: Sequence[Result], calm: Sequence[Result], given: argparse.Namespace) -> Part:
    detectable = [one for one in incidents if one.is_detectable]
    quiet = sum(one.suspects == 0 for one in calm)
    compared = [
        _compared("true cohort first, detectable incidents", detectable, 1, GOALS[0]),
        _compared("true cohort among the first three, detectable incidents", detectable, 3, GOALS[1]),
        _compared("true cohort first, all incidents", incidents, 1, GOALS[0]),
        _compared("true cohort among the first three, all incidents", incidents, 3, GOALS[1]),
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
        ),
        "",
        "| method | first | first three | first, detectable | first three, detectable | CPU a search |",
        "|---|---|---|---|---|---|",
    ]
    for name in incidents[0].places if incidents else ():
        shares = [_share(of, name, most) for of in (incidents, detectable) for most in (1, 3)]
        cpu = sum(one.seconds[name] for one in incidents) / max(1, len(incidents))
        lines.append(f"| {name} | {' | '.join(shares)} | {cpu:.2f} s |")
    lines += ["", "| dimensions of the incident | detectable | first | first three |", "|---|---|---|---|"]
    for order in range(1, 5):
        of = [one for one in detectable if one.order == order]
        lines.append(f"| {order} | {len(of)} | {_share(of, 'Playhead', 1)} | {_share(of, 'Playhead', 3)} |")
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


def _named(of: Sequence[Result], name: str, most: int) -> int:
    return sum(0 < one.places[name] <= most for one in of)


def _share(of: Sequence[Result], name: str, most: int) -> str:
    return f"{_named(of, name, most) / len(of):.1%}" if of else "–"


def _compared(what: str, of: Sequence[Result], most: int, goal: float) -> Compared:
    found = _named(of, "Playhead", most)
    return Compared(what, f"{found} of {len(of)}", f"≥ {goal:.0%}", found >= goal * len(of) if of else None)


if __name__ == "__main__":
    raise SystemExit(main())
