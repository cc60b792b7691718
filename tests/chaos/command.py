"""What the commands of this package do with a run: print it, keep its figures, and keep its folder when something is wrong."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from bench import results


class Result(Protocol):
    """What a run found."""

    @property
    def wrong(self) -> Sequence[str]:
        """What is not as it must be, a line each."""

    def table(self) -> str:
        """The run as a table."""


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
