"""Cold start and catch-up of one slot with many open views: `python -m bench.state.recover [--views N] [--minutes M] [--rate R]`.

Fills the changelog with open views; a slot with an empty disk restores them all (cold start). It is killed, the beacons of an
outage are appended to the topic, and the slot starts again and processes them (catch-up). Checked before any figure: every view is
open both times, and every beacon was folded.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.report.results import Compared, Part, keep, table
from bench.state.open_views import Slot, create, fill, folded, produce, wait
from deploy.local.broker import Broker
from shared import topics

PARTITIONS: Final = topics.BEACONS.partitions(topics.PROFILES["laptop"])
#: How many times as fast as they came beacons must be worked off, so that an outage is over in a time like its own.
CATCH_UP_GOAL: Final = 1.0


def main() -> int:
    """1 when a view or a beacon is missing."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.recover", description=__doc__)
    parser.add_argument("--views", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=10.0, help="of outage")
    parser.add_argument("--rate", type=int, default=5_000, help="beacons a second meanwhile")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recover") as folder, Broker(Path(folder) / "broker") as broker:
        create(broker, "laptop")
        slot = Slot(broker, Path(folder), "laptop")
        try:
            return _run(broker, slot, given)
        finally:
            slot.child.kill()


def _run(broker: Broker, slot: Slot, given: argparse.Namespace) -> int:
    views, rate = given.views, given.rate
    missed = round(given.minutes * 60 * rate)
    fill(broker, views, PARTITIONS)
    cold_seconds, cold_cpu = _timed(
        slot, lambda: slot.is_ready() and slot.open_views() == views, "everything is restored"
    )
    print(f"cold start: {views:,} open views in {cold_seconds:.1f} s ({cold_cpu:.1f} CPU-s)", flush=True)
    slot.child.kill()
    produce(broker, views, PARTITIONS, beacons=missed)
    seconds, cpu = _timed(
        slot,
        lambda: folded(broker, PARTITIONS) == missed and slot.open_views() == views,
        "everything is folded",
    )
    print(f"catching up: {missed:,} beacons in {seconds:.1f} s ({cpu:.1f} CPU-s), its start among it", flush=True)
    result = Part(
        name="recover",
        title="Recovering: a slot from its changelog alone, and after an outage",
        command="python -m bench.state.recover",
        checked="every view open, every beacon folded: 0 missing",
        compared=[
            Compared(f"cold start with {views:,} open views", f"{cold_seconds:.1f} s"),
            Compared(
                "rows restored a CPU-second", f"{views / cold_cpu:,.0f}", "≥ 100,000", views / cold_cpu >= 100_000
            ),
            Compared(
                f"catching up after {given.minutes:g} min at {rate:,} beacons/s",
                f"{missed / seconds:,.0f} beacons/s, {missed / seconds / rate:.1f}× as fast as they came",
                f"> {CATCH_UP_GOAL:g}×",
                missed / seconds / rate > CATCH_UP_GOAL,
            ),
        ],
        lines=[
            (
                f"One slot, {PARTITIONS} partitions, the full fold. {views:,} open views were restored in {cold_seconds:.1f} s;"
                f" {missed:,} beacons of an outage were worked off in {seconds:.1f} s ({cpu:.1f} CPU-seconds) from the start of"
                " the killed process on, broker and slot on the same two cores."
            )
        ],
    )
    keep(result)
    print("\n".join(table([result])))
    return 0


def _timed(slot: Slot, condition: Callable[[], bool], what: str) -> tuple[float, float]:
    """Starts the slot; seconds and CPU-seconds until the condition holds."""
    slot.child.start()
    began = time.monotonic()
    wait(condition, slot, what)
    return time.monotonic() - began, slot.cpu_seconds()


if __name__ == "__main__":
    sys.exit(main())
