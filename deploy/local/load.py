"""A bounded load test of the whole system on this machine: `make loadtest`. Fails on any loss, double or wrong row.

Locust's players (loadtest/locustfile.py) in place of the demo's; everything else, the comparison with their truth included, is
the demo's. Locust's report, with what became of the views at its end, goes to `--report`.
"""

import argparse
import html
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.compare import Line
from deploy.local.demo import Play, drive
from deploy.local.demo_watch import Verdict
from deploy.local.display import Display
from deploy.local.paths import LOCAL, ROOT
from deploy.local.supervisor import Service
from loadtest.shapes import MEANING, SHAPES, ShapeName

FOLDER: Final = LOCAL / "loadtest"
VIEWERS_MAX: Final = 2_000
SECONDS_MIN: Final = 20
SECONDS_MAX: Final = 4 * 3_600
PROCESSES_MAX: Final = 16
#: The longest view, and what locust takes to begin and to end.
_LAST_VIEWS_SECONDS_MAX: Final = 75


@dataclass(frozen=True)
class LocustCrowd:
    """Players of locust: as many as `shape` says of `viewers`, for `seconds`, in several processes."""

    shape: ShapeName
    viewers: int
    shape_seconds: int
    seed: int
    processes: int
    report: Path

    @property
    def seconds(self) -> int:
        """After so long all are gone: the last views are played to their ends."""
        return self.shape_seconds + _LAST_VIEWS_SECONDS_MAX

    @property
    def told(self) -> str:
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
            "--html": self.report,
        }
        words = tuple(str(word) for pair in arguments.items() for word in pair)
        return Service(
            "players", ("-m", "locust", "--headless", "--only-summary", *words), stop_seconds=30.0, ends=True
        )


def with_verdict(report: str, verdict: Verdict, crowd: LocustCrowd) -> str:
    """Locust's page with the comparison and the latencies at its end."""
    rows = "".join(map(_row, verdict.lines))
    outcome = "every row is as the players know it" if verdict.ok else "THERE ARE DIFFERENCES"
    section = (
        f"<section style='font-family: sans-serif; padding: 2em'><h2>What became of the views: {outcome}</h2>"
        f"<p>{html.escape(crowd.told)}: {html.escape(MEANING[crowd.shape])}.</p>"
        f"<table><tr><th>what</th><th>observed</th><th>truth</th></tr>{rows}</table>"
        f"<pre style='white-space: pre-wrap'>{html.escape(verdict.explanation)}</pre></section>"
    )
    before, end, after = report.rpartition("</body>")
    return f"{before}{section}{end}{after}" if end else report + section


def _row(line: Line) -> str:
    mark = {True: "ok", False: "DIFFERS", None: ""}[line.ok]
    cells = (line.name, line.observed, line.truth, mark)
    return "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>"


def main(arguments: Sequence[str]) -> int:
    """The command; its exit code is the demo's: 1 when anything was lost, doubled or wrong."""
    crowd, folder = _parse(arguments)
    display = Display()
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def judged(verdict: Verdict) -> None:
        written = crowd.report.read_text(encoding="utf-8") if crowd.report.exists() else ""
        crowd.report.write_text(with_verdict(written, verdict, crowd), encoding="utf-8")

    return drive(folder, Play(crowd, judged=judged), display)


def _parse(arguments: Sequence[str]) -> tuple[LocustCrowd, Path]:
    parser = argparse.ArgumentParser(prog="make loadtest", description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="kickoff")
    parser.add_argument("--viewers", type=int, default=120, help=f"at the most, 1 to {VIEWERS_MAX}")
    parser.add_argument("--seconds", type=int, default=60, help=f"of the shape, {SECONDS_MIN} to {SECONDS_MAX}")
    parser.add_argument("--processes", type=int, default=2, help=f"of locust, 1 to {PROCESSES_MAX}")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--report", type=Path, default=LOCAL / "loadtest.html", help="where the page goes")
    given = parser.parse_args(arguments)
    limits = (("viewers", 1, VIEWERS_MAX), ("seconds", SECONDS_MIN, SECONDS_MAX), ("processes", 1, PROCESSES_MAX))
    for name, low, high in limits:
        if not low <= getattr(given, name) <= high:
            parser.error(f"--{name} is {low} to {high}")
    report: Path = given.report.absolute()
    return LocustCrowd(given.shape, given.viewers, given.seconds, given.seed, given.processes, report), FOLDER


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
