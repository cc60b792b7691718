"""What a beacon costs in the core: `python -m bench.fold [--views N] [--runs N] [--input NAME ...]`.

Folds the same records in memory, commits after every 2,000 of them and flushes after ten commits, until every view has finished.
The figure is the CPU time of the process between the first record and the last timer, without making the records. The hash is of
everything that was written: each row of the changelog and each output, in order. Two builds of one fold must have the same hash.
"""

import argparse
import gc
import hashlib
import sys
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from bench.fold.inputs import INPUTS, Input
from bench.results import Compared, Part, keep
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalMeta, MemoryStore
from shared import topics

COMMIT_RECORDS: Final = 2_000
FLUSH_COMMITS: Final = 10
#: Every view has finished and closed after it, ms.
_OVER_MS: Final = 30 * 3_600_000
_STEP_MS: Final = 60_000
#: Beacons a CPU-second in the core.
GOALS: Final = {"bench": 70_000, "mux": 45_000, "native": None}


class Folded(NamedTuple):
    """A run: beacons, CPU seconds in all, of these after the last record (finishes and rows), and the hash of what was written."""

    beacons: int
    cpu_seconds: float
    end_seconds: float
    written: str


def folded(inputs: Sequence[Input]) -> Folded:
    """Folds the records on one core, commits, and lets every view finish."""
    records = [
        Record(topics.BEACONS.name, 0, offset, one.at_ms, one.key, one.value, ()) for offset, one in enumerate(inputs)
    ]
    run = _Run()
    gc.collect()
    began = time.process_time()
    for first in range(0, len(records), COMMIT_RECORDS):
        run.fold(records[first : first + COMMIT_RECORDS])
    last = time.process_time()
    run.finish(inputs[-1].at_ms)
    ended = time.process_time()
    return Folded(len(records), ended - began, ended - last, run.hash.hexdigest())


class _Run:
    """A core with a local store in memory."""

    def __init__(self) -> None:
        self._local = MemoryStore()
        self._core = Core(APPLICATIONS["video_views"]({}), 0, self._local)
        self._commits = 0
        self.hash = hashlib.sha256()

    def fold(self, records: Sequence[Record]) -> None:
        taken = 0
        while taken < len(records):
            taken += self._core.fold(records[taken:])
            self._commit()

    def finish(self, clock_ms: int) -> None:
        """Lets time pass until nothing is due any more."""
        over_ms = clock_ms + _OVER_MS
        while clock_ms < over_ms:
            clock_ms = min(over_ms, clock_ms + _STEP_MS)
            while not self._core.advance_to(clock_ms):
                self._commit()
            self._commit()

    def _commit(self) -> None:
        if not self._core.is_dirty:
            return
        checkpoint = self._core.cut()
        update = self.hash.update
        for key, row in checkpoint.changes.items():
            update(key)
            update(b"\x00" if row is None else row)
        for output in checkpoint.outputs:
            update(output.topic.encode())
            update(output.key or b"")
            update(output.value or b"\x00")
        self._core.commit()
        self._commits += 1
        if self._commits % FLUSH_COMMITS == 0:
            rows, meta = self._core.begin_flush()
            self._local.write(rows, LocalMeta(meta, self._commits))
            self._core.end_flush()


def main() -> int:
    """Prints a line a run, and keeps the result of the best run of each input. 1 when two runs wrote different bytes."""
    parser = argparse.ArgumentParser(prog="python -m bench.fold", description=__doc__)
    parser.add_argument("--views", type=int, default=6_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--input", choices=sorted(INPUTS), nargs="+", default=list(INPUTS))
    given = parser.parse_args()
    best: dict[str, Folded] = {}
    is_same = True
    for name in given.input:
        inputs = INPUTS[name](given.views)
        runs = []
        for _ in range(given.runs):
            run = folded(inputs)
            runs.append(run)
            print(
                f"{name:<7} {run.beacons:>8,} beacons, {run.cpu_seconds / run.beacons * 1e6:6.2f} µs each"
                f" ({run.end_seconds / run.beacons * 1e6:5.2f} of it at the end), {run.written[:16]}",
                flush=True,
            )
        best[name] = min(runs, key=lambda run: run.cpu_seconds)
        is_same = is_same and len({run.written for run in runs}) == 1
    if not is_same:
        print("two runs of one input wrote different bytes", file=sys.stderr)
        return 1
    keep(_part(best, given.views))
    return 0


def _part(best: dict[str, Folded], views: int) -> Part:
    rates = {name: run.beacons / run.cpu_seconds for name, run in best.items()}
    compared = [
        Compared(
            f"full fold in the core, {name} beacons a CPU-second",
            f"{rate:,.0f}",
            f"≥ {goal:,}" if goal else "",
            rate >= goal if goal else None,
        )
        for name, rate in rates.items()
        for goal in (GOALS[name],)
    ]
    lines = [
        "One core in memory: fold, cut and commit, without Kafka and disk; the lowest of several runs.",
        "",
        "| input | beacons | µs a beacon | of these after the last one | written (SHA-256) |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {run.beacons:,} | {run.cpu_seconds / run.beacons * 1e6:.2f}"
            f" | {run.end_seconds / run.beacons * 1e6:.2f} | `{run.written[:16]}` |"
            for name, run in best.items()
        ),
    ]
    command = f"python -m bench.fold --views {views}"
    return Part(
        name="fold",
        title="The full fold alone",
        command=command,
        checked="every run of an input wrote the same bytes",
        compared=compared,
        lines=lines,
    )


if __name__ == "__main__":
    sys.exit(main())
