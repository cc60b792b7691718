"""The figures of a run: lines while it runs, a table and a section of bench/README.md at the end."""

import statistics
from collections.abc import Callable
from typing import Final

import msgspec

from bench.processor.beacons import Loaded
from bench.processor.measure import Figures
from bench.processor.systems import ALL, SETTINGS, System
from bench.report.results import Compared, Part, against

COMMAND: Final = "python -m bench.processor"
_MIB: Final = 1024 * 1024
#: Beacons per CPU-second of the reduced fold to the best of a peer's configurations.
GOALS: Final = {"kafka streams": 2.0, "quix": 8.0}
#: Of the full fold to a peer's for one client.
FULL_GOAL: Final = 0.5


class Kept(msgspec.Struct):
    """A run of the benchmark. `results` by the system's name, one for each round."""

    beacons: int
    beacon_bytes: float
    views: int
    in_flight: int
    results: dict[str, list[Figures]]
    client: str = "bench"

    def median(self, name: str, figure: Callable[[Figures], float]) -> float:
        """The median of a system's rounds."""
        return statistics.median(figure(each) for each in self.results[name])

    def best(self, chosen: Callable[[System], bool]) -> str | None:
        """The system that does most beacons per CPU-second, of those chosen."""
        names = [name for name in self.results if chosen(ALL[name])]
        return max(names, key=lambda name: self.median(name, rate), default=None)


def rate(figures: Figures) -> float:
    """Beacons per CPU-second."""
    return figures.drained.beacons_a_cpu_second


def gathered(results: dict[str, list[Figures]], loaded: Loaded, in_flight: int, client: str) -> Kept:
    """The figures with what was loaded."""
    return Kept(
        beacons=loaded.beacons,
        beacon_bytes=loaded.value_bytes / loaded.beacons,
        views=len(loaded.views) + loaded.never_ended,
        in_flight=in_flight,
        results=results,
        client=client,
    )


def input_summary(loaded: Loaded, in_flight: int, seconds: float) -> str:
    """What was loaded."""
    return (
        f"{loaded.beacons:,} beacons of {loaded.value_bytes / loaded.beacons:.0f} B; {len(loaded.views):,} views that end,"
        f" {loaded.never_ended:,} that do not, {in_flight:,} in flight; loaded in {seconds:.0f} s"
    )


def run_summary(name: str, figures: Figures) -> str:
    """One run."""
    drained = figures.drained
    return (
        f"{name:24} {rate(figures) / 1000:7.1f}k beacons/CPU-s   {drained.beacons / drained.seconds / 1000:6.1f}k/s"
        f"   broker {drained.broker_us_a_beacon:5.2f} us/beacon   RSS {drained.rss_bytes_max / _MIB:5.0f} MiB"
        f"   commit p50 {figures.commit_ms(0.5):6.1f} p95 {figures.commit_ms(0.95):6.1f} ms   changelog"
        f" {figures.changelog_bytes_a_beacon:6.1f} B and {figures.changelog_records_a_beacon:.2f} records a beacon"
    )


def table(run: Kept) -> list[str]:
    """The medians of all rounds, as lines of Markdown."""
    lines = [
        (
            "| system | commit every | beacons per CPU-second | per second | broker, CPU µs a beacon | RSS, MiB"
            " | commit p50 / p95, ms | changelog a beacon |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in run.results:
        system = ALL[name]
        lines.append(
            f"| {system.title} | {system.commit_ms} ms | {run.median(name, rate):,.0f}"
            f" | {run.median(name, lambda each: each.drained.beacons / each.drained.seconds):,.0f}"
            f" | {run.median(name, lambda each: each.drained.broker_us_a_beacon):.2f}"
            f" | {run.median(name, lambda each: each.drained.rss_bytes_max / _MIB):.0f}"
            f" | {run.median(name, lambda each: each.commit_ms(0.5)):.0f}"
            f" / {run.median(name, lambda each: each.commit_ms(0.95)):.0f}"
            f" | {run.median(name, lambda each: each.changelog_bytes_a_beacon):.0f} B,"
            f" {run.median(name, lambda each: each.changelog_records_a_beacon):.2f} records |"
        )
    return lines


def ratios(run: Kept) -> list[Compared]:
    """What was aimed at, and what was reached: for each commit interval, whose runs are neighbours."""
    found = []
    for family, goal in GOALS.items():
        for commit_ms in sorted({ALL[name].commit_ms for name in run.results}):
            theirs = run.best(
                lambda each: (each.family, each.fold, each.commit_ms) == (family, "reduced", commit_ms)  # noqa: B023
            )
            for fold, aim in (("reduced", goal), ("full", 1.0)):
                ours = run.best(
                    lambda each: (each.family, each.fold, each.commit_ms) == ("playhead", fold, commit_ms)  # noqa: B023
                )
                if theirs is None or ours is None or (fold == "full" and family == "quix"):
                    continue
                setting = f"{commit_ms} ms commits, {fold} fold to {ALL[theirs].title}"
                found.append(
                    against(
                        f"beacons per CPU-second: {setting}", run.median(ours, rate) / run.median(theirs, rate), aim
                    )
                )
                if fold == "reduced" and family == "kafka streams":
                    found += _beside(run, ours, theirs, setting)
    return [*found, *_full_folds(run)]


def _full_folds(run: Kept) -> list[Compared]:
    """The full fold beside the one that a peer makes of one client."""
    ours = run.best(lambda each: (each.family, each.fold) == ("playhead", "full"))
    theirs = run.best(lambda each: (each.family, each.fold) == ("kafka streams", "full"))
    if ours is None or theirs is None:
        return []
    ratio = run.median(ours, rate) / run.median(theirs, rate)
    return [against(f"beacons per CPU-second: {run.client} input, full fold to {ALL[theirs].title}", ratio, FULL_GOAL)]


def _beside(run: Kept, ours: str, theirs: str, setting: str) -> list[Compared]:
    """Memory and commit latency."""

    def ratio(figure: Callable[[Figures], float]) -> float:
        return run.median(ours, figure) / run.median(theirs, figure)

    return [
        against(f"RSS: {setting}", ratio(lambda each: each.drained.rss_bytes_max), 0.5, at_most=True),
        against(f"commit latency p50: {setting}", ratio(lambda each: each.commit_ms(0.5)), 1.0, at_most=True),
    ]


def part(run: Kept) -> Part:
    """The run as the other benchmarks keep theirs."""
    is_own = run.client == "bench"
    return Part(
        name="processor" if is_own else f"processor-{run.client}",
        title="Processor: what a beacon costs" + ("" if is_own else f", as {run.client} clients send them"),
        command=COMMAND if is_own else f"{COMMAND} --input {run.client}",
        checked="every view of every system: 0 missing, 0 doubled, 0 wrong",
        compared=ratios(run),
        lines=section(run),
    )


def section(run: Kept) -> list[str]:
    """The section of bench/README.md."""
    rounds = max(len(each) for each in run.results.values())
    of_views = "25 a view, 2 % duplicates, 2 % of the views never ended"
    if run.client != "bench":
        of_views = "2 % duplicates; simulated viewers, through the real intake"
    return [
        (
            f"{run.beacons:,} beacons of {run.beacon_bytes:.0f} B in 8 partitions,"
            f" {run.views:,} views, up to {run.in_flight:,} in flight, {of_views}. Every system"
            " drained the same topic, exactly once; every view was checked with a read_committed consumer: 0 missing, 0 doubled,"
            f" 0 wrong. CPU is that of the whole process, over the part of the topic from one half to nine tenths; {rounds}"
            f" round{'s, medians' if rounds > 1 else ''}."
        ),
        "",
        *table(run),
        "",
        (
            "Commit latency is from the cut (Playhead) or the beginning of the commit (the peers) to its end, while draining as"
            " fast as the machine allows. Kafka Streams has produced most rows before its commit begins, Playhead produces them"
            " in it."
        ),
        "",
        *(f"- {line}" for line in SETTINGS),
    ]
