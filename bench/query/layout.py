"""What files save that hold few customers each: `python -m bench.query.layout [--views N] [--rounds N]`.

One day's views in two tables of as many files: in the order in which they landed, and sorted by customer and hour. The service's
own code answers each customer's question from files, with nothing in memory. Checked: both tables give the same answers. The
finalizer's maintenance orders a day by both columns too (`ZORDER BY`), but leaves a day of less than some 2 GB in one file.
"""

import argparse
import asyncio
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Final

from bench.query.__main__ import NothingHot
from bench.query.inputs import CUSTOMERS, DAY_MS, FIRST_DAY, LANDED, SORTED, append, rows_of
from bench.report.results import HOME, Compared, Part, keep, table
from deploy.demo.comparing.compare import nearest_rank
from services.query.answering import Answering
from services.query.core.answer import Breakdown
from services.query.core.customers import Customers
from services.query.core.question import AskedBreakdown, understood
from services.query.rim.engine import Engine
from services.query.rim.warehouse import ViewsTable

FILES: Final = 12
_THREADS: Final = 2
_FIRST_MS: Final = FIRST_DAY * DAY_MS


def main() -> int:
    """0 when both tables gave the same answers."""
    parser = argparse.ArgumentParser(prog="python -m bench.query.layout", description=__doc__)
    parser.add_argument("--views", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    folder = HOME / "layout"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        seconds = asyncio.run(_measure(folder, given))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if seconds is None:
        return 1
    result = _part(seconds, given)
    keep(result)
    print("\n".join([*table([result]), "", *result.lines]))
    return 0


async def _measure(folder: Path, given: argparse.Namespace) -> dict[str, list[float]] | None:
    """The ms and CPU ms of each question by order; None where answers differ."""
    engine = Engine(folder, threads=_THREADS, memory_bytes_max=4 << 30, questions_max=1)
    nothing: Any = NothingHot()
    asked_by = {}
    for order in (LANDED, SORTED):
        _write(folder / order / "views", given.views, order)
        asked_by[order] = Answering(ViewsTable(folder / order), nothing, engine, rows_max=10**10, answers_bytes_max=0)
    found: dict[str, list[float]] = {order: [] for order in asked_by}
    try:
        for number in range(given.rounds + 1):
            for customer in range(CUSTOMERS):
                answers = {}
                for order, answering in asked_by.items():
                    began = time.process_time()
                    answers[order] = await _asked(answering, f"customer_{customer:02}", number)
                    if number:
                        found[order].append(1_000 * (time.process_time() - began))
                if answers[LANDED] != answers[SORTED]:
                    print(f"customer {customer}: answers differ", file=sys.stderr)
                    return None
    finally:
        engine.close()
    return found


def _write(place: Path, views: int, order: str) -> None:
    rows = rows_of(0, 0, views, order)
    a_file = -(-rows.num_rows // FILES)
    for number in range(FILES):
        append(place, rows.slice(number * a_file, a_file))


async def _asked(answering: Answering, customer: str, number: int) -> list[Any]:
    # Rounds differ by an hour of the range: no two ask the same.
    asked = AskedBreakdown(
        by="cdn,country",
        metrics="views,rebuffer_fraction,startup_ms_p95",
        from_=str(_FIRST_MS + number % 12 * 3_600_000),
        to=str(_FIRST_MS + DAY_MS),
        limit=50,
    )
    question = understood(asked, lambda _: Customers((customer,)), _FIRST_MS + DAY_MS)
    answer = await answering.answer(question, way="views")
    assert isinstance(answer, Breakdown)
    return [(group.key, group.n, group.metrics) for group in answer.groups]


def _part(found: dict[str, list[float]], given: argparse.Namespace) -> Part:
    p50 = {order: float(nearest_rank(ms, 0.5) or 0) for order, ms in found.items()}
    times = p50[LANDED] / p50[SORTED]
    return Part(
        name="layout",
        title="Files sorted by customer and hour",
        command=f"python -m bench.query.layout --views {given.views}",
        checked="both tables give the same answers",
        compared=[Compared("CPU of a customer's question, landed order to sorted", f"{times:.1f}×")],
        lines=[
            f"{given.views:,} views of a day in {FILES} files, {CUSTOMERS} customers, {given.rounds} rounds, from files.",
            "",
            "| order of rows | CPU of a question, p50 |",
            "|---|---|",
            f"| as they landed | {p50[LANDED]:.0f} ms |",
            f"| by customer and hour | {p50[SORTED]:.0f} ms |",
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
