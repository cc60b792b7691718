"""The measurements of each server under each load, as lines of output, and their comparison."""

import os
import statistics
from dataclasses import dataclass, field
from typing import Final

from bench.collector.servers import ALL, COMPILED_DIR, LINGER_MS
from bench.report.results import Compared, Part, against

_IS_COMPILED: Final = COMPILED_DIR in os.environ
_BUILD: Final = "compiled" if _IS_COMPILED else "interpreted"
COMMAND: Final = f"{f'{COMPILED_DIR}=.local/compiled ' if _IS_COMPILED else ''}python -m bench.collector"
#: (what, ours, theirs, beacons a POST, the most that ours may cost of theirs), CPU a request.
GOALS: Final = (
    ("full intake to pass-through", "full", "pass-through", 20, 1.6),
    ("pass-through to Go", "pass-through", "go", 20, 1.0),
    ("pass-through to Rust", "pass-through", "rust", 20, 2.5),
    ("pass-through to Go", "pass-through", "go", 1, 1.5),
    ("full intake to Go", "full", "go", 20, 1.0),
    ("full intake to Rust", "full", "rust", 20, 2.5),
    ("full intake to Go", "full", "go", 1, 1.5),
)


@dataclass
class Measured:
    """One server under one load. `costs`: CPU µs a request of each round; `latencies`: s a request."""

    name: str
    beacons: int
    connections: int
    costs: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, count: int, cpu_seconds: float, took: list[float], seconds: float) -> None:
        """Takes a round in."""
        self.costs.append(cpu_seconds / count * 1e6)
        self.latencies += took
        self.seconds += seconds

    def latency_ms(self, share: float) -> float:
        """The time within which this share of the requests was answered."""
        return sorted(self.latencies)[int(len(self.latencies) * share)] * 1e3

    @property
    def cells(self) -> list[str]:
        """Load, CPU a request and a beacon, requests a second, latency."""
        lowest, median = min(self.costs), statistics.median(self.costs)
        return [
            f"{self.beacons}",
            f"{self.connections}",
            f"{lowest:.1f} / {median:.1f}",
            f"{lowest / self.beacons:.2f}",
            f"{len(self.latencies) / self.seconds:,.0f}",
            f"{self.latency_ms(0.5):.1f} / {self.latency_ms(0.99):.1f}",
        ]


def summary(figures: Measured) -> str:
    """One line of the run."""
    beacons, connections, request, beacon, rate, latency = figures.cells
    return (
        f"{beacons:>2} a POST, {connections:>3} connections  {figures.name:12}  CPU us a request, lowest / median {request}"
        f"  a beacon {beacon}  {rate} requests/s  p50 / p99 {latency} ms"
    )


def compared(found: list[Measured]) -> list[Compared]:
    """Ratios of the lowest costs, at each number of connections."""
    costs = {(each.name, each.beacons, each.connections): min(each.costs) for each in found}
    ratios = []
    for what, ours, theirs, beacons, goal in GOALS:
        for connections in sorted({each.connections for each in found}):
            one, other = (ours, beacons, connections), (theirs, beacons, connections)
            if one in costs and other in costs:
                name = f"CPU a beacon, {beacons} a POST, {connections} connections: {what}"
                ratios.append(against(name, costs[one] / costs[other], goal, at_most=True))
    return ratios


def part(found: list[Measured]) -> Part:
    """The run, to be kept."""
    head = "| server | beacons a POST | connections | CPU µs a request, lowest / median | a beacon | requests/s | p50 / p99, ms |"
    rows = [f"| {ALL[each.name].title} | {' | '.join(each.cells)} |" for each in found]
    settings = (
        "Real mux-embed events (text/plain, about 1 kB each) from a client on the same two cores, so requests a second and"
        " latency include the client; CPU is that of the server's process. All servers: one thread, acks=all, lz4,"
        f" {LINGER_MS} ms of linger, 200 after the acks. The peers read each event's key and produce the event as it came, as the"
        " pass-through does; the full intake decodes, checks and writes canonical beacons, with its modules"
        f" {_BUILD}. Karapace is not on PyPI: not compared."
    )
    return Part(
        name="collector",
        title="Collector: what a request costs",
        command=COMMAND,
        checked="events in Kafka are exactly those answered 200: 0 missing, 0 doubled",
        compared=compared(found),
        lines=[settings, "", head, "|---|---|---|---|---|---|---|", *rows],
    )
