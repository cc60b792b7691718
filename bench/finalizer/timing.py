"""Measures the time and the CPU time of some rounds; `Wrong` ends a run with wrong rows."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bench.processor.measure import cpu_seconds

ROUNDS: Final = 3


class Wrong(RuntimeError):
    """The written rows are wrong: no figure is reported."""


class Took(NamedTuple):
    """What a piece of work cost; CPU time is that of this process, its JVM, Spark's workers and Postgres."""

    seconds: float
    cpu_seconds: float


def took(work: Callable[[], object]) -> Took:
    """Does the work once."""
    began, cpu_began = time.monotonic(), cpu_seconds(os.getpid())
    work()
    return Took(time.monotonic() - began, cpu_seconds(os.getpid()) - cpu_began)


def best(rounds: Sequence[Took]) -> Took:
    """The least time and the least CPU time of the rounds: what disturbs only ever adds to them."""
    return Took(min(one.seconds for one in rounds), min(one.cpu_seconds for one in rounds))


def cost_ratio(rounds: Sequence[Took], beside: Sequence[Took]) -> float:
    """CPU time of the best round to that of the best round of another."""
    return best(rounds).cpu_seconds / best(beside).cpu_seconds


def print_rounds(what: str, rounds: Sequence[Took], rows: int, unit: str) -> None:
    """Prints every round, and what the best comes to a second."""
    listed = ", ".join(f"{one.seconds:.2f} ({one.cpu_seconds:.2f})" for one in rounds)
    least = best(rounds)
    print(
        f"{what:62} s (CPU s): {listed}   {rows / least.seconds:,.0f} {unit}/s,"
        f" {rows / least.cpu_seconds:,.0f} a CPU-second",
        flush=True,
    )


def row(what: str, rounds: Sequence[Took], rows: int) -> str:
    """The same as a row of a Markdown table that `HEAD` begins."""
    least = best(rounds)
    return (
        f"| {what} | {least.seconds:.1f} | {least.cpu_seconds:.1f} | {rows / least.seconds:,.0f} |"
        f" {rows / least.cpu_seconds:,.0f} |"
    )


def head(unit: str) -> list[str]:
    """The head of a table of `row`s."""
    return [f"| what | s | CPU s | {unit} a second | {unit} a CPU-second |", "|---|---|---|---|---|"]


def expect(what: str, found: object, wanted: object) -> None:
    """Raises `Wrong` where they differ."""
    if found != wanted:
        raise Wrong(f"{what}: {found}, must be {wanted}")
