"""Every figure of the documents, written from the result files by `python -m bench.report`.

Copies what the benchmarks wrote on this machine to `bench/results`, then writes bench/README.md, its chart, and the blocks
between `<!-- figures: NAME -->` and `<!-- end of figures -->` of README.md, docs/results.md, docs/capacity.md, docs/growing.md,
docs/alerts.md and docs/suspects.md.
"""

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from bench.report import capacity, figures
from bench.report.chart import Bar, bars
from bench.report.parts import PARTS
from bench.report.results import FOLDER, Part, adopt, kept, read, table
from bench.scale import extrapolated

ROOT: Final = Path(__file__).parents[2]
#: The documents that have blocks of figures.
DOCUMENTS: Final = (
    "README.md",
    "docs/results.md",
    "docs/capacity.md",
    "docs/growing.md",
    "docs/alerts.md",
    "docs/suspects.md",
)
#: What docs/suspects.md shows of its method.
_SUSPECTS: Final = ("suspects-2500000", "suspects", "suspects-latency")
_CHART: Final = "processor.svg"
_BLOCK: Final = re.compile(r"(<!-- figures: ([\w-]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def main() -> int:
    """1 when there are no figures."""
    for name in adopt():
        print(f"bench/results/{name}.json is of this machine's last run")
    if not any(FOLDER.glob("*.json")):
        print("no figures: run `make bench` first", file=sys.stderr)
        return 1
    for file, text in written().items():
        file.write_text(text)
    return 0


def written() -> dict[Path, str]:
    """Each file that has figures, with its whole text as the result files have it."""
    results = {file.stem: read(file) for file in sorted(FOLDER.glob("*.json"))}
    blocks: dict[str, Callable[[], list[str]]] = {
        **{name: partial(section, part) for name, part in results.items()},
        "readme": partial(figures.readme, results),
        "suspects-goals": partial(table, [results[name] for name in _SUSPECTS]),
        "capacity-cores": partial(capacity.cores, results),
        "capacity-views": partial(capacity.views, results),
        "capacity-million": partial(capacity.million, results),
        "capacity-scale": partial(extrapolated.table, results),
        "capacity-scale-protocol": partial(extrapolated.protocol, results),
    }

    def filled(block: re.Match[str]) -> str:
        return "\n".join([block[1], *blocks[block[2]](), "", block[3]])

    documents = {ROOT / name: _BLOCK.sub(filled, (ROOT / name).read_text()) for name in DOCUMENTS}
    folder = ROOT / "bench"
    return documents | {folder / "README.md": _benchmarks(), folder / _CHART: _chart(results["processor"])}


def section(part: Part) -> list[str]:
    """When and how a result was measured, its goals and its figures."""
    load = "" if part.load_average is None else f" Load average at the end: {part.load_average:g} on two cores."
    goals = [*table([part], short=True), ""] if part.compared else []
    return [f"`{part.command}`, {part.date}. Checked: {part.checked}.{load}", "", *goals, *part.lines]


def _benchmarks() -> str:
    found = [part for name in PARTS for part in kept(name, FOLDER)]
    machines = sorted({part.machine for part in found})
    lines = [
        "# Benchmarks",
        "",
        (
            "`python -m bench.report` writes this page from the result files in `bench/results`. Compare the ratios: both sides of"
            " a ratio were measured on the same input, on the same machine, one after the other. CPU time is counted, not elapsed"
            " time, because other processes use the machine too."
        ),
        "",
        *(f"Machine: {machine}. Kafka 4.3.1, one broker on the same machine." for machine in machines),
        "",
        *table(found),
        "",
    ]
    for part in found:
        chart = [f"![Beacons per CPU-second]({_CHART})", ""] if part.name == "processor" else []
        without_goals = section(
            Part(**{name: getattr(part, name) for name in part.__struct_fields__} | {"compared": []})
        )
        lines += [f"## {part.title}", "", *without_goals[:2], *chart, *without_goals[2:], ""]
    return "\n".join(lines)


def _chart(processor: Part) -> str:
    rows = [line.split("|")[1:4] for line in processor.lines if re.match(r"\| [PKQ]", line)]
    found = [
        Bar(f"{title.strip()}, {commit.strip()}", float(rate.replace(",", "")), title.strip().startswith("Playhead"))
        for title, commit, rate in rows
    ]
    return bars("Beacons per CPU-second of the processor, exactly once", sorted(found, key=lambda bar: -bar.value))
