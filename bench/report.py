"""Writes bench/README.md and its chart from the figures that the benchmarks kept: `python -m bench.report`."""

import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

from bench.chart import Bar, bars
from bench.parts import PARTS
from bench.processor import report as processor
from bench.processor.systems import ALL
from bench.results import Part, kept, table

_FOLDER: Final = Path(__file__).parent
_CHART: Final = "processor.svg"


def main() -> int:
    """1 when there are no figures."""
    found = [part for name in PARTS for part in kept(name)]
    if not found:
        print("no figures: run `make bench` first", file=sys.stderr)
        return 1
    lines = [
        "# Benchmarks",
        "",
        (
            "Written by `python -m bench.report` from the figures of the last runs. Read the ratios: they were measured side by"
            " side, on the same input, on one machine. CPU time is counted, not wall time: other work shared the machine."
        ),
        "",
        (
            f"Machine: {_machine()}. Kafka 4.3.1, one broker on the same machine; {_java()}; Python {platform.python_version()},"
            f" confluent-kafka {version('confluent-kafka')}, msgspec {version('msgspec')}, rocksdict {version('rocksdict')}."
        ),
        "",
        *table(found),
        "",
        *(line for part in found for line in _section(part)),
    ]
    (_FOLDER / "README.md").write_text("\n".join(lines))
    return 0


def _section(part: Part) -> list[str]:
    chart: list[str] = []
    if part.name == "processor":
        _draw()
        chart = [f"![Beacons per CPU-second]({_CHART})", ""]
    told = f"`{part.command}`, {part.date}; checked: {part.checked}. Load average at its end: {part.load_average:g} on two CPUs."
    return [f"## {part.title}", "", told, "", *chart, *part.lines, ""]


def _draw() -> None:
    run = processor.kept()
    rows = [
        Bar(
            f"{ALL[name].title}, {ALL[name].commit_ms} ms",
            run.median(name, processor.rate),
            ALL[name].family == "playhead",
        )
        for name in sorted(run.results, key=lambda name: -run.median(name, processor.rate))
    ]
    (_FOLDER / _CHART).write_text(bars("Beacons per CPU-second of the processor, exactly once", rows))


def _machine() -> str:
    info = Path("/proc/cpuinfo").read_text()
    models = [line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")]
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return f"{len(models)} × {models[0] if models else 'CPU'}, {memory_kib / 1024 / 1024:.0f} GiB, {platform.system()}"


def _java() -> str:
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return told.splitlines()[0].replace('"', "") if told else "no Java"


if __name__ == "__main__":
    sys.exit(main())
