"""How long suspects take on millions of views: `python -m bench.suspects.latency [--views N] [--rounds N]`.

The service's own code answers in this process, without HTTP, from a Delta table on the local disk, as in `bench.query`. Each
question reads all views: the last days beside all days before, or beside nothing.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

from bench.query.__main__ import NothingHot
from bench.query.inputs import DAYS, FIRST_DAY, generate
from bench.report.results import HOME, Compared, Part, keep, table
from deploy.demo.comparing.compare import nearest_rank
from services.query.answering import Answering
from services.query.core.calendar import DAY_MS
from services.query.core.customers import EVERY_CUSTOMER
from services.query.core.suspects.question import AskedSuspects, understood
from services.query.memory import Memory
from services.query.rim.columns import Columns
from services.query.rim.engine import Engine
from services.query.rim.warehouse import ViewsTable
from services.query.settings import QuerySettings
from services.query.suspecting import Suspecting

THREADS: Final = 2
GOAL_MS: Final = 1_000
#: The last two by a threshold, which the usual views say.
METRICS: Final = ("playback_failure_fraction", "rebuffer_fraction", "startup_ms", "bitrate_bps")
#: Those for which nothing is known of before.
BESIDE_REST: Final = ("playback_failure_fraction", "startup_ms")
_FIRST_MS: Final = FIRST_DAY * DAY_MS
_LAST_MS: Final = _FIRST_MS + DAYS * DAY_MS


async def measure(suspecting: Suspecting, memory: Memory, rounds: int) -> dict[str, list[float]]:
    """The ms of each round by question. The first one reads files, and columns come into memory meanwhile."""
    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, asked in _questions(3 + number % 5):
            question = understood(asked, lambda _: EVERY_CUSTOMER, _LAST_MS)
            began = time.perf_counter()
            found = await suspecting.suspects(question)
            took_ms = 1_000 * (time.perf_counter() - began)
            times.setdefault(name, []).append(took_ms)
            await memory.read_all()
            print(f"{name}: {took_ms:.0f} ms, {found.read}, {len(found.suspects)} suspects")
    return times


def _questions(days: int) -> Iterator[tuple[str, AskedSuspects]]:
    """By name: the last days against those before, and all days but so many against nothing."""
    from_ms, to = _LAST_MS - days * DAY_MS, str(_LAST_MS)
    for metric in METRICS:
        known = AskedSuspects(
            metric=metric, from_=str(from_ms), to=to, baseline_from=str(_FIRST_MS), baseline_to=str(from_ms)
        )
        yield metric, known
    for metric in BESIDE_REST:
        alone = AskedSuspects(metric=metric, from_=str(_FIRST_MS + days * DAY_MS), to=to, against="rest")
        yield f"{metric}, against the rest", alone


def main() -> int:
    """0 when every question was answered."""
    parser = argparse.ArgumentParser(prog="python -m bench.suspects.latency", description=__doc__)
    parser.add_argument("--views", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    folder = HOME / "query"
    generate(folder, given.views)
    engine = Engine(folder, threads=THREADS, memory_bytes_max=1 << 30, questions_max=4)
    nothing: Any = NothingHot()
    memory = Memory(Columns(QuerySettings.model_fields["columns_bytes_max"].default), engine)
    answering = Answering(ViewsTable(folder), nothing, engine, rows_max=10**10, answers_bytes_max=0, memory=memory)
    try:
        times = asyncio.run(measure(Suspecting(answering), memory, given.rounds))
    finally:
        memory.close()
        engine.close()
    lines = ["| suspects by | first, from files | p50 | slowest |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {first:.0f} ms | {_rank(later, 0.5):.0f} ms | {max(later):.0f} ms |"
        for name, (first, *later) in times.items()
    ]
    slowest = max(_rank(later, 0.5) for _, *later in times.values())
    part = Part(
        name="suspects-latency",
        title="Suspects over a warehouse",
        command=f"python -m bench.suspects.latency --views {given.views} --rounds {given.rounds}",
        checked="nothing",
        compared=[
            Compared(
                f"suspects over {given.views:,} views, p50 of the slowest metric",
                f"{slowest:.0f} ms",
                f"≤ {GOAL_MS:,} ms",
                slowest <= GOAL_MS,
            )
        ],
        lines=[
            (
                f"{given.views:,} views of {DAYS} days, all of them read by each question; default dimensions, {THREADS} threads."
                " Later rounds read columns in memory."
            ),
            "",
            *lines,
        ],
    )
    keep(part)
    print("\n".join([*table([part]), "", *part.lines]))
    return 0


def _rank(values: list[float], rank: float) -> float:
    return float(nearest_rank(values, rank) or 0)


if __name__ == "__main__":
    raise SystemExit(main())
