"""Tells the figures: lines while it runs, a table at the end."""

import statistics

from bench.processor.beacons import Loaded
from bench.processor.measure import Figures
from bench.processor.systems import ALL

_MIB = 1024 * 1024


def told_input(loaded: Loaded, in_flight: int, seconds: float) -> str:
    """What was loaded."""
    return (
        f"{loaded.beacons:,} beacons of {loaded.value_bytes / loaded.beacons:.0f} B; {len(loaded.views):,} views that end,"
        f" {loaded.never_ended:,} that do not, {in_flight:,} in flight; loaded in {seconds:.0f} s"
    )


def told_run(name: str, figures: Figures) -> str:
    """One run."""
    drained = figures.drained
    return (
        f"{name:24} {drained.beacons_a_cpu_second / 1000:7.1f}k beacons/CPU-s   {drained.beacons / drained.seconds / 1000:6.1f}k/s"
        f"   broker {drained.broker_us_a_beacon:5.2f} us/beacon   RSS {drained.rss_bytes_max / _MIB:5.0f} MiB"
        f"   commit p50 {figures.commit_ms(0.5):6.1f} p95 {figures.commit_ms(0.95):6.1f} ms   changelog"
        f" {figures.changelog_bytes_a_beacon:6.1f} B and {figures.changelog_records_a_beacon:.2f} records a beacon"
    )


def table(results: dict[str, list[Figures]]) -> str:
    """The medians of all rounds."""
    return "\n".join(
        f"{ALL[name].title:40} {statistics.median(each.drained.beacons_a_cpu_second for each in runs):10,.0f}"
        for name, runs in results.items()
    )


def write(results: dict[str, list[Figures]], loaded: Loaded, in_flight: int) -> None:
    """Later."""
