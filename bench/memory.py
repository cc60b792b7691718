"""What memory one slot takes with many partitions and open views: `python -m bench.memory [--views N] [--backlog N]`.

Fills the changelog with open views, as a slot would have left them; a slot with default limits and an empty disk restores
them all and then, started again, works off a backlog of one beacon of each of some: by then its caches are full. Checked
before anything is told: every view is open and every beacon folded. Resident memory is the kernel's figure (VmRSS, and
VmHWM for the highest). Beside it, what an open view takes in the changelog and on the slot's disk.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.open_views import Slot, create, fill, folded, produce, wait
from deploy.local.broker import Broker
from shared import topics

PARTITIONS: Final = topics.BEACONS.partitions(topics.PROFILES["production"])
GOAL_MIB: Final = 2_048
STOP_SECONDS_MAX: Final = 120.0


def main() -> int:
    """Runs the phases; prints a table. 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--views", type=int, default=1_000_000)
    parser.add_argument("--backlog", type=int, default=200_000, help="beacons that wait, of as many views")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memory") as folder, Broker(Path(folder) / "broker") as broker:
        create(broker, "production")
        slot = Slot(broker, Path(folder), "production")
        print(f"{told.views:,} open views on {PARTITIONS} partitions, one slot; resident memory, MiB")
        print(f"{'':<34}{'now':>8}{'highest':>9}{'seconds':>9}")
        try:
            return _run(broker, slot, told.views, min(told.backlog, told.views))
        finally:
            slot.child.kill()


def _run(broker: Broker, slot: Slot, views: int, backlog: int) -> int:
    row_bytes = fill(broker, views, PARTITIONS)
    slot.child.start()
    began = time.monotonic()
    wait(lambda: slot.is_ready() and slot.open_views() == views, slot, "everything is restored")
    restored = slot.tell("restored from the changelog", began)
    # A slot that ends cleanly has written everything to its stores.
    slot.child.stop(STOP_SECONDS_MAX)
    on_disk = slot.disk_bytes() / views
    print(f"an open view: {row_bytes:,} bytes in the changelog (uncompressed), {on_disk:,.0f} on the slot's disk")
    produce(broker, backlog, PARTITIONS)
    slot.child.start()
    began = time.monotonic()
    wait(lambda: folded(broker, PARTITIONS) == backlog and slot.open_views() == views, slot, "everything is folded")
    worked_off = slot.tell(f"a backlog of {backlog:,} worked off", began)
    print(f"highest of all: {max(restored, worked_off):,} MiB; the goal is below {GOAL_MIB:,}")
    return 0 if max(restored, worked_off) < GOAL_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
