"""Slots by the dozen, and what they and the broker use."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import wait_until
from shared import topics

_READY_SECONDS_MAX = 300.0
#: Asking every slot costs it CPU.
_LOOK_SECONDS = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")

#: By thread id: nanoseconds on a core, and of waiting for one.
Schedule = dict[str, tuple[int, int]]


class Used(NamedTuple):
    """By the second, over a while: CPU of the broker and of all slots together (cores), heartbeats and commits.

    `waited` is the share of the time in which a slot's thread wanted a core and had none.
    """

    broker: float
    slots: float
    heartbeats: float
    commits: float
    waited: float


class Fleet:
    """Slots of one broker. All have the settings in `environ`."""

    def __init__(self, broker: Broker, folder: Path, partitions: int, environ: Mapping[str, str]) -> None:
        self._broker = broker
        self._folder = folder
        self._partitions = partitions
        self._environ = environ
        self._hosts: list[subprocess.Popen[str]] = []
        self.pids: list[int] = []
        self._ports: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts:
            host.terminate()
        for host in self._hosts:
            try:
                host.wait(60)
            except subprocess.TimeoutExpired:
                host.kill()
        for pid in self.pids:
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, 9)

    def add(self, count: int) -> float:
        """Starts more slots; the seconds until all slots work all partitions."""
        first = len(self.pids)
        ports = [free_port() for _ in range(2 * count)]
        argv = [sys.executable, "-m", "bench.scale.host", str(self._partitions), str(self._folder), str(first)]
        host = subprocess.Popen(
            [*argv, *map(str, ports)],
            env={**os.environ, **self._environ, "PLAYHEAD_KAFKA_BOOTSTRAP": self._broker.bootstrap},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert host.stdout is not None
        self._hosts.append(host)
        self.pids += map(int, host.stdout.readline().split())
        began = time.monotonic()
        self._ports += ports[::2]
        wait_until(
            self.is_whole,
            _READY_SECONDS_MAX,
            f"{len(self.pids)} slots work {self._partitions} partitions",
            every=_LOOK_SECONDS,
        )
        return time.monotonic() - began

    def is_whole(self) -> bool:
        """Whether every slot is ready and all partitions are worked."""
        with ThreadPoolExecutor(16) as threads:
            numbers = list(threads.map(_working, self._ports))
        return None not in numbers and sum(number or 0 for number in numbers) == self._partitions

    def used(self, seconds: float) -> Used:
        """What is used in the next seconds. Commits are asked for outside of them: the answers cost the slots CPU."""
        commits, asked = self.commits(), time.monotonic()
        waited_before = self._ran_and_waited()
        before, began = self._cpu_and_beats(), time.monotonic()
        time.sleep(seconds)
        after, ended = self._cpu_and_beats(), time.monotonic()
        ran, waited = spent(waited_before, self._ran_and_waited())
        broker, slots, beats = ((last - first) / (ended - began) for first, last in zip(before, after, strict=True))
        commits_a_second = (self.commits() - commits) / (time.monotonic() - asked)
        return Used(broker, slots, beats, commits_a_second, waited / max(1, ran + waited))

    def _ran_and_waited(self) -> Schedule:
        """The schedule of the present threads of all slots."""
        return {thread: times for pid in self.pids for thread, times in _schedule(pid)}

    def _cpu_and_beats(self) -> tuple[float, float, float]:
        broker, slots = _cpu_seconds(self._broker.child.pid or 0), sum(map(_cpu_seconds, self.pids))
        return broker, slots, end_of(self._broker, topics.PRESENCE.name, 0)

    def commits(self) -> float:
        """The commits of all slots since their starts."""
        with ThreadPoolExecutor(16) as threads:
            return sum(threads.map(_commits, self._ports))

    def pss_mib(self) -> float:
        """The memory of a slot, its share of shared pages included, MiB."""
        return sum(_pss_kib(pid) for pid in self.pids) / 1024 / len(self.pids)

    def connections(self) -> int:
        """The broker's connections."""
        port = f":{self._broker.port:04X}"
        found = 0
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                found += fields[1].endswith(port) and fields[3] == "01"
        return found


def cores_of(broker: Broker, seconds: float) -> float:
    """The broker's CPU in the next seconds, cores."""
    before, began = _cpu_seconds(broker.child.pid or 0), time.monotonic()
    time.sleep(seconds)
    return (_cpu_seconds(broker.child.pid or 0) - before) / (time.monotonic() - began)


def end_of(broker: Broker, topic: str, partition: int) -> int:
    """The end of a partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "scale"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
    finally:
        consumer.close()


def _get(port: int, path: str) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def _working(port: int) -> int | None:
    """How many partitions the slot works; None while it is not ready."""
    said = _get(port, "/readyz")
    words = (said or "").split("working ")
    return int(words[1].split()[0]) if len(words) > 1 else None


def _commits(port: int) -> float:
    lines = (_get(port, "/metrics") or "").splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("playhead_processor_commits_total"))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def spent(before: Schedule, after: Schedule) -> tuple[int, int]:
    """Nanoseconds on a core and of waiting for one, of all threads that are there after: one that has ended is left out."""
    found = [
        (times[0] - known[0], times[1] - known[1])
        for thread, times in after.items()
        for known in (before.get(thread, (0, 0)),)
    ]
    return sum(one[0] for one in found), sum(one[1] for one in found)


def _schedule(pid: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """By thread, ns on a core and ns of waiting for one (https://docs.kernel.org/scheduler/sched-stats.html)."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            ran, waited, _ = (thread / "schedstat").read_text(encoding="ascii").split()
        except FileNotFoundError:
            continue
        yield thread.name, (int(ran), int(waited))


def _pss_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
