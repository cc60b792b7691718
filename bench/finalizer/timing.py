"""How the parts measure and tell: the best of some rounds, all of them beside it."""

import time
from collections.abc import Callable, Sequence
from typing import Final

ROUNDS: Final = 3


def seconds(work: Callable[[], object]) -> float:
    """How long the work takes, s."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def tell(what: str, rounds: Sequence[float], rows: int, unit: str) -> None:
    """Prints the best round, and what it comes to a second."""
    best = min(rounds)
    listed = ", ".join(f"{one:.2f}" for one in rounds)
    print(f"{what:62} {best:7.2f} s of {listed}   {rows / best:10,.0f} {unit}/s", flush=True)
