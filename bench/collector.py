"""HTTP to Kafka: CPU a beacon of the collector beside a pass-through on the same server, checked for loss before told.

`python -m bench.collector [--seconds 0.5] [--connections 32] [--rounds 20]`: starts a broker and the servers on loopback,
sends real mux-embed events in batches of 1 and 20, and prints the CPU time of the server's process per beacon that was
answered 200. Rounds are short and alternate; the lowest of each is compared, since what else runs on the machine only adds.
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import Child
from deploy.topics import create_topics
from shared.settings import Settings
from shared.topics import BEACONS

FIXTURE: Final = Path(__file__).parents[1] / "tests" / "fixtures" / "mux-embed-ok.json"
SERVERS: Final = {"pass-through": "bench.pass_through", "full intake": "services.collector"}
#: Full intake to pass-through, CPU a beacon at 20 a POST.
GOAL: Final = 1.6
VIEWS: Final = 500
WARM_SECONDS: Final = 1.0
AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"


def requests(beacons: int) -> list[bytes]:
    """Whole HTTP requests of so many real events each, of many views."""
    posts = json.loads(FIXTURE.read_text())
    events = [event for post in posts for event in post["body"]["events"]]
    made = []
    for number in range(VIEWS):
        batch = [events[(number + n) % len(events)] | {"xid": f"view-{number}"} for n in range(beacons)]
        body = json.dumps({"metadata": posts[1]["body"]["metadata"], "events": batch}, separators=(",", ":")).encode()
        head = f"POST / HTTP/1.1\r\nHost: bench\r\nUser-Agent: {AGENT}\r\nContent-Type: text/plain\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        made.append(head.encode() + body)
    return made


async def send(port: int, made: list[bytes], connections: int, seconds: float) -> tuple[int, list[float]]:
    """How many requests were answered 200 within the time, and how long each took (s)."""
    latencies: list[float] = []
    deadline = time.monotonic() + seconds

    async def player(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < deadline:
            begun = time.perf_counter()
            writer.write(made[number % len(made)])
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            latencies.append(time.perf_counter() - begun)
            number += connections
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(player(number) for number in range(connections)))
    return len(latencies), sorted(latencies)


def cpu_seconds(child: Child) -> float:
    """The CPU time that the threads of a process have used, to the microsecond."""
    tasks = Path(f"/proc/{child.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def records_in_kafka(bootstrap: str) -> int:
    """How many records topic beacons holds."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    partitions = consumer.list_topics(BEACONS.name, timeout=30).topics[BEACONS.name].partitions
    count = 0
    for number in partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(BEACONS.name, number), timeout=30)
        count += high - low
    consumer.close()
    return count


def wait_for_port(child: Child, port: int) -> None:
    """Returns once something listens."""

    def listens() -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    child.wait_until(listens, 60, "listening")


def run(folder: Path, seconds: float, connections: int, rounds: int) -> int:
    """Prints the table; 1 when a beacon is missing or the full intake costs more than its goal."""
    with Broker(folder / "broker") as broker:
        create_topics(Settings(kafka_bootstrap=broker.bootstrap))
        ports = {name: free_port() for name in SERVERS}
        children = {}
        for name, module in SERVERS.items():
            env = {k: v for k, v in os.environ.items() if not k.startswith(("COLLECTOR_", "PLAYHEAD_"))} | {
                "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap,
                "COLLECTOR_HOST": "127.0.0.1",
                "COLLECTOR_PORT": str(ports[name]),
                "COLLECTOR_ADMIN_HOST": "127.0.0.1",
                "COLLECTOR_ADMIN_PORT": str(free_port()),
            }
            child = Child(name, [sys.executable, "-m", module], log_file=folder / f"{module}.log", env=env)
            child.start()
            children[name] = child
        try:
            for name, child in children.items():
                wait_for_port(child, ports[name])
            ratios, sent = measure(children, ports, seconds, connections, rounds)
            stored = records_in_kafka(broker.bootstrap)
        finally:
            for child in children.values():
                child.kill()
    print(f"answered 200: {sent} beacons; in Kafka: {stored}; missing: {max(0, sent - stored)}")
    return int(stored < sent or ratios[20] > GOAL)


def measure(
    children: dict[str, Child], ports: dict[str, int], seconds: float, connections: int, rounds: int
) -> tuple[dict[int, float], int]:
    """The ratio full intake to pass-through by batch size, and how many beacons were answered 200."""
    ratios: dict[int, float] = {}
    sent = 0
    for beacons in (1, 20):
        made = requests(beacons)
        costs: dict[str, list[float]] = {name: [] for name in children}
        latencies: dict[str, list[float]] = {name: [] for name in children}
        for name in children:
            warm, _ = asyncio.run(send(ports[name], made, connections, WARM_SECONDS))
            sent += warm * beacons
        for _ in range(rounds):
            for name, child in children.items():
                before = cpu_seconds(child)
                count, took = asyncio.run(send(ports[name], made, connections, seconds))
                costs[name].append((cpu_seconds(child) - before) / count * 1e6)
                latencies[name] += took
                sent += count * beacons
        for name in children:
            tell(name, beacons, sorted(costs[name]), sorted(latencies[name]), seconds * rounds)
        ratios[beacons] = min(costs["full intake"]) / min(costs["pass-through"])
        print(f"{beacons:2} a POST  full intake / pass-through: {ratios[beacons]:.2f} (goal at 20: {GOAL})", flush=True)
    return ratios, sent


def tell(name: str, beacons: int, costs: list[float], latencies: list[float], seconds: float) -> None:
    """Prints what the rounds of one server cost (us CPU a request, sorted) and took (s a request, sorted)."""
    p50, p99 = latencies[len(latencies) // 2] * 1e3, latencies[len(latencies) * 99 // 100] * 1e3
    print(
        f"{beacons:2} a POST  {name:12}  us CPU/request: lowest {costs[0]:.1f}, median {costs[len(costs) // 2]:.1f};"
        f" lowest {costs[0] / beacons:.2f}/beacon  {len(latencies) / seconds:.0f} req/s  p50 {p50:.1f} ms  p99 {p99:.1f} ms"
    )


def main() -> int:
    """The benchmark's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one round")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return run(Path(folder), given.seconds, given.connections, given.rounds)


if __name__ == "__main__":
    sys.exit(main())
