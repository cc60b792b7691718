"""Session recordings in MB/s: into Kafka through the collector, and out of it into objects: `python -m bench.recordings [--mb N]`.

Beside it the broker's own limit: a bare producer, acks from all, that sends as many bytes in records of the same size from one
process. Checked before any figure: every payload is an object of its size and SHA-256.
"""

import argparse
import asyncio
import hashlib
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
from confluent_kafka import Producer

from bench.collector.client import cpu_seconds
from bench.report.results import Compared, Part, against, keep, table
from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import Child, ProcessDied, wait_until
from deploy.local.supervisor import environment, is_ready
from deploy.topics import create_topics
from services.processor.applications.recordings.app import object_name
from shared import topics
from shared.chunks import CHUNK_BYTES_MAX
from shared.settings import Settings

PARTITIONS: Final = topics.RECORDINGS.partitions(topics.PROFILES["laptop"])
CUSTOMER: Final = "bench"
#: Uploads at a time, each of a session of its own.
UPLOADS: Final = 8
#: How near the broker's own limit the collector is to come with large payloads.
NEAR: Final = 0.5
READY_SECONDS_MAX: Final = 60.0
DRAIN_SECONDS_MAX: Final = 900.0
_MB: Final = 1_000_000


class Load(NamedTuple):
    """Payloads of one size."""

    title: str
    size_bytes: int
    payloads: int

    @property
    def mb(self) -> float:
        """Megabytes of all of them."""
        return self.size_bytes * self.payloads / _MB


class Timed(NamedTuple):
    """What something took."""

    seconds: float
    cpu_seconds: float


def main() -> int:
    """1 when a payload is missing or has other bytes."""
    parser = argparse.ArgumentParser(prog="python -m bench.recordings", description=__doc__)
    parser.add_argument("--mb", type=int, default=400, help="of each size")
    given = parser.parse_args()
    loads = [
        Load("100 MB", 100 * _MB, max(1, given.mb // 100)),
        Load("1 MB", _MB, given.mb),
        Load("100 KB", 100_000, given.mb * 2),
    ]
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="recordings")))
        broker = ending.enter_context(Broker(folder / "broker"))
        create_topics(Settings(kafka_bootstrap=broker.bootstrap))
        limit = _bare_producer(broker, given.mb)
        print(f"bare producer: {limit:.0f} MB/s", flush=True)
        collector = _collector(broker, folder, ending)
        received = {load.title: _post(collector, load) for load in loads}
        slot, objects = _slot(broker, folder, ending)
        stored = _drain(slot, objects, loads)
        wrong = _wrong(objects, loads)
        if wrong:
            print(f"{len(wrong)} payloads are missing or have other bytes: {wrong[:5]}", file=sys.stderr)
            return 1
    result = _part(limit, loads, received, stored)
    keep(result)
    print("\n".join([*table([result]), *result.lines]))
    return 0


def _part(limit: float, loads: list[Load], received: dict[str, Timed], stored: Timed) -> Part:
    speeds = {load.title: load.mb / received[load.title].seconds for load in loads}
    total = sum(load.mb for load in loads)
    rows = [
        f"| {load.title} | {load.payloads:,} | {speeds[load.title]:.0f} | {speeds[load.title] / limit:.2f}× |"
        f" {received[load.title].cpu_seconds / load.mb * 1000:.1f} |"
        for load in loads
    ]
    return Part(
        name="recordings",
        title="Session recordings: MB/s beside the broker's own limit",
        command="python -m bench.recordings",
        checked="every payload an object of its own bytes",
        compared=[
            against("collector, payloads of 100 MB, to a bare producer", speeds["100 MB"] / limit, NEAR),
            Compared("processor, from topic to objects", f"{total / stored.seconds:.0f} MB/s"),
        ],
        lines=[
            (
                f"A bare producer from one process: {limit:.0f} MB/s in records of 1 MB. {UPLOADS} uploads at a time; the client"
                " makes and sends the bytes on the same two cores as collector and broker."
            ),
            "",
            "| payload | payloads | MB/s | to the bare producer | collector, CPU-seconds a GB |",
            "|---|---|---|---|---|",
            *rows,
            "",
            (
                f"One slot then read {total:,.0f} MB twice (once past the fold, once for the object), verified them and stored"
                f" and synced them as files in {stored.seconds:.0f} s: {total / stored.seconds:.0f} MB/s,"
                f" {stored.cpu_seconds / total * 1000:.1f} CPU-seconds a GB."
            ),
        ],
    )


def _bare_producer(broker: Broker, mb: int) -> float:
    """MB/s of records as large as chunks, into a topic without readers."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "message.max.bytes": CHUNK_BYTES_MAX + 100_000,
            "queue.buffering.max.kbytes": 64 * 1024,
        }
    )
    value = random.Random(1).randbytes(CHUNK_BYTES_MAX)
    failed: list[object] = []
    begun = time.monotonic()
    for number in range(mb):
        while True:
            try:
                producer.produce(
                    topics.LATE.name,
                    value,
                    partition=number % PARTITIONS,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    producer.flush(DRAIN_SECONDS_MAX)
    if failed:
        raise RuntimeError(f"the bare producer failed: {failed[0]}")
    return mb / (time.monotonic() - begun)


def _collector(broker: Broker, folder: Path, ending: ExitStack) -> tuple[Child, int]:
    port, admin_port = free_port(), free_port()
    child = Child(
        "collector",
        [sys.executable, "-m", "services.collector"],
        log_file=folder / "collector.log",
        env=environment(
            {
                "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap,
                "COLLECTOR_HOST": "127.0.0.1",
                "COLLECTOR_PORT": str(port),
                "COLLECTOR_ADMIN_PORT": str(admin_port),
            }
        ),
    )
    child.start()
    ending.callback(child.kill)
    wait_until(lambda: is_ready(admin_port), READY_SECONDS_MAX, "the collector is ready")
    return child, port


def _slot(broker: Broker, folder: Path, ending: ExitStack) -> tuple[Child, Path]:
    objects = folder / "objects"
    child = Child(
        "slot",
        [sys.executable, "-m", "services.processor"],
        log_file=folder / "slot.log",
        env=environment(
            {
                "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap,
                "PROCESSOR_APPLICATION": "recordings",
                "PROCESSOR_OBJECTS": str(objects),
                "PROCESSOR_STATE_DIR": str(folder / "state"),
                "PROCESSOR_ADMIN_PORT": str(free_port()),
            }
        ),
    )
    ending.callback(child.kill)
    return child, objects


def _content(load: Load, number: int) -> bytes:
    """A payload's bytes: one repeated block, which costs the client little, with a different beginning for each payload."""
    block = random.Random(load.size_bytes).randbytes(100_000)
    head = f"{load.title} {number} ".encode()
    return (head + block * (load.size_bytes // len(block) + 1))[: load.size_bytes]


def _session(load: Load, number: int) -> str:
    return f"{load.size_bytes}-{number % (4 * UPLOADS)}"


def _post(collector: tuple[Child, int], load: Load) -> Timed:
    child, port = collector

    async def post_all() -> None:
        numbers = iter(range(load.payloads))
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {CUSTOMER}"}) as client:

            async def worker() -> None:
                for number in numbers:
                    sequence = number // (4 * UPLOADS)
                    url = f"http://127.0.0.1:{port}/recordings/{_session(load, number)}?sequence={sequence}"
                    async with client.post(url, data=_pieces(_content(load, number))) as answer:
                        if answer.status != 200:
                            raise RuntimeError(f"{answer.status}: {await answer.text()}")

            await asyncio.gather(*(worker() for _ in range(UPLOADS)))

    return _timed(child, lambda: asyncio.run(post_all()))


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    view = memoryview(content)
    for start in range(0, len(content), 256 * 1024):
        yield bytes(view[start : start + 256 * 1024])


def _drain(slot: Child, objects: Path, loads: list[Load]) -> Timed:
    wanted = sum(load.payloads for load in loads)

    def all_are_there() -> bool:
        if not slot.is_running:
            raise ProcessDied(slot.obituary())
        return sum(1 for path in objects.rglob("*") if path.is_file() and "#" not in path.name) == wanted

    def drain() -> None:
        slot.start()
        # Seldom: looking costs too, on the same two cores.
        wait_until(all_are_there, DRAIN_SECONDS_MAX, "every payload is an object", every=0.5)

    return _timed(slot, drain)


def _wrong(objects: Path, loads: list[Load]) -> list[str]:
    wrong = []
    for load in loads:
        for number in range(load.payloads):
            sha256 = hashlib.sha256(_content(load, number)).digest()
            name = object_name(CUSTOMER, _session(load, number), number // (4 * UPLOADS), sha256)
            if not (objects / name).exists() or hashlib.sha256((objects / name).read_bytes()).digest() != sha256:
                wrong.append(name)
    return wrong


def _timed(child: Child, work: Callable[[], None]) -> Timed:
    begun, cpu = time.monotonic(), cpu_seconds(child) if child.is_running else 0.0
    work()
    return Timed(time.monotonic() - begun, cpu_seconds(child) - cpu)


if __name__ == "__main__":
    sys.exit(main())
