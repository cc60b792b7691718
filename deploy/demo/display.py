"""The demo's output: its steps and its one table; live in a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from deploy.demo.comparing.compare import Line

#: How often a plain line shows the progress, where there is no terminal to redraw, seconds.
_PLAIN_SECONDS: Final = 10.0
_PLAIN_LINES: Final = ("beacons in Kafka", "views started", "views open", "views finished", "rows in the warehouse")


class Display:
    """Steps as they are done, and the table under them. Use as a context manager."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._began = time.monotonic()
        self._said_at = float("-inf")
        self._live = (
            Live(console=self._console, refresh_per_second=4, transient=True, vertical_overflow="ellipsis")
            if self._console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.settle()

    def settle(self) -> None:
        """Ends the redrawing: what follows stays as printed."""
        if self._live is not None and self._live.is_started:
            self._live.update("", refresh=True)
            self._live.stop()

    def step(self, text: str) -> None:
        """One step, with the seconds since the start before it."""
        self._console.print(Text(f"{time.monotonic() - self._began:6.1f} s  {text}"))

    def say(self, text: str) -> None:
        """Text as it is."""
        self._console.print(Text(text))

    def progress(self, doing: str, lines: Sequence[Line]) -> None:
        """How far it is: the table under way, where differences may still vanish."""
        if self._live is not None:
            self._live.update(Group(Text(doing), table(lines, settled=False)))
        elif time.monotonic() - self._said_at >= _PLAIN_SECONDS:
            self._said_at = time.monotonic()
            figures = ", ".join(f"{line.name} {line.observed or '-'}" for line in lines if line.name in _PLAIN_LINES)
            self.step(f"{doing}: {figures}")

    def final(self, lines: Sequence[Line]) -> None:
        """The table at the end."""
        self.settle()
        self._console.print(table(lines, settled=True))


def table(lines: Sequence[Line], *, settled: bool) -> Table:
    """The lines as a table; before all is `settled` a difference is not yet one."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("what")
    # A long value goes on in the next line: it is compared.
    made.add_column("observed", justify="right", overflow="fold")
    made.add_column("truth", justify="right", overflow="fold")
    made.add_column("")
    for line in lines:
        made.add_row(line.name, line.observed or "-", line.truth, _verdict(line, settled=settled))
    return made


def _verdict(line: Line, *, settled: bool) -> Text:
    if line.ok is False and not settled:
        return Text("under way", style="dim")
    return Text(line.verdict, style={None: "dim", True: "green", False: "bold red"}[line.ok])
