"""Result files: each run of a benchmark writes its figures, its goals and what it checked to a file of its own.

A run checks its results before it reports any speed. A run that found something missing, doubled or wrong writes no file.
`keep` writes to `.local/bench`, which is not committed; `adopt` copies the files to `bench/results`, from which
`bench.report` writes every figure of the documents.
"""

import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

HOME: Final = Path(__file__).parents[2] / ".local" / "bench"
#: The committed result files.
FOLDER: Final = Path(__file__).parents[1] / "results"


class Compared(msgspec.Struct, frozen=True):
    """One figure beside its goal. `is_met` is None where there is no goal."""

    what: str
    value: str
    goal: str = ""
    is_met: bool | None = None


class Part(msgspec.Struct, frozen=True):
    """A benchmark's run: how it was called, what was checked, its comparisons, and its figures as lines of Markdown.

    `machine` and `date` are those of the run; `load_average` is that of its last 15 minutes.
    """

    name: str
    title: str
    command: str
    checked: str
    compared: list[Compared]
    lines: list[str]
    date: str = ""
    load_average: float | None = None
    machine: str = ""

    def cell(self, row: str, column: int) -> str:
        """The text of a cell of the tables in `lines`: of the row that begins with `row`, columns counted from 0.

        Raises `LookupError` where there is no such row or column.
        """
        cells = [cell.strip() for line in self.lines if line.startswith(f"| {row}") for cell in line.split("|")[1:-1]]
        if column >= len(cells):
            raise LookupError(f"result {self.name} has no row {row!r} with {column + 1} columns")
        return cells[column]

    def number(self, row: str, column: int) -> float:
        """The first number in that cell."""
        return float(self.cell(row, column).split()[0].replace(",", "").rstrip("×"))


def keep(part: Part) -> None:
    """Writes the result file of a run, in place of the last one of its name."""
    load = float(Path("/proc/loadavg").read_text().split()[2])
    date = time.strftime("%Y-%m-%d", time.gmtime())
    dated = msgspec.structs.replace(part, date=date, load_average=load, machine=machine())
    _write(HOME / "results", dated)


def adopt() -> list[str]:
    """Copies result files of this machine that are not older than the committed ones; their names."""
    adopted = []
    for file in sorted((HOME / "results").glob("*.json")):
        part, committed = read(file), FOLDER / file.name
        if not committed.exists() or read(committed).date <= part.date:
            _write(FOLDER, part)
            adopted.append(part.name)
    return adopted


def read(file: Path) -> Part:
    """A result file."""
    return msgspec.json.decode(file.read_bytes(), type=Part)


def kept(name: str, folder: Path | None = None) -> list[Part]:
    """The last runs of a part: under its name, or `name-...` where it has several. By default of this machine."""
    chosen = HOME / "results" if folder is None else folder
    files = [chosen / f"{name}.json", *sorted(chosen.glob(f"{name}-*.json"))]
    return [read(file) for file in files if file.exists()]


def fenced(report: str) -> list[str]:
    """A report in words as lines of Markdown."""
    return ["```text", *report.splitlines(), "```"]


def machine() -> str:
    """Processors, memory, and the versions that figures depend on."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    packages = ", ".join(f"{name} {version(name)}" for name in ("confluent-kafka", "msgspec", "rocksdict"))
    return (
        f"{len(models)} × {models[0] if models else 'CPU'}, {memory_kib / 1024 / 1024:.0f} GiB, {platform.system()};"
        f" {_java()}; Python {platform.python_version()}, {packages}"
    )


def _java() -> str:
    output = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return output.splitlines()[0].replace('"', "") if output else "no Java"


def _write(folder: Path, part: Part) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(part)) + b"\n")


def table(parts: list[Part], *, short: bool = False) -> list[str]:
    """All comparisons as one Markdown table; `short` leaves out the benchmark's name."""
    head = ["what", "figure", "goal", "met"] if short else ["benchmark", "what", "figure", "goal", "met"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    words = {True: "yes", False: "no", None: ""}
    for part in parts:
        first = "" if short else f" {part.name} |"
        lines += [
            f"|{first} {each.what} | {each.value} | {each.goal} | {words[each.is_met]} |" for each in part.compared
        ]
    return lines


def against(what: str, ratio: float, goal: float, *, at_most: bool = False) -> Compared:
    """A ratio beside the goal that it should reach, or stay within."""
    is_met = ratio <= goal if at_most else ratio >= goal
    return Compared(what, f"{ratio:.2f}×", f"{'≤' if at_most else '≥'} {goal:g}×", is_met)
