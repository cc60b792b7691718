"""What the commands of this package do with a run: print it, keep its figures, and keep its folder when something is wrong."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from bench.report import results


class Result(Protocol):
    """What a run found."""

    @property
    def wrong(self) -> Sequence[str]:
        """What is not as it must be, a line each."""

    def table(self) -> str:
        """The run as a table."""


def carry_out_rounds(
    run: Callable[[int, int, Path], Result], *, module: str, about: str | None, rounds: int, title: str, checked: str
) -> int:
    """The command `python -m tests.chaos.MODULE [--rounds N] [--seed N]`. `run` gets rounds, seed and a folder.

    A right run of `rounds` or more, the default, is a result that the documents show.
    """
    command = f"python -m tests.chaos.{module}"
    parser = argparse.ArgumentParser(prog=command, description=about)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    return carry_out(
        lambda folder: run(given.rounds, given.seed, folder),
        name=f"chaos-{module}",
        title=title,
        command=f"{command} --rounds {given.rounds} --seed {given.seed}",
        checked=checked,
        is_kept=given.rounds >= rounds,
    )


def carry_out(
    run: Callable[[Path], Result], *, name: str, title: str, command: str, checked: str, is_kept: bool
) -> int:
    """Runs in a folder of its own; 1 when something is wrong. `is_kept`: a right run is a result that the documents show."""
    folder = Path(tempfile.mkdtemp(prefix=f"playhead-{name}-"))
    is_right = False
    try:
        result = run(folder)
        is_right = not result.wrong
        print(result.table())
        if is_right and is_kept:
            lines = results.fenced(result.table())
            results.keep(
                results.Part(name=name, title=title, command=command, checked=checked, compared=[], lines=lines)
            )
    finally:
        if is_right:
            shutil.rmtree(folder)
        else:
            print(f"logs: {folder}", file=sys.stderr)
    return 0 if is_right else 1
