"""Questions over millions of views: `python -m bench.query [--views N] [--rounds N] [--clickhouse] [--postgres]`.

The service's own code answers in this process, without HTTP, from a Delta table on the local disk; Postgres owns nothing. Every
question of every round is another one, so no answer is one of before. With `--clickhouse` the same questions go to chdb, in
turns, and answers must have as many groups or points.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bench.query.inputs import DAYS, generate
from bench.query.postgres import PostgresTable
from bench.query.questions import LAST_MS, Asked, all_questions
from bench.report.results import HOME, Compared, Part, keep, table
from deploy.demo.comparing.compare import nearest_rank
from services.query.answering import Answering
from services.query.core.answer import Answer, Breakdown, Timeseries
from services.query.core.customers import Customers
from services.query.core.question import Question, understood
from services.query.memory import Memory
from services.query.rim.columns import Columns
from services.query.rim.engine import CALLER, Engine
from services.query.rim.hot import HotRows
from services.query.rim.warehouse import ViewsTable

THREADS: Final = 2
AT_ONCE: Final = 10
#: Rounds that are not counted: files come into the page cache.
WARM_ROUNDS: Final = 2
#: A question takes Postgres seconds.
_POSTGRES_ROUNDS: Final = 5
_CHDB: Final = "chdb==4.4.0"


class NothingHot:
    """Postgres with no hot rows."""

    async def rows(self, _: Question, is_known: Callable[[str], bool]) -> HotRows:
        """See `HotDatabase`."""
        return HotRows(
            "none", None, pa.table({"hour": pa.array([], pa.int64())}), None, None, is_known=is_known("none")
        )

    async def sums(self, _: Question) -> tuple[pa.Table, int | None]:
        """See `HotDatabase`."""
        raise NotImplementedError


class ClickHouse:
    """chdb in a process of an environment of its own."""

    def __init__(self, folder: Path, files: Path) -> None:
        environment = HOME / "chdb"
        python = environment / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "uv", "venv", "--quiet", str(environment)], check=True)
            subprocess.run(
                [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), _CHDB], check=True
            )
        program = Path(__file__).with_name("clickhouse.py")
        self._process = subprocess.Popen(
            [str(python), str(program), str(folder), f"{files}/**/*.parquet", str(THREADS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.views = int(self._read()["ready"])

    def ask(self, asked: Asked) -> tuple[float, int]:
        """How many ms the answer took, and how many rows it has."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(asked.sql.split()) + "\n")
        self._process.stdin.flush()
        found = self._read()
        return float(found["ms"]), len(found["rows"])

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"chdb ended with {self._process.wait(60)}")
        found: dict[str, Any] = json.loads(line)
        return found


def question_of(asked: Asked) -> Question:
    """The question, of somebody who may see all customers."""
    return understood(asked.asked, lambda _: Customers(), LAST_MS)


def rows_of(answer: Answer) -> int:
    """Groups or points that have views, besides what is added up."""
    if isinstance(answer, Breakdown):
        return sum(group.kind != "other" for group in answer.groups)
    assert isinstance(answer, Timeseries)
    return sum(point.n > 0 for point in answer.points)


async def measure(
    answering: Answering, rounds: int, peer: ClickHouse | None
) -> dict[str, tuple[list[float], list[float]]]:
    """By question the ms of each round, here and at the peer. Raises `AssertionError` where the two differ."""
    times: dict[str, tuple[list[float], list[float]]] = {}
    for number in range(WARM_ROUNDS + rounds):
        for asked in all_questions(number):
            began = time.perf_counter()
            answer = await answering.answer(question_of(asked), way="views")
            ours_ms, theirs_ms = 1_000 * (time.perf_counter() - began), 0.0
            if peer is not None:
                theirs_ms, rows = peer.ask(asked)
                assert rows == rows_of(answer), (asked.name, rows, rows_of(answer))
            if number >= WARM_ROUNDS:
                ours, theirs = times.setdefault(asked.name, ([], []))
                ours.append(ours_ms)
                theirs.append(theirs_ms)
    return times


async def measure_together(answering: Answering, rounds: int, *, has_goal: bool) -> list[float]:
    """The ms of each question where ten people ask at a time, each another one: those with a goal, or an exact percentile."""
    found: list[float] = []

    async def person(first: int) -> None:
        # Of one organisation alone a thread would stay free.
        CALLER.set((f"organisation:{first}", "person"))
        for number in range(first, first + rounds):
            every = all_questions(number)
            for asked in [one for one in every if one.p50_goal_ms is not None] if has_goal else [every[1]]:
                began = time.perf_counter()
                await answering.answer(question_of(asked), way="views")
                found.append(1_000 * (time.perf_counter() - began))

    await asyncio.gather(*(person(7 * number) for number in range(AT_ONCE)))
    return found


async def measure_postgres(answering: Answering, folder: Path) -> dict[str, tuple[list[float], list[float]]]:
    """By question that has a goal, the ms of a few rounds here and in Postgres, in turns."""
    peer = PostgresTable(HOME / "postgres-of-views", folder / "views")
    times: dict[str, tuple[list[float], list[float]]] = {}
    try:
        for number in range(1 + _POSTGRES_ROUNDS):
            for asked in all_questions(number):
                if asked.p50_goal_ms is None:
                    continue
                began = time.perf_counter()
                await answering.answer(question_of(asked), way="views")
                ours_ms = 1_000 * (time.perf_counter() - began)
                theirs_ms, _ = peer.ask(asked)
                if number:
                    ours, theirs = times.setdefault(asked.name, ([], []))
                    ours.append(ours_ms)
                    theirs.append(theirs_ms)
    finally:
        peer.close()
    return times


def main() -> int:
    """0 when every answer was right."""
    parser = argparse.ArgumentParser(prog="python -m bench.query", description=__doc__)
    parser.add_argument("--views", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clickhouse", action="store_true", help="ask chdb the same; it is fetched from PyPI")
    parser.add_argument("--postgres", action="store_true", help="ask the same table in a Postgres of its own, too")
    given = parser.parse_args()
    folder = HOME / "query"
    generate(folder, given.views)
    engine = Engine(folder, threads=THREADS, memory_bytes_max=4 << 30, questions_max=4)
    nothing: Any = NothingHot()
    memory = Memory(Columns(1 << 30), engine)
    answering = Answering(ViewsTable(folder), nothing, engine, rows_max=10**10, answers_bytes_max=0, memory=memory)
    peer = ClickHouse(HOME / f"chdb-{given.views}", folder / "views") if given.clickhouse else None
    try:
        if peer is not None and peer.views != given.views // DAYS * DAYS:
            print(f"chdb has {peer.views} views", file=sys.stderr)
            return 1
        times = asyncio.run(measure(answering, given.rounds, peer))
        rounds = max(1, given.rounds // 4)
        together = asyncio.run(measure_together(answering, rounds, has_goal=True))
        together_exact = asyncio.run(measure_together(answering, rounds, has_goal=False))
        rows = asyncio.run(measure_postgres(answering, folder)) if given.postgres else {}
    finally:
        memory.close()
        engine.close()
        if peer is not None:
            peer.close()
    result = _part(times, (together, together_exact), rows, given)
    keep(result)
    print("\n".join([*table([result]), "", *result.lines]))
    return 0


def _part(
    times: dict[str, tuple[list[float], list[float]]],
    together: tuple[list[float], list[float]],
    of_rows: dict[str, tuple[list[float], list[float]]],
    given: argparse.Namespace,
) -> Part:
    goals = {asked.name: asked for asked in all_questions(0)}
    compared, lines = (
        [],
        ["| question | p50 | p95 | ClickHouse p50 | to ClickHouse | Postgres p50 |", "|---|---|---|---|---|---|"],
    )
    for name, (ours, theirs) in times.items():
        p50, p95 = _rank(ours, 0.5), _rank(ours, 0.95)
        goal = goals[name]
        if goal.p50_goal_ms is not None:
            is_met = p50 <= goal.p50_goal_ms and (goal.p95_goal_ms is None or p95 <= goal.p95_goal_ms)
            wanted = f"≤ {goal.p50_goal_ms:g} ms" + (f" / {goal.p95_goal_ms:g} ms" if goal.p95_goal_ms else "")
            compared.append(Compared(f"{name}, p50 / p95", f"{p50:.0f} ms / {p95:.0f} ms", wanted, is_met))
        peer = _rank(theirs, 0.5)
        beside = f"{peer:.0f} ms | {p50 / peer:.2f}×" if peer else "– | –"
        beside_rows, in_rows_ms = of_rows.get(name, ([], []))
        rows_ms = _rank(in_rows_ms, 0.5)
        in_rows = f"{rows_ms:,.0f} ms" if rows_ms else "–"
        lines.append(f"| {name} | {p50:.0f} ms | {p95:.0f} ms | {beside} | {in_rows} |")
        if rows_ms:
            times_faster = rows_ms / _rank(beside_rows, 0.5)
            compared.append(
                Compared(f"{name}, beside Postgres", f"{times_faster:.0f}× faster", "≥ 5×", times_faster >= 5)
            )
        if peer and goal.p50_goal_ms is not None:
            compared.append(Compared(f"{name}, to ClickHouse", f"{p50 / peer:.2f}×", "≤ 2×", p50 <= 2 * peer))
    slow, slow_exact = (_rank(one, 0.95) for one in together)
    compared.append(Compared(f"{AT_ONCE} people at once, p95", f"{slow / 1_000:.2f} s", "≤ 2 s", slow <= 2_000))
    return Part(
        name="query",
        title="Questions to the query layer",
        command=f"python -m bench.query --views {given.views}"
        + (" --clickhouse" if given.clickhouse else "")
        + (" --postgres" if given.postgres else ""),
        checked="each answer has as many groups or points as ClickHouse's" if given.clickhouse else "nothing",
        compared=compared,
        lines=[
            f"{given.views:,} views of {DAYS} days, all customers, {THREADS} threads, {given.rounds} rounds.",
            "",
            *lines,
            "",
            (
                f"{AT_ONCE} people at once ask the two questions that have goals. Where all of them ask with an exact p95: "
                f"p95 {slow_exact / 1_000:.2f} s."
            ),
        ],
    )


def _rank(values: list[float], rank: float) -> float:
    return float(nearest_rank(values, rank) or 0)


if __name__ == "__main__":
    sys.exit(main())
