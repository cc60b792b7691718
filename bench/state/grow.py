"""Growing the partitions of open views under load: `python -m bench.state.grow [--views N] [--rate R]`.

Fills the changelog with open views, and a slot works them while beacons come. `deploy.topics grow` copies their state, the slot is
stopped when it says so, and one starts with twice the partitions when it is done; the producer goes on by the former number all the
time. The pause is from the stop until no more than a second's beacons wait. Checked before any figure: each view is open, in its
partition alone, and has counted each of its beacons once.
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

from bench.report.results import Compared, Part, keep, table
from bench.state.open_views import FOLDED, Slot, create, fill, folded, produce, wait
from deploy.local.broker import Broker
from services.processor.applications.video_views.stores import VIEWS
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.state.rows import unpack
from services.processor.runtime.operations.state.copies import copied
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
    parser = argparse.ArgumentParser(prog="python -m bench.state.grow", description=__doc__)
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
        copying = time.monotonic()
        growth = _Growth(broker)
        growth.until("now stop all slots")
        print(f"copied in {time.monotonic() - copying:.1f} s, {slot.lag()} beacons wait", flush=True)
        began = time.monotonic()
        times = {"copied": began - copying}

        def note(what: str) -> None:
            times[what] = time.monotonic() - began
            print(f"{times[what]:6.1f} s {what}", flush=True)

        slot.child.stop(60)
        note("stopped")
        growth.until("done in")
        note("moved")
        slot = Slot(broker, folder, "laptop", {"PLAYHEAD_BEACON_PARTITIONS": str(GROWN)})
        slot.child.start()
        wait(slot.is_ready, slot, "it works every partition")
        note("taken over")
        wait(lambda: slot.open_views() == views and slot.lag() <= rate, slot, "it has caught up")
        note("caught up")
        growth.end()
        if not load.is_alive():
            raise Wrong("the load was over before the pause: give more --seconds")
        load.join()
        wait(lambda: _is_folded(broker), slot, "everything is folded")
        slot.child.stop(60)
    finally:
        slot.child.kill()
    _check(broker, folder, views, beacons)
    _keep(given, times)
    return 0


def _is_folded(broker: Broker) -> bool:
    """Whether the group's offsets are at the ends of all partitions: of the former ones first, which hand beacons on."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "video_views",
            "enable.auto.commit": False,
            # The group's offset may be committed before the beacons that were handed on with it: the broker marks each partition of
            # a transaction by itself.
            "isolation.level": "read_uncommitted",
        }
    )
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


class _Growth:
    """The command, running."""

    def __init__(self, broker: Broker) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "deploy.topics", "grow", topics.BEACONS.name, str(GROWN)],
            env={**os.environ, "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap},
            stdout=subprocess.PIPE,
            text=True,
        )

    def until(self, words: str) -> None:
        """Prints what it says, up to a line with these words."""
        for line in self._process.stdout or ():
            print(line, end="", flush=True)
            if words in line:
                return
        raise Wrong(f"the command ended with {self._process.wait()}, and never said {words!r}")

    def end(self) -> None:
        """Waits for its end."""
        for line in self._process.stdout or ():
            print(line, end="", flush=True)
        if self._process.wait(60):
            raise Wrong(f"the command ended with {self._process.returncode}")


def _check(broker: Broker, folder: Path, views: int, beacons: int) -> None:
    """Raises `Wrong` unless each view is in its partition alone, and has counted each of its beacons once.

    The load goes over the views in turn, so the count of each is known.
    """
    settings = Settings(kafka_bootstrap=broker.bootstrap)
    application = APPLICATIONS["video_views"]({})
    turns, more = divmod(beacons, views)
    wrong: list[str] = []
    seen: set[int] = set()
    for partition in range(GROWN):
        with copied(settings, application, partition, folder / f"copy-{partition}") as copy:
            for key, row in copy.rows():
                if key[0] != VIEWS.id:
                    continue
                number = int(key.rpartition(b":")[2], 16)
                view = VIEWS.decode(unpack(row)[2])
                wanted = FOLDED + turns + (number < more)
                if partition_of.__wrapped__(key[1:], GROWN) != partition or number in seen:
                    wrong.append(f"view {number} is in partition {partition}, or twice")
                if (view.beacon_count, view.duplicate_count) != (wanted, 0):
                    counted = f"{view.beacon_count} of {wanted} beacons, {view.duplicate_count} twice"
                    wrong.append(f"view {number} in partition {partition} has counted {counted}")
                seen.add(number)
    if wrong or len(seen) != views:
        raise Wrong("\n".join([f"{len(seen)} of {views} views, {len(wrong)} are wrong", *wrong[:50]]))


def _keep(given: argparse.Namespace, times: dict[str, float]) -> None:
    paused = times["caught up"]
    result = Part(
        name="grow",
        title="Growing: twice as many partitions of open views under load",
        command=f"python -m bench.state.grow --views {given.views} --rate {given.rate}",
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
                f"{PARTITIONS} partitions became {GROWN}; load, broker, command and slot on the same two cores. State was copied in"
                f" {times['copied']:.1f} s while the slot worked. The pause by parts:"
            ),
            "",
            "| part of the pause | s |",
            "|---|---|",
            f"| the slot commits and leaves | {times['stopped']:.1f} |",
            f"| the rest is moved, and the slot's end seen | {times['moved'] - times['stopped']:.1f} |",
            f"| a slot starts and takes all partitions over | {times['taken over'] - times['moved']:.1f} |",
            f"| it folds what has waited | {times['caught up'] - times['taken over']:.1f} |",
        ],
    )
    keep(result)
    print("\n".join(table([result])))


if __name__ == "__main__":
    sys.exit(main())
