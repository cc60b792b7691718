"""Growing the partitions of open views under load: `python -m bench.grow [--views N] [--rate R]`.

Fills the changelog with open views, and a slot works them while beacons come. Then the slot is stopped, `deploy.topics grow`
doubles the partitions, and a slot starts with the new number; the producer goes on by the former one all the time. The pause is
from the stop until no more than a second's beacons wait. Checked before any figure: each view is in its partition alone and is
open, and all beacons are counted, none twice.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from bench.open_views import FOLDED, Slot, create, fill, folded, produce, wait
from bench.results import Compared, Part, keep, table
from deploy.local.broker import Broker
from services.processor.applications.video_views.stores import VIEWS
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.state.rows import unpack
from services.processor.runtime.growing import read
from shared import topics
from shared.partitioning import partition_of
from shared.settings import Settings

PARTITIONS: Final = topics.BEACONS.partitions(topics.PROFILES["laptop"])
GROWN: Final = 2 * PARTITIONS
GOAL_SECONDS: Final = 30.0


class Wrong(RuntimeError):
    """A view or a beacon is missing, doubled or elsewhere."""


def main() -> int:
    """1 when a view or a beacon is missing, doubled or elsewhere."""
    parser = argparse.ArgumentParser(prog="python -m bench.grow", description=__doc__)
    parser.add_argument("--views", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=500, help="beacons a second")
    parser.add_argument("--seconds", type=float, default=120.0, help="of load")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="grow") as folder, Broker(Path(folder) / "broker") as broker:
        create(broker, "laptop")
        return _run(broker, Path(folder), given)


def _run(broker: Broker, folder: Path, given: argparse.Namespace) -> int:
    views, rate, beacons = given.views, given.rate, round(given.rate * given.seconds)
    fill(broker, views, PARTITIONS)
    slot = Slot(broker, folder, "laptop")
    slot.child.start()
    try:
        wait(lambda: slot.is_ready() and slot.open_views() == views, slot, "everything is restored")
        load = threading.Thread(
            target=produce, args=(broker, views, PARTITIONS), kwargs={"beacons": beacons, "rate": rate}, daemon=True
        )
        load.start()
        wait(lambda: folded(broker, PARTITIONS) > rate, slot, "the load is folded")
        began = time.monotonic()
        slot.child.stop(60)
        stopped = time.monotonic() - began
        _grow(broker)
        moved = time.monotonic() - began
        slot = Slot(broker, folder, "laptop", {"PLAYHEAD_BEACON_PARTITIONS": str(GROWN)})
        slot.child.start()
        wait(slot.is_ready, slot, "it works every partition")
        wait(lambda: slot.open_views() == views and slot.lag() <= rate, slot, "it has caught up")
        paused = time.monotonic() - began
        if not load.is_alive():
            raise Wrong("the load was over before the pause: give more --seconds")
        print(f"pause {paused:.1f} s: stopped after {stopped:.1f}, moved after {moved:.1f}", flush=True)
        load.join()
        wait(lambda: _is_folded(broker), slot, "everything is folded")
        slot.child.stop(60)
    finally:
        slot.child.kill()
    _check(broker, views, views * FOLDED + beacons)
    _keep(given, stopped, moved, paused)
    return 0


def _is_folded(broker: Broker) -> bool:
    """Whether the group's offsets are at the ends of all partitions: of the former ones first, which hand beacons on."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "video_views", "enable.auto.commit": False})
    try:
        for partition in range(GROWN):
            (at,) = consumer.committed([TopicPartition(topics.BEACONS.name, partition)], timeout=60)
            _, end = consumer.get_watermark_offsets(at, timeout=60)
            # After the last record that was handed on there is the end of its transaction.
            if end - at.offset > (partition >= PARTITIONS):
                return False
        return True
    finally:
        consumer.close()


def _grow(broker: Broker) -> None:
    subprocess.run(
        [sys.executable, "-m", "deploy.topics", "grow", topics.BEACONS.name, str(GROWN)],
        env={**os.environ, "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap},
        check=True,
    )


def _check(broker: Broker, views: int, beacons: int) -> None:
    """Raises `Wrong` unless each view is in its partition alone, and all have counted so many beacons, none twice."""
    settings = Settings(kafka_bootstrap=broker.bootstrap)
    application = APPLICATIONS["video_views"]({})
    found = counted = repeated = 0
    for partition in range(GROWN):
        rows, _ = read(settings, application, partition)
        for key, row in rows.items():
            if key[0] != VIEWS.id:
                continue
            if partition_of.__wrapped__(key[1:], GROWN) != partition:
                raise Wrong(f"{key[1:]!r} is in partition {partition}")
            view = VIEWS.decode(unpack(row)[2])
            found += 1
            counted += view.beacon_count
            repeated += view.duplicate_count
    if (found, counted, repeated) != (views, beacons, 0):
        raise Wrong(f"{found} of {views} views, {counted} of {beacons} beacons, {repeated} twice")


def _keep(given: argparse.Namespace, stopped: float, moved: float, paused: float) -> None:
    result = Part(
        name="grow",
        title="Growing: twice as many partitions of open views under load",
        command=f"python -m bench.grow --views {given.views} --rate {given.rate}",
        checked="each view in its partition alone and open, each beacon counted once: 0 lost, doubled or split",
        compared=[
            Compared(
                f"pause, {given.views:,} open views and {given.rate:,} beacons/s",
                f"{paused:.1f} s",
                f"< {GOAL_SECONDS:g} s",
                paused < GOAL_SECONDS,
            )
        ],
        lines=[
            (
                f"{PARTITIONS} partitions became {GROWN}. The slot had stopped after {stopped:.1f} s, the state had moved after"
                f" {moved:.1f} s, and after {paused:.1f} s the slot had all partitions and no more than a second's beacons to"
                " fold; load, broker, command and slot on the same two cores."
            )
        ],
    )
    keep(result)
    print("\n".join(table([result])))


if __name__ == "__main__":
    sys.exit(main())
