"""The memory of one slot with many partitions and open views: `python -m bench.state.memory [--views N] [--backlog N]`.

Fills the changelog with open views, as a slot would have left them. A slot with default limits and an empty disk restores them all.
Then it starts again and processes a backlog of one beacon for each of some views: by then its caches are full. Checked before any
figure: every view is open and every beacon folded. Resident memory is the kernel's figure (VmRSS, and VmHWM for the highest). Also
measured: the size of an open view in the changelog and on the slot's disk.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.report.results import Compared, Part, keep
from bench.state.open_views import Slot, create, fill, folded, produce, wait
from deploy.local.broker import Broker
from shared import topics

PARTITIONS: Final = topics.BEACONS.partitions(topics.PROFILES["production"])
GOAL_MIB: Final = 2_048
#: A run with as many views measures memory; a smaller one what an open view takes on disk.
RESULT_VIEWS: Final = 1_000_000
STOP_SECONDS_MAX: Final = 120.0


def main() -> int:
    """Runs the phases; prints a table. 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.memory", description=__doc__)
    parser.add_argument("--views", type=int, default=1_000_000)
    parser.add_argument("--backlog", type=int, default=200_000, help="beacons that wait, of as many views")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memory") as folder, Broker(Path(folder) / "broker") as broker:
        create(broker, "production")
        slot = Slot(broker, Path(folder), "production")
        print(f"{given.views:,} open views on {PARTITIONS} partitions, one slot; resident memory, MiB")
        print(f"{'':<34}{'now':>8}{'highest':>9}{'seconds':>9}")
        try:
            return _run(broker, slot, given.views, min(given.backlog, given.views))
        finally:
            slot.child.kill()


def _run(broker: Broker, slot: Slot, views: int, backlog: int) -> int:
    row_bytes = fill(broker, views, PARTITIONS)
    slot.child.start()
    began = time.monotonic()
    wait(lambda: slot.is_ready() and slot.open_views() == views, slot, "everything is restored")
    restored = slot.print_phase("restored from the changelog", began)
    # A slot that ends cleanly has written everything to its stores.
    slot.child.stop(STOP_SECONDS_MAX)
    on_disk = slot.disk_bytes() / views
    print(f"an open view: {row_bytes:,} bytes in the changelog (uncompressed), {on_disk:,.0f} on the slot's disk")
    produce(broker, backlog, PARTITIONS)
    slot.child.start()
    began = time.monotonic()
    wait(lambda: folded(broker, PARTITIONS) == backlog and slot.open_views() == views, slot, "everything is folded")
    worked_off = slot.print_phase(f"a backlog of {backlog:,} worked off", began)
    highest = max(restored, worked_off)
    print(f"highest of all: {highest:,} MiB; the goal is below {GOAL_MIB:,}")
    goal = Compared("highest resident memory", f"{highest:,} MiB", f"< {GOAL_MIB:,} MiB", highest < GOAL_MIB)
    if views >= RESULT_VIEWS:
        head = f"One slot with default limits, {PARTITIONS} partitions, {views:,} open views (two rows each), an empty disk."
        phases = [
            f"| restored from the changelog | {restored:,} |",
            f"| a backlog of {backlog:,} beacons folded | {worked_off:,} |",
        ]
        lines = [
            f"{head} Resident memory, highest of each phase:",
            "",
            "| phase | resident, MiB |",
            "|---|---|",
            *phases,
        ]
        keep(_part("memory", "Memory of a slot", "python -m bench.state.memory", [goal], lines))
    else:
        command = f"python -m bench.state.memory --views {views} --backlog {backlog}"
        sizes = [
            f"| in the changelog, after compaction, uncompressed | {row_bytes:,} |",
            f"| on the slot's disk | {on_disk:,.0f} |",
        ]
        keep(
            _part(
                "memory-views",
                "What an open view takes",
                command,
                [],
                ["| an open view | bytes |", "|---|---|", *sizes],
            )
        )
    return 0 if goal.is_met else 1


def _part(name: str, title: str, command: str, compared: list[Compared], lines: list[str]) -> Part:
    checked = "every view is open and every beacon folded"
    return Part(name=name, title=title, command=command, checked=checked, compared=compared, lines=lines)


if __name__ == "__main__":
    sys.exit(main())
