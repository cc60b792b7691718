"""Faults of production: of brokers and their disks and clocks, of the network, of a host's memory and descriptors."""

import contextlib
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient

from tests.chaos.faults import Fleet, let_pass
from tests.chaos.production.disturbed import Disturbed
from tests.chaos.production.network import Network
from tests.integration.parts.cluster import Cluster
from tests.integration.parts.slots import Slot

BROKER_KILL, BROKER_AWAY = "broker killed and restarted", "broker away for a time"
COORDINATOR = "coordinator killed and restarted"
TAIL_LOST = "broker killed, unflushed tail of its logs lost"
ISR_SHRUNK, BROKER_SLOW = "in-sync replicas shrunk to the minimum", "broker slow"
ELECTED = "preferred leaders elected"
CLOCK_STEPPED = "broker's clock steps"
ONE_WAY_SLOT, ONE_WAY_BROKERS = "one-way cut, slot and broker", "one-way cut, broker and broker"
ISOLATED, LOSSY, FAR = "slot cut off", "packets lost", "packets late"
OUT_OF_MEMORY, NO_DESCRIPTORS = "slot out of memory", "slot out of descriptors"
SLOT_DISK_SLOW, BROKER_DISK_SLOW = "slot's disk slow", "broker's disk slow"
BACK_OFF = "kill -9, supervisor backs off"

_OF_BROKERS: Final = (
    *(BROKER_KILL, BROKER_AWAY, COORDINATOR, TAIL_LOST, TAIL_LOST),
    *(ISR_SHRUNK, BROKER_SLOW, ELECTED, ELECTED),
)
_OF_NETWORK: Final = (ONE_WAY_SLOT, ONE_WAY_SLOT, ONE_WAY_BROKERS, ISOLATED, LOSSY, LOSSY, FAR)
_OF_HOSTS: Final = (
    OUT_OF_MEMORY,
    NO_DESCRIPTORS,
    BACK_OFF,
    CLOCK_STEPPED,
    CLOCK_STEPPED,
    SLOT_DISK_SLOW,
    BROKER_DISK_SLOW,
)

GROUP: Final = "video_views"
#: A replica that has fetched nothing for so long leaves the in-sync ones, and a broker that is silent for so long its cluster.
REPLICA_LAG_SECONDS: Final = 2.0
BROKER_SESSION_SECONDS: Final = 6.0
IN_SYNC_SECONDS_MAX: Final = 300.0
_FENCED_SECONDS_MAX: Final = 120.0
#: Three brokers, their slots and what else a machine does may share two cores.
BROKER_START_SECONDS_MAX: Final = 300.0
_ANSWER_SECONDS_MAX: Final = 10.0
#: What the page cache of a host that loses power has not written, of each partition.
_TAIL_BYTES_MAX: Final = 64 * 1024
#: Not lost: a controller flushes what it confirms.
_FLUSHED: Final = "__cluster_metadata-0"
_CLOCK_STEPS: Final = (-120, -30, 30, 120)
_MEMORY_GROUPS: Final = Path("/sys/fs/cgroup/memory")
_MEMORY_BYTES_MAX: Final = 1 << 20
_OUT_OF_MEMORY_SECONDS_MAX: Final = 10.0


class ProductionFleet(Fleet):
    """Slots and three brokers, each on a host of its own. Hosts are named `broker-N` and `slot-N`.

    `with_common`: faults of every run come too.
    """

    def __init__(
        self,
        make: Callable[[int], Slot],
        slots: int,
        session_seconds: float,
        *,
        standby: Slot | None,
        cluster: Cluster,
        network: Network,
        disturbed: Mapping[str, Disturbed],
        with_common: bool,
    ) -> None:
        super().__init__(make, slots, session_seconds, standby=standby)
        self._brokers_fail = True
        self._cluster = cluster
        self._network = network
        self._disturbed = disturbed
        self._with_common = with_common
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})

    @property
    def kinds(self) -> tuple[str, ...]:
        return (*(super().kinds if self._with_common else ()), *_OF_BROKERS, *_OF_NETWORK, *_OF_HOSTS)

    def is_ready_for(self, kind: str) -> bool:
        # While replicas catch up, faults of other kinds take the time of those that must wait for them.
        return kind not in _OF_BROKERS or self._are_in_sync()

    def inject(self, kind: str, chance: random.Random) -> bool:
        if kind in _OF_BROKERS:
            self._inject_into_cluster(kind, chance)
        elif kind in _OF_NETWORK:
            self._inject_into_network(kind, chance)
        elif kind in _OF_HOSTS:
            self._inject_into_host(kind, chance)
        else:
            return super().inject(kind, chance)
        return True

    def wait_in_sync(self) -> None:
        """Until every replica is in sync: a second fault of a broker could lose what the first has left on one disk alone."""
        deadline = time.monotonic() + IN_SYNC_SECONDS_MAX
        while not self._are_in_sync():
            assert time.monotonic() < deadline, f"replicas are not in sync within {IN_SYNC_SECONDS_MAX:g} s"
            let_pass(0.3)

    def _wait_fenced(self, node: int) -> None:
        """Until the others lead what the broker led: a host that has lost its memory boots for longer than a broker's session.

        One that is back before that still takes itself for the leader, with a log that lacks what it has acknowledged: an old
        commit may then commit a part of the next transaction (docs/failures.md, "Kafka's own limits").
        """
        deadline = time.monotonic() + _FENCED_SECONDS_MAX
        while node in self._unfenced():
            assert time.monotonic() < deadline, f"broker {node} is not fenced within {_FENCED_SECONDS_MAX:g} s"
            let_pass(0.3)

    def _unfenced(self) -> set[int]:
        """The brokers that are not fenced; all while none answers."""
        try:
            return set(self._admin.list_topics(timeout=_ANSWER_SECONDS_MAX).brokers)
        except KafkaException:
            return set(self._cluster.brokers)

    def _are_in_sync(self) -> bool:
        try:
            found = self._admin.list_topics(timeout=_ANSWER_SECONDS_MAX)
        except KafkaException:
            return False
        partitions = [partition for topic in found.topics.values() for partition in topic.partitions.values()]
        return len(found.brokers) == len(self._cluster.brokers) and all(
            len(partition.isrs) == len(partition.replicas) for partition in partitions
        )

    def _inject_into_cluster(self, kind: str, chance: random.Random) -> None:
        self.wait_in_sync()
        node = chance.choice(sorted(self._cluster.brokers))
        broker = self._cluster.brokers[node]
        if kind == ELECTED:
            with contextlib.suppress(KafkaException):
                self._admin.elect_leaders(ElectionType.PREFERRED).result()
        elif kind == BROKER_SLOW:
            # It works for a fifth of the time.
            end = time.monotonic() + chance.uniform(2.0, 8.0)
            while time.monotonic() < end:
                broker.child.signal(signal.SIGSTOP)
                let_pass(0.2)
                broker.child.signal(signal.SIGCONT)
                let_pass(0.05)
        elif kind == ISR_SHRUNK:
            broker.child.signal(signal.SIGSTOP)
            let_pass(chance.uniform(REPLICA_LAG_SECONDS + 1.0, BROKER_SESSION_SECONDS - 1.0))
            broker.child.signal(signal.SIGCONT)
        else:
            if kind == COORDINATOR:
                node = self._cluster.coordinator(GROUP)
                broker = self._cluster.brokers[node]
            broker.kill()
            if kind == TAIL_LOST:
                lose_tails(broker.data, chance)
                self._wait_fenced(node)
            let_pass(chance.uniform(5.0, 12.0) if kind == BROKER_AWAY else chance.uniform(0.0, 2.0))
            broker.start(BROKER_START_SECONDS_MAX)

    def _inject_into_network(self, kind: str, chance: random.Random) -> None:
        slot = f"slot-{chance.choice(self.running)}"
        brokers = [f"broker-{node}" for node in self._cluster.brokers]
        broker, other = chance.sample(brokers, 2)
        seconds = chance.uniform(1.0, self._session_seconds + 3.0)
        if kind in {ONE_WAY_SLOT, ONE_WAY_BROKERS}:
            ends = (slot, broker) if kind == ONE_WAY_SLOT else (broker, other)
            self._network.cut(*chance.sample(ends, 2))
        elif kind == ISOLATED:
            for each in brokers:
                self._network.cut(slot, each)
                self._network.cut(each, slot)
        else:
            at = chance.choice([slot, broker])
            loss, delay_ms = (chance.uniform(0.02, 0.2), 0) if kind == LOSSY else (0.0, chance.randint(20, 300))
            self._network.disturb(at, loss, delay_ms)
        let_pass(seconds)
        self._network.heal()

    def _inject_into_host(self, kind: str, chance: random.Random) -> None:
        slot = self.slots[chance.choice(self.running)]
        broker = f"broker-{chance.choice(sorted(self._cluster.brokers))}"
        if kind == CLOCK_STEPPED:
            self._disturb(broker, chance, off_seconds=chance.choice(_CLOCK_STEPS))
        elif kind in {SLOT_DISK_SLOW, BROKER_DISK_SLOW}:
            name = f"slot-{slot.number}" if kind == SLOT_DISK_SLOW else broker
            self._disturb(name, chance, disk_ms=chance.uniform(2.0, 100.0))
        elif kind == OUT_OF_MEMORY:
            run_out_of_memory(slot)
            slot.start()
        elif kind == BACK_OFF:
            slot.kill()
            let_pass(self._session_seconds * chance.uniform(1.5, 3.0))
            slot.start()
        else:
            self.without_descriptors.add(slot.number)
            soft, hard = resource.prlimit(slot.pid, resource.RLIMIT_NOFILE)
            used = len(list(Path(f"/proc/{slot.pid}/fd").iterdir()))
            resource.prlimit(slot.pid, resource.RLIMIT_NOFILE, (used, hard))
            let_pass(chance.uniform(1.0, 4.0))
            if slot.is_running:
                resource.prlimit(slot.pid, resource.RLIMIT_NOFILE, (soft, hard))

    def _disturb(self, name: str, chance: random.Random, *, off_seconds: int = 0, disk_ms: float = 0.0) -> None:
        self._disturbed[name].set(off_seconds=off_seconds, disk_ms=disk_ms)
        let_pass(chance.uniform(1.0, 8.0))
        self._disturbed[name].set()


def lose_tails(data: Path, chance: random.Random) -> None:
    """Cuts the end off the newest segment of each partition of a broker that is down, as a host that loses power may."""
    for folder in sorted(path for path in data.iterdir() if path.is_dir() and path.name != _FLUSHED):
        segments = sorted(folder.glob("*.log"))
        if segments:
            size = segments[-1].stat().st_size
            os.truncate(segments[-1], max(0, size - chance.randint(0, _TAIL_BYTES_MAX)))


def run_out_of_memory(slot: Slot) -> None:
    """The kernel kills the slot for want of memory; else it is killed: without control groups of memory, or if it needs none."""
    group = _MEMORY_GROUPS / f"playhead-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(_MEMORY_BYTES_MAX))
        (group / "cgroup.procs").write_text(str(slot.pid))
    except OSError:
        slot.kill()
        return
    try:
        slot.ended(_OUT_OF_MEMORY_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        # It makes do with the memory that it has.
        slot.kill()
    finally:
        # A group that holds nobody any more can be removed.
        group.rmdir()
