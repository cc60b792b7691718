"""Tells the figures: lines while it runs, a table at the end."""

import statistics
import time
from pathlib import Path
from typing import Final

import msgspec

from bench.processor.beacons import Loaded
from bench.processor.measure import Figures
from bench.processor.systems import ALL

FILE: Final = Path(__file__).parents[2] / ".local" / "bench" / "processor.json"
_MIB: Final = 1024 * 1024


class Kept(msgspec.Struct):
    """A run of the benchmark, as it is kept. `results` by the system's name, one for each round."""

    date: str
    beacons: int
    beacon_bytes: float
    views: int
    in_flight: int
    results: dict[str, list[Figures]]


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


def keep(results: dict[str, list[Figures]], loaded: Loaded, in_flight: int) -> None:
    """Keeps the figures for `bench.report`."""
    kept = Kept(
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        beacons=loaded.beacons,
        beacon_bytes=loaded.value_bytes / loaded.beacons,
        views=len(loaded.views) + loaded.never_ended,
        in_flight=in_flight,
        results=results,
    )
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_bytes(msgspec.json.encode(kept))
