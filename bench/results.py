"""What the benchmarks found: each part keeps its figures, its goals and what it checked in a file of its own.

A part checks its results before it tells any speed; one that found something missing, doubled or wrong keeps nothing.
"""

import time
from pathlib import Path
from typing import Final

import msgspec

HOME: Final = Path(__file__).parents[1] / ".local" / "bench"


class Compared(msgspec.Struct, frozen=True):
    """One figure beside its goal. `is_met` is None where there is no goal."""

    what: str
    value: str
    goal: str = ""
    is_met: bool | None = None


class Part(msgspec.Struct, frozen=True):
    """A benchmark's run: how it was called, what was checked, its comparisons, and lines of Markdown for bench/README.md."""

    name: str
    title: str
    command: str
    checked: str
    compared: list[Compared]
    lines: list[str]
    date: str = ""
    load_average: float | None = None


def keep(part: Part) -> None:
    """Keeps a run, in place of the last one of its name."""
    load = float(Path("/proc/loadavg").read_text().split()[2])
    dated = msgspec.structs.replace(part, date=time.strftime("%Y-%m-%d", time.gmtime()), load_average=load)
    folder = HOME / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(dated)))


def kept(name: str) -> list[Part]:
    """The last runs of a part: under its name, or `name-...` where it has several."""
    folder = HOME / "results"
    files = [folder / f"{name}.json", *sorted(folder.glob(f"{name}-*.json"))]
    return [msgspec.json.decode(file.read_bytes(), type=Part) for file in files if file.exists()]


def table(parts: list[Part]) -> list[str]:
    """All comparisons as one Markdown table."""
    lines = ["| benchmark | what | figure | goal | met |", "|---|---|---|---|---|"]
    words = {True: "yes", False: "no", None: ""}
    for part in parts:
        lines += [
            f"| {part.name} | {each.what} | {each.value} | {each.goal} | {words[each.is_met]} |"
            for each in part.compared
        ]
    return lines


def against(what: str, ratio: float, goal: float, *, at_most: bool = False) -> Compared:
    """A ratio beside the goal that it should reach, or stay within."""
    is_met = ratio <= goal if at_most else ratio >= goal
    return Compared(what, f"{ratio:.2f}×", f"{'≤' if at_most else '≥'} {goal:g}×", is_met)
