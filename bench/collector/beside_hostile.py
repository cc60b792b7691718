"""How long a good POST takes beside a thousand hostile ones a second from one address, on a collector's process.

`python -m bench.collector.beside_hostile [--seconds 10] [--rate 1000] [--realtime]`: starts a broker and a collector on loopback.
Players of one customer send real mux-embed events at a steady rate, first alone, then beside an attacker who sends every kind of
hostile body of `bench.collector.hostile` under another customer's key. A POST's time begins when it is due, whether or not it could
be sent. Checked: topic `beacons` holds every event of a good POST that was answered 200. `--realtime` keeps other processes of the
machine out of the figures; it needs root.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.collector.attacker import ADDRESS, CONNECTIONS, KEY
from bench.collector.client import cpu_seconds, requests, wait_for_port
from bench.collector.servers import ALL
from bench.collector.stored import keys_in
from bench.report.results import Compared, Part, keep, table
from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import Child
from deploy.topics import create_topics
from shared.settings import Settings
from shared.topics import BEACONS

GOOD_PER_SECOND: Final = 50
GOOD_CONNECTIONS: Final = 10
GOOD_CUSTOMER: Final = "good"
GOAL_MS: Final = 100.0
WARM_SECONDS: Final = 2.0
_ANSWER_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True)
class Phase:
    """The good POSTs of one phase: how long each took (ms), their statuses, and the collector's CPU time."""

    name: str
    seconds: float
    times_ms: list[float]
    statuses: Counter[str]
    cpu_seconds: float
    hostile: Counter[str]

    def percentile(self, share: float) -> float:
        return sorted(self.times_ms)[min(len(self.times_ms) - 1, int(len(self.times_ms) * share))]

    @property
    def row(self) -> str:
        hostile = {name: count for name, count in self.hostile.items() if name != "seconds"}
        answered = ", ".join(f"{count:,} × {name}" for name, count in sorted(hostile.items())) or "none"
        rate = sum(hostile.values()) / self.hostile["seconds"] if hostile else 0.0
        return (
            f"| {self.name} | {rate:,.0f} | {len(self.times_ms):,} | {self.statuses.total() - self.statuses['200']} |"
            f" {self.percentile(0.5):.1f} | {self.percentile(0.99):.1f} | {max(self.times_ms):.1f} |"
            f" {self.cpu_seconds / self.seconds:.2f} | {answered} |"
        )


def good_requests() -> list[bytes]:
    """Real mux-embed events, one a POST, from addresses of their own."""
    made = []
    for number, request in enumerate(requests(1)):
        head, _, body = request.partition(b"\r\n\r\n")
        document = json.loads(body)
        for event in document["events"]:
            event["ake"] = GOOD_CUSTOMER
        sent = json.dumps(document, separators=(",", ":")).encode()
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
        lines += [b"X-Forwarded-For: 198.51.100.%d" % (number % 200 + 1), b"Content-Length: %d" % len(sent)]
        made.append(b"\r\n".join(lines) + b"\r\n\r\n" + sent)
    return made


async def send_good(port: int, seconds: float) -> tuple[list[float], Counter[str]]:
    """How long each POST took (ms) from when it was due, and the answers' statuses."""
    made = good_requests()
    times_ms: list[float] = []
    statuses: Counter[str] = Counter()
    begun = time.perf_counter()
    due = iter(enumerate(begun + number / GOOD_PER_SECOND for number in range(int(seconds * GOOD_PER_SECOND))))

    async def player() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number, at in due:
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            writer.write(made[number % len(made)])
            answer = await reader.readuntil(b"\r\n\r\n")
            times_ms.append((time.perf_counter() - at) * 1e3)
            statuses[answer[9:12].decode()] += 1
        writer.close()
        await writer.wait_closed()

    async with asyncio.timeout(seconds + _ANSWER_SECONDS_MAX):
        await asyncio.gather(*(player() for _ in range(GOOD_CONNECTIONS)))
    return times_ms, statuses


def phase(name: str, child: Child, port: int, seconds: float, rate: float) -> Phase:
    """Good POSTs for so many seconds, beside so many hostile ones a second."""
    attacker = None
    if rate:
        command = [sys.executable, "-m", "bench.collector.attacker", f"{port}", f"{rate}", f"{seconds}"]
        attacker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert attacker.stdout is not None
        attacker.stdout.readline()
    before = cpu_seconds(child)
    times_ms, statuses = asyncio.run(send_good(port, seconds))
    used = cpu_seconds(child) - before
    hostile: Counter[str] = Counter()
    if attacker is not None:
        output, _ = attacker.communicate(timeout=seconds + _ANSWER_SECONDS_MAX)
        hostile = Counter(json.loads(output))
    return Phase(name, seconds, times_ms, statuses, used, hostile)


def part(phases: list[Phase], rate: float) -> Part:
    """The run, to be kept."""
    p99 = phases[-1].percentile(0.99)
    is_realtime = os.sched_getscheduler(0) == os.SCHED_RR
    head = (
        "| beside | hostile/s | good POSTs | not 200 | p50, ms | p99, ms | longest, ms | collector's CPU cores |"
        " answers to hostile POSTs |"
    )
    setting = (
        f"{GOOD_PER_SECOND} good POSTs a second of one real mux-embed event on {GOOD_CONNECTIONS} connections, from many addresses."
        f" The attacker sends from one address ({ADDRESS}) on {CONNECTIONS} connections under another customer's key: every kind"
        " of hostile body for every route, of 2 kB to 2 MiB unpacked. Broker, collector, attacker and players share two cores."
        " Limits are the defaults."
    )
    return Part(
        name="hostile",
        title="Collector: a good POST beside hostile ones",
        command="python -m bench.collector.beside_hostile" + (" --realtime" if is_realtime else ""),
        checked="every event of a good POST answered 200 is in topic `beacons`",
        compared=[
            Compared(
                f"p99 of a good POST beside {rate:,.0f} hostile POSTs a second from one address",
                f"{p99:.1f} ms",
                f"< {GOAL_MS:g} ms",
                p99 < GOAL_MS and phases[-1].statuses.keys() == {"200"},
            )
        ],
        lines=[setting, "", head, "|---|---|---|---|---|---|---|---|---|", *(each.row for each in phases)],
    )


def run(folder: Path, seconds: float, rate: float) -> int:
    """Prints the figures and keeps them; 1 when an event is missing."""
    customers = folder / "customers.toml"
    customers.write_text(f"[customers.{KEY}]\n\n[customers.{GOOD_CUSTOMER}]\n")
    with Broker(folder / "broker") as broker:
        create_topics(Settings(kafka_bootstrap=broker.bootstrap))
        port = free_port()
        server = ALL["full"]
        environ = server.environ(broker.bootstrap, port) | {
            "COLLECTOR_CUSTOMERS_FILE": str(customers),
            "COLLECTOR_TRUSTED_PROXIES": "127.0.0.0/8",
        }
        del environ["COLLECTOR_ADDRESS_REQUESTS_PER_SECOND"]
        child = Child("collector", server.command(), log_file=folder / "collector.log", env=environ)
        child.start()
        try:
            wait_for_port(child, port)
            phase("warm", child, port, WARM_SECONDS, 0)
            phases = [phase("nothing", child, port, seconds, 0), phase("an attacker", child, port, seconds, rate)]
        finally:
            child.stop(60)
        sent = int(WARM_SECONDS * GOOD_PER_SECOND) + sum(each.statuses["200"] for each in phases)
        stored = keys_in(broker.bootstrap, BEACONS.name, GOOD_CUSTOMER)
    print(f"events of good POSTs answered 200: {sent}, in Kafka: {stored}")
    if stored != sent:
        return 1
    result = part(phases, rate)
    keep(result)
    print("\n".join([*result.lines, "", *table([result])]))
    return 0


def main() -> int:
    """The benchmark's exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.collector.beside_hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase")
    parser.add_argument("--rate", type=float, default=1_000.0, help="hostile POSTs a second")
    parser.add_argument(
        "--realtime", action="store_true", help="as root: other processes of the machine wait meanwhile"
    )
    given = parser.parse_args()
    if given.realtime:
        # The broker, the collector and the attacker inherit it.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    with tempfile.TemporaryDirectory(prefix="bench-hostile-") as folder:
        return run(Path(folder), given.seconds, given.rate)


if __name__ == "__main__":
    sys.exit(main())
