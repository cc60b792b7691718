"""What a beacon costs in the core: `python -m bench.fold [--views N] [--runs N] [--input NAME ...] [--compiled FOLDER]`.

Folds the same records in memory, commits after every 2,000 of them and flushes after ten commits, until every view has finished.
The figure is the CPU time of the process between the first record and the last timer, without making the records. The hash is of
everything that was written: each row of the changelog and each output, in order. Two builds of one fold must have the same hash.

With a folder of `make compile` each run of the interpreted build is followed by one of the compiled build.
"""

import argparse
import json
import os
import pickle
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.fold.inputs import INPUTS
from bench.fold.run import Folded
from bench.report.results import Compared, Part, keep
from deploy.local.paths import ROOT

#: Beacons a CPU-second in the core, of the build that images run.
GOALS: Final = {"bench": 70_000, "mux": 45_000, "native": None}
INTERPRETED: Final = "interpreted"
COMPILED: Final = "compiled"
_RUN_SECONDS_MAX: Final = 1_800

#: Of an input, the runs of each build.
Runs = Mapping[str, Sequence[Folded]]


def builds(compiled: Path | None) -> dict[str, dict[str, str]]:
    """The builds that are compared, each with its settings."""
    found = {INTERPRETED: {"PROCESSOR_COMPILED": "off"}}
    if compiled is not None:
        found[COMPILED] = {"PROCESSOR_COMPILED": "required", "PROCESSOR_COMPILED_DIR": str(compiled.resolve())}
    return found


def measured(name: str, views: int, runs: int, compared: Mapping[str, Mapping[str, str]]) -> Runs:
    """The runs of one input, the builds in turn."""
    found: dict[str, list[Folded]] = {build: [] for build in compared}
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        made = INPUTS[name](views)
        pickle.dump([tuple(one) for one in made], file)
        file.flush()
        for _ in range(runs):
            for build, settings in compared.items():
                run = _run(file.name, settings)
                found[build].append(run)
                print(
                    f"{name:<7} {build:<11} {run.beacons:>8,} beacons, {run.cpu_seconds / run.beacons * 1e6:6.2f} µs each"
                    f" ({run.end_seconds / run.beacons * 1e6:5.2f} of it at the end), {run.written[:16]}",
                    flush=True,
                )
    return found


def _run(file: str, settings: Mapping[str, str]) -> Folded:
    ended = subprocess.run(
        [sys.executable, "-m", "bench.fold.run", file],
        cwd=ROOT,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        timeout=_RUN_SECONDS_MAX,
        check=True,
    )
    return Folded(*json.loads(ended.stdout))


def main() -> int:
    """Prints a line a run, and keeps the result of the best run of each input. 1 when two runs wrote different bytes."""
    parser = argparse.ArgumentParser(prog="python -m bench.fold", description=__doc__)
    parser.add_argument("--views", type=int, default=6_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--input", choices=sorted(INPUTS), nargs="+", default=list(INPUTS))
    parser.add_argument("--compiled", type=Path, metavar="FOLDER", help="a build of `make compile`")
    given = parser.parse_args()
    compared = builds(given.compiled)
    found = {name: measured(name, given.views, given.runs, compared) for name in given.input}
    if any(len({run.written for runs in of_input.values() for run in runs}) != 1 for of_input in found.values()):
        print("two runs of one input wrote different bytes", file=sys.stderr)
        return 1
    keep(_part(found, given.views, has_compiled=given.compiled is not None))
    return 0


def best(runs: Sequence[Folded]) -> Folded:
    """The run that took the least CPU time."""
    return min(runs, key=lambda run: run.cpu_seconds)


def ratio(of_input: Runs) -> float:
    """How many times less CPU time the compiled build took: the median of the pairs."""
    pairs = zip(of_input[INTERPRETED], of_input[COMPILED], strict=True)
    return statistics.median(one.cpu_seconds / other.cpu_seconds for one, other in pairs)


def _part(found: Mapping[str, Runs], views: int, *, has_compiled: bool) -> Part:
    shipped = COMPILED if has_compiled else INTERPRETED
    rates = {
        name: best(of_input[shipped]).beacons / best(of_input[shipped]).cpu_seconds for name, of_input in found.items()
    }
    compared = [
        Compared(
            f"full fold in the core, {shipped}, {name} beacons a CPU-second",
            f"{rate:,.0f}",
            f"≥ {goal:,}" if goal else "",
            rate >= goal if goal else None,
        )
        for name, rate in rates.items()
        for goal in (GOALS.get(name),)
    ]
    lines = [
        "One core in memory: fold, cut and commit, without Kafka and disk; the lowest of several runs. Builds in turn;",
        f"`times` is the median of the pairs. CPython {platform.python_version()}.",
        "",
        "| input | build | beacons | µs a beacon | of these after the last one | times | written (SHA-256) |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {name} | {build} | {run.beacons:,} | {run.cpu_seconds / run.beacons * 1e6:.2f}"
            f" | {run.end_seconds / run.beacons * 1e6:.2f} | {f'{ratio(of_input):.2f}' if build == COMPILED else ''}"
            f" | `{run.written[:16]}` |"
            for name, of_input in found.items()
            for build, runs in of_input.items()
            for run in (best(runs),)
        ),
    ]
    command = f"python -m bench.fold --views {views}" + (" --compiled .local/compiled" if has_compiled else "")
    return Part(
        name="fold",
        title="The full fold alone",
        command=command,
        checked="every run of an input wrote the same bytes, by each build",
        compared=compared,
        lines=lines,
    )


if __name__ == "__main__":
    sys.exit(main())
