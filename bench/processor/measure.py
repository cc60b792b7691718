"""Watches a system drain the topic: CPU of its process and of the broker by the offsets it has committed; memory; changelog."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.processor.check import Checked
from deploy.local.broker import Broker
from deploy.local.process import Child, ProcessDied

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
_SAMPLE_SECONDS: Final = 0.25
#: Which part of the topic counts, as fractions: by then a JVM is warm, and the views in flight are not getting fewer yet.
_COUNTED: Final = (0.5, 0.9)
_ANSWER_SECONDS_MAX: Final = 10.0


@dataclass(frozen=True)
class Sample:
    """What was used up to a moment. CPU in seconds, memory in bytes, time monotonic seconds."""

    at: float
    committed: int
    cpu_seconds: float
    broker_cpu_seconds: float
    rss_bytes: int


@dataclass(frozen=True)
class Drained:
    """What the part of the topic that counts took."""

    beacons: int
    seconds: float
    cpu_seconds: float
    broker_cpu_seconds: float
    rss_bytes_max: int

    @property
    def beacons_a_cpu_second(self) -> float:
        return self.beacons / self.cpu_seconds

    @property
    def broker_us_a_beacon(self) -> float:
        return self.broker_cpu_seconds / self.beacons * 1e6


@dataclass(frozen=True)
class Figures:
    """One run of one system."""

    drained: Drained
    checked: Checked
    #: How long each commit of the second half took, in order of size.
    commits_ms: list[float]
    changelog_bytes_a_beacon: float
    changelog_records_a_beacon: float

    def commit_ms(self, share: float) -> float:
        """The time within which this share of the commits ended."""
        return self.commits_ms[int(len(self.commits_ms) * share)]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads and the children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(int(field) for field in fields[11:15]) / _TICKS_A_SECOND
    return own + _of_children(pid, cpu_seconds)


def _of_children(pid: int, figure: Callable[[int], float]) -> float:
    """The sum over the children; none of one that ends while it is looked at, as a JVM's shell commands do."""
    total = 0.0
    for child in _children(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += figure(child)
    return total


def _children(pid: int) -> Iterable[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end while it is looked at.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield from (int(child) for child in (task / "children").read_text().split())


def rss_bytes(pid: int) -> int:
    """Resident memory of a process and its children."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") + int(_of_children(pid, rss_bytes))


def watch(child: Child, broker: Broker, group: str, ends: dict[int, int], seconds_max: float) -> Drained:
    """Returns when the group has committed the whole topic `beacons`, whose partitions end at `ends`.

    Raises `ProcessDied` when the system ends before, `TimeoutError` after `seconds_max`.
    """
    # It asks for the group's offsets and does not join.
    asker = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False})
    assert child.pid is not None
    assert broker.child.pid is not None
    total = sum(ends.values())
    deadline = time.monotonic() + seconds_max
    samples: list[Sample] = []
    while not samples or samples[-1].committed < total:
        if not child.is_running:
            raise ProcessDied(child.obituary())
        if time.monotonic() > deadline:
            raise TimeoutError(f"{group}: {samples[-1].committed} of {total} beacons after {seconds_max} s")
        committed = max(_committed(asker, ends), samples[-1].committed if samples else 0)
        now = time.monotonic()
        used = Sample(now, committed, cpu_seconds(child.pid), cpu_seconds(broker.child.pid), rss_bytes(child.pid))
        samples.append(used)
        time.sleep(_SAMPLE_SECONDS)
    asker.close()
    return _counted(samples, total)


def _counted(samples: list[Sample], total: int) -> Drained:
    """From the first sample in the part that counts to the last."""
    begin, end = _COUNTED
    first = next(sample for sample in samples if sample.committed >= total * begin)
    inside = [sample for sample in samples if first.committed < sample.committed <= total * end]
    if not inside:
        raise ValueError("the topic was drained too soon to be measured: give more views")
    last = inside[-1]
    return Drained(
        beacons=last.committed - first.committed,
        seconds=last.at - first.at,
        cpu_seconds=last.cpu_seconds - first.cpu_seconds,
        broker_cpu_seconds=last.broker_cpu_seconds - first.broker_cpu_seconds,
        rss_bytes_max=max(sample.rss_bytes for sample in samples),
    )


def _committed(asker: Consumer, ends: dict[int, int]) -> int:
    partitions = [TopicPartition("beacons", partition) for partition in ends]
    try:
        answer = asker.committed(partitions, timeout=_ANSWER_SECONDS_MAX)
    except KafkaException:
        # A commit is under way, or the coordinator is not there yet.
        return 0
    return sum(min(ends[at.partition], max(0, at.offset)) for at in answer)


def topic_bytes(broker_data: Path, topic: str) -> int:
    """What a topic takes on the broker's disk: compressed, as it was sent. Compaction is off for the time of the benchmark."""
    return sum(file.stat().st_size for folder in broker_data.glob(f"{topic}-*") for file in folder.glob("*.log"))
