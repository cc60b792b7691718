"""HTTP to Kafka: the cost of a request and of a beacon in the collector, compared with plain servers in Go and Rust.

`python -m bench.collector [--seconds 0.5] [--rounds 6] [--only NAME ...]`: starts a broker and the servers on loopback, sends real
mux-embed events, 1 and 20 a POST, on 64 and on 512 connections, and reports the CPU time of each server's process for the events
answered 200. Rounds are short and alternate; the lowest of each is compared, since other load on the machine only adds. Checked
first: each server's topic holds exactly the events that were answered 200.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.collector.client import cpu_seconds, requests, send, wait_for_port
from bench.collector.figures import Measured, part, summary
from bench.collector.servers import ALL, Server
from bench.collector.stored import create, records_in
from bench.peers.setup import PeerMissing
from bench.report.results import keep, table
from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import Child
from deploy.topics import create_topics
from shared.settings import Settings

BATCHES: Final = (1, 20)
CONNECTIONS: Final = (64, 512)
WARM_SECONDS: Final = 1.0


class Running:
    """One server's process."""

    def __init__(self, server: Server, name: str, bootstrap: str, folder: Path) -> None:
        self.server = server
        self.port = free_port()
        self.answered = 0
        self.child = Child(
            name, server.command(), log_file=folder / f"{name}.log", env=server.environ(bootstrap, self.port)
        )

    def load(self, made: list[bytes], beacons: int, connections: int, seconds: float) -> tuple[int, float, list[float]]:
        """How many requests were answered, CPU seconds, and how long each took (s)."""
        before = cpu_seconds(self.child)
        count, took = asyncio.run(send(self.port, made, connections, seconds))
        self.answered += count * beacons
        return count, cpu_seconds(self.child) - before, took


def measure(running: dict[str, Running], seconds: float, rounds: int) -> list[Measured]:
    """Every server under every load, in turn."""
    found: list[Measured] = []
    for beacons in BATCHES:
        made = requests(beacons)
        for connections in CONNECTIONS:
            at = {name: Measured(name, beacons, connections) for name in running}
            for each in running.values():
                each.load(made, beacons, connections, WARM_SECONDS)
            for _ in range(rounds):
                for name, each in running.items():
                    at[name].add(*each.load(made, beacons, connections, seconds), seconds)
            for figures in at.values():
                print(summary(figures), flush=True)
            found += at.values()
    return found


def run(folder: Path, names: list[str], seconds: float, rounds: int) -> int:
    """Prints the figures and keeps them; 1 when an event is missing or doubled."""
    with Broker(folder / "broker") as broker:
        create_topics(Settings(kafka_bootstrap=broker.bootstrap))
        create(broker.bootstrap, {ALL[name].topic for name in names})
        running = {name: Running(ALL[name], name, broker.bootstrap, folder) for name in names}
        try:
            for each in running.values():
                each.child.start()
            for each in running.values():
                wait_for_port(each.child, each.port)
            found = measure(running, seconds, rounds)
            wrong = {
                name: records_in(broker.bootstrap, each.server.topic) - each.answered for name, each in running.items()
            }
        finally:
            for each in running.values():
                each.child.stop(30)
    print("events in Kafka less those answered 200:", ", ".join(f"{name} {count}" for name, count in wrong.items()))
    if any(wrong.values()):
        return 1
    result = part(found)
    keep(result)
    print("\n".join(table([result])))
    return 0


def main() -> int:
    """The benchmark's exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.collector", description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one round")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", nargs="+", choices=[*ALL], default=[*ALL], metavar="NAME", help=", ".join(ALL))
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="bench-collector-") as folder:
            return run(Path(folder), given.only, given.seconds, given.rounds)
    except PeerMissing as missing:
        print(missing, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
