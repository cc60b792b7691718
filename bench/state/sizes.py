"""The size of a view on disk: `python -m bench.state.sizes [--folder .local/loadtest]`, after `make loadtest` or `make demo`.

Reads the files of that run: the brokers' segments on disk (compressed, one copy, the changelog before compaction) and the present
files of the warehouse's tables. The views are in the players' real formats; whether all are there and right was checked by the run
itself. A short run writes small batches and small files, which compress less than a large one's.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from bench.report.results import Part, keep
from deploy.demo.comparing.observe import read_truths
from deploy.local.paths import LOCAL
from shared import topics

#: What there is of each view.
TOPICS: Final = (topics.BEACONS.name, "video_views.changelog", topics.VIEWS.name)
TABLES: Final = ("views", "bronze")


@dataclass(frozen=True)
class Size:
    """Bytes on disk of one place."""

    place: str
    size_bytes: int


def sizes(folder: Path) -> list[Size]:
    """The size of each place in a run's folder. Raises `FileNotFoundError` when there is no broker's data."""
    data = folder / "broker" / "data"
    if not data.is_dir():
        raise FileNotFoundError(f"{folder} holds no run: `make loadtest` or `make demo` first")
    of_topics = [Size(f"topic {name}", _segments(data, name)) for name in TOPICS]
    return of_topics + [Size(f"table {name}", _files(folder / "warehouse" / name)) for name in TABLES]


def _segments(data: Path, topic: str) -> int:
    return sum(file.stat().st_size for file in data.glob(f"{topic}-[0-9]*/*.log"))


def _files(table: Path) -> int:
    """The number of files of the table's newest version; older files wait for their removal."""
    return sum(DeltaTable(table).get_add_actions(flatten=True).column("size_bytes").to_pylist())


def main() -> int:
    """1 when the run is not over, or the folder holds no run."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.sizes", description=__doc__)
    parser.add_argument("--folder", type=Path, default=LOCAL / "loadtest", help="of a run that is over")
    folder: Path = parser.parse_args().folder
    truth = read_truths([folder / "truth.json"])
    views, beacons = truth.total("views_started"), truth.total("beacons_acked")
    if not truth.done or not views:
        print(f"{folder} holds no run that is over: `make loadtest` or `make demo` first", file=sys.stderr)
        return 1
    print(f"{views:,} views, {beacons:,} beacons ({beacons / views:.1f} a view); bytes on disk")
    print(f"{'':<30}{'in all':>14}{'a view':>10}{'a beacon':>10}")
    found = sizes(folder)
    for size in found:
        print(
            f"{size.place:<30}{size.size_bytes:>14,}{size.size_bytes / views:>10,.0f}{size.size_bytes / beacons:>10,.0f}"
        )
    keep(
        Part(
            name="sizes",
            title="What a load test leaves on disk",
            command="python -m bench.state.sizes",
            checked="the run is over and all its views are known",
            compared=[],
            lines=[
                f"After a run of {views:,} views with {beacons / views:.1f} beacons each. One copy of everything.",
                "",
                "| place | bytes a view | bytes a beacon |",
                "|---|---|---|",
                *(
                    f"| {size.place} | {size.size_bytes / views:,.0f} | {size.size_bytes / beacons:,.0f} |"
                    for size in found
                ),
            ],
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
