"""Suspects of injected incidents: `python -m bench.suspects [--incidents N] [--calm N] [--views N] [--usual N] [--processes N]`.

Each case is an hour of a random world, beside what is usual there. A case counts as named where the suspect's cohort has exactly
the views of the incident's, of both ranges: two descriptions of the same views are one cohort. Two methods of others search too.
"""

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

import numpy as np

from bench.report.results import keep, table
from bench.suspects.figures import VIEWS, WORLDS, Result, part_of
from bench.suspects.incidents import Case, case
from bench.suspects.methods import METHODS, OURS, Cohort, Named
from bench.suspects.world import World, counted

_FIRST_CALM: Final = 1_000_000
#: Beside a case's seed: its sample is drawn apart from its views.
_SAMPLED: Final = 1


def run(seed: int, *, views: int, usual: int, is_alone: bool = False) -> Result:
    """One case, searched by every method; a calm hour, and every case where `is_alone`, by ours alone."""
    is_calm = seed >= _FIRST_CALM
    made = case(World(seed % WORLDS), seed, views=views, usual_views=usual, is_calm=is_calm)
    counts = counted(made.world, made.now, made.usual, np.random.default_rng([seed, _SAMPLED]))
    places, listed, seconds, named = {}, {}, {}, Named([])
    for name, method in METHODS.items():
        if (is_calm or is_alone) and name != OURS:
            continue
        began = time.process_time()
        found = method(made, counts)
        seconds[name] = time.process_time() - began
        places[name], listed[name] = (_place(made, of) for of in (found.certain, [*found.certain, *found.possible]))
        named = found if name == OURS else named
    incident = made.incident
    return Result(
        seed,
        "calm" if incident is None else f"{incident}, {incident.strength:.1f}×, {incident.share:.2%} of views",
        0 if incident is None else len(incident.values),
        incident is not None and incident.is_detectable,
        places,
        listed,
        len(named.certain),
        len(named.possible),
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
    given = parser.parse_args()
    seeds = [given.first + number for number in range(given.incidents)]
    seeds += [_FIRST_CALM + given.first + number for number in range(given.calm)]
    with ProcessPoolExecutor(given.processes) as pool:
        results = list(pool.map(partial(run, views=given.views, usual=given.usual, is_alone=given.alone), seeds))
    incidents, calm = results[: given.incidents], results[given.incidents :]
    part = part_of(incidents, calm, given)
    if given.first == 0 and given.usual == 3 * given.views:
        keep(part)
    print("\n".join([*table([part]), "", *part.lines]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
