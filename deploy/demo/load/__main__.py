"""A bounded load test of the whole system on this machine: `make loadtest`. Fails on any loss, double or wrong row.

Locust's players (loadtest/locustfile.py) in place of the demo's; everything else, the comparison with their truth included, is the
demo's. The results of the views and of the requests are written to `--report` as a page.
"""

import argparse
import csv
import html
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.report.results import Part, keep
from deploy.demo.comparing.watch import Verdict
from deploy.demo.display import Display
from deploy.demo.load.report import moments, page, routes
from deploy.demo.run import NotOurs, Play, demo_folder, drive
from deploy.local.paths import LOCAL, ROOT
from deploy.local.supervisor import Service
from loadtest.shapes import MEANING, SHAPES, ShapeName

FOLDER: Final = LOCAL / "loadtest"
VIEWERS_MAX: Final = 2_000
SECONDS_MIN: Final = 20
SECONDS_MAX: Final = 4 * 3_600
PROCESSES_MAX: Final = 16
#: A run of as many is a result that docs/results.md shows.
RESULT_VIEWERS: Final = 100
#: The longest view, and what locust takes to begin and to end.
_LAST_VIEWS_SECONDS_MAX: Final = 75
#: Locust's figures, beside the truth.
_LOCUST: Final = "locust"
_STATS: Final = f"{_LOCUST}_stats.csv"
_HISTORY: Final = f"{_LOCUST}_stats_history.csv"


@dataclass(frozen=True)
class LocustCrowd:
    """Players of locust: as many as `shape` gives for `viewers`, for `seconds`, in several processes."""

    shape: ShapeName
    viewers: int
    shape_seconds: int
    seed: int
    processes: int
    report: Path
    waits_for_all: bool = True

    @property
    def seconds(self) -> int:
        """After so long all are gone: the last views are played to their ends."""
        return self.shape_seconds + _LAST_VIEWS_SECONDS_MAX

    @property
    def summary(self) -> str:
        """What begins."""
        return (
            f"locust: shape {self.shape}, {self.viewers} viewers at the most, {self.shape_seconds} s, seed {self.seed}"
        )

    def service(self, url: str, truth: Path) -> Service:
        """Locust's processes; they end by themselves."""
        arguments = {
            "-f": ROOT / "loadtest/locustfile.py",
            "--host": url,
            "--processes": self.processes,
            "--shape": self.shape,
            "--viewers": self.viewers,
            "--seconds": self.shape_seconds,
            "--seed": self.seed,
            "--truth": truth,
            "--csv": truth.with_name(_LOCUST),
        }
        words = tuple(str(word) for pair in arguments.items() for word in pair)
        return Service(
            "players", ("-m", "locust", "--headless", "--only-summary", *words), stop_seconds=30.0, ends=True
        )

    def page(self, verdict: Verdict, folder: Path) -> str:
        """The report, with what locust has left in `folder`."""
        command = f"make loadtest SHAPE={self.shape} VIEWERS={self.viewers} SECONDS={self.shape_seconds}"
        load = float(Path("/proc/loadavg").read_text().split()[1])
        summary = (
            f"<code>{command}</code>, {time.strftime('%Y-%m-%d', time.gmtime())}: {html.escape(MEANING[self.shape])}."
            f" {self.processes} processes of locust, seed {self.seed}; players, broker, Postgres and all services on one"
            f" machine with {os.cpu_count()} cores, whose load average at the end was {load:.1f}."
        )
        return page(summary, verdict, routes(_lines_of(folder / _STATS)), moments(_lines_of(folder / _HISTORY)))


def result(crowd: LocustCrowd, verdict: Verdict, stats: Sequence[str]) -> Part:
    """The run as docs/results.md shows it: what was compared, and how long things took."""
    observed = {line.name: line.observed for line in verdict.lines}
    aggregated = next((row for row in csv.DictReader(stats) if row["Name"] == "Aggregated"), {})
    posts = f"{int(aggregated.get('Request Count', 0)):,}"
    waits = [line for line in verdict.lines if line.name.endswith("p50 / p99") and line.observed]
    return Part(
        name="loadtest",
        title=f"Load test: {MEANING[crowd.shape]}",
        command=f"make loadtest SHAPE={crowd.shape} VIEWERS={crowd.viewers} SECONDS={crowd.shape_seconds}",
        checked="every view and row: 0 lost, 0 doubled, 0 wrong",
        compared=[],
        lines=[
            (
                f"{observed['views finished']} views, {observed['beacons answered 2xx']} beacons, {posts} POSTs; players,"
                f" broker, Postgres and all services on {os.cpu_count()} cores."
            ),
            "",
            "| what | p50 / p99 |",
            "|---|---|",
            f"| POST, all routes | {aggregated.get('50%', '')} ms / {aggregated.get('99%', '')} ms |",
            *(f"| {line.name.removesuffix(', p50 / p99')} | {line.observed} |" for line in waits),
        ],
    )


def _lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def main(arguments: Sequence[str]) -> int:
    """The command; its exit code is the demo's: 1 when anything was lost, doubled or wrong."""
    crowd, folder = _parse(arguments)
    display = Display()
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def judged(verdict: Verdict) -> None:
        crowd.report.write_text(crowd.page(verdict, folder), encoding="utf-8")
        if verdict.ok and crowd.viewers >= RESULT_VIEWERS:
            keep(result(crowd, verdict, _lines_of(folder / _STATS)))

    return drive(folder, Play(crowd, judged=judged), display)


def _parse(arguments: Sequence[str]) -> tuple[LocustCrowd, Path]:
    parser = argparse.ArgumentParser(prog="make loadtest", description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="kickoff")
    parser.add_argument("--viewers", type=int, default=120, help=f"at the most, 1 to {VIEWERS_MAX}")
    parser.add_argument("--seconds", type=int, default=60, help=f"of the shape, {SECONDS_MIN} to {SECONDS_MAX}")
    parser.add_argument("--processes", type=int, default=2, help=f"of locust, 1 to {PROCESSES_MAX}")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--report", type=Path, default=LOCAL / "loadtest.html", help="where the page goes")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where everything else lies; emptied first")
    given = parser.parse_args(arguments)
    limits = (("viewers", 1, VIEWERS_MAX), ("seconds", SECONDS_MIN, SECONDS_MAX), ("processes", 1, PROCESSES_MAX))
    for name, low, high in limits:
        if not low <= getattr(given, name) <= high:
            parser.error(f"--{name} is {low} to {high}")
    try:
        folder = demo_folder(given.folder, FOLDER)
    except NotOurs as problem:
        parser.error(str(problem))
    report: Path = given.report.absolute()
    return LocustCrowd(given.shape, given.viewers, given.seconds, given.seed, given.processes, report), folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
