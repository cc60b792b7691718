"""Hand-over of large state: `python -m bench.handover [--only takeover beside] [--views N ...] [--open N] [--rate R]`.

`takeover`: the partitions of a slot are taken at once, cold (empty disk) and warm (a standby's copies), from the moment they are
known. `beside`: one of two instances goes under load, killed or stopped, with and without a standby, beside Kafka Streams on the
same state: how long its partitions make no progress. Checked: stores hold every row; every view of the load has exactly one row,
and it is right.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.handover.beside import WAYS, Load, Went, hand_over, open_views
from bench.handover.groups import COMMIT_MS, SESSION_MS, SYSTEMS
from bench.handover.takeover import SIZES, NotWhole, Took, measure
from bench.processor.topics_of_runs import TopicsOfRuns
from bench.report.results import Compared, Part, against, keep, table
from deploy.local.broker import Broker

PARTS: Final = ("takeover", "beside")
WARM_GOAL_SECONDS: Final = 1.0
RATE_GOAL: Final = 100_000


def beside(given: argparse.Namespace) -> list[Went]:
    """Every way of going. Raises `NotWhole` when a row is missing, doubled or wrong."""
    found = []
    with tempfile.TemporaryDirectory(prefix="bench-handover-") as temporary:
        folder = Path(temporary)
        with Broker(folder / "broker") as broker:
            TopicsOfRuns(broker.bootstrap).begin()
            open_views(broker.bootstrap, given.open)
            load = Load(broker.bootstrap, given.rate)
            for standbys in (1, 0):
                for way in given.ways:
                    for system in SYSTEMS:
                        went, checked = hand_over(
                            system, way, standbys, load=load, folder=folder, settle_seconds=given.settle
                        )
                        if not checked.is_good:
                            raise NotWhole(f"{system}, {way}, {standbys} standbys: {checked}")
                        print(_summary(went), f"  rows right: {checked.right:,}", flush=True)
                        found.append(went)
    return found


def _summary(went: Went) -> str:
    return (
        f"{went.system:14} {went.standbys} standbys  {went.way}: stood still {went.standstill_seconds:.2f} s,"
        f" {went.lag_records:,} records behind"
    )


def part(took: list[Took], went: list[Went], given: argparse.Namespace) -> Part:
    """The run, to be kept."""
    compared = [
        Compared(
            f"warm takeover of {each.views:,} open views",
            f"{each.warm_seconds:.2f} s",
            f"< {WARM_GOAL_SECONDS:g} s",
            each.warm_seconds < WARM_GOAL_SECONDS,
        )
        for each in took
    ]
    if took:
        largest = max(took)
        rate = largest.rows_a_cpu_second
        compared.append(
            Compared(
                f"rows restored a CPU-second, {largest.views:,} views",
                f"{rate:,.0f}",
                f"≥ {RATE_GOAL:,}",
                rate >= RATE_GOAL,
            )
        )
    by_case = {(each.system, each.standbys, each.way): each for each in went}
    for (system, standbys, way), ours in by_case.items():
        theirs = by_case.get(("Kafka Streams", standbys, way))
        if system == "Playhead" and theirs is not None:
            ratio = ours.standstill_seconds / theirs.standstill_seconds
            what = f"standstill to Kafka Streams', {'SIGKILL' if way == 'kill' else 'SIGTERM'}, {standbys} standbys"
            compared.append(against(what, ratio, 1.0, at_most=True))
    lines = ["| open views | cold, s | rows a CPU-second | warm, s |", "|---|---|---|---|"] if took else []
    lines += [
        f"| {each.views:,} | {each.cold_seconds:.2f} | {each.rows_a_cpu_second:,.0f} | {each.warm_seconds:.2f} |"
        for each in took
    ]
    if went:
        lines += [
            "",
            (
                f"Two instances of each system, {given.open:,} open views, {given.rate:,} beacons/s, commits every {COMMIT_MS} ms,"
                f" sessions of {SESSION_MS / 1_000:g} s (Kafka Streams: heartbeats of a sixth, `leaveGroup` on close, one"
                " stream thread)."
            ),
            "",
            "| system | standbys | way | without processing, s | records behind |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {each.system} | {each.standbys} | {each.way} | {each.standstill_seconds:.2f} | {each.lag_records:,} |"
            for each in went
        ]
    return Part(
        name="handover",
        title="Hand-over of large state",
        command="python -m bench.handover",
        checked="every row in every store; every view of the load: 0 missing, 0 doubled, 0 wrong",
        compared=compared,
        lines=lines,
    )


def main() -> int:
    """1 when something was missing, doubled or wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.handover", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--views", type=int, nargs="+", default=SIZES, help="open views of each takeover")
    parser.add_argument("--open", type=int, default=1_000_000, help="open views, beside")
    parser.add_argument("--rate", type=int, default=1_000, help="beacons a second, beside")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--settle", type=float, default=15.0, help="seconds that standbys have to catch up")
    given = parser.parse_args()
    try:
        took = measure(list(given.views)) if "takeover" in given.only else []
        went = beside(given) if "beside" in given.only else []
    except NotWhole as wrong:
        print(wrong, file=sys.stderr)
        return 1
    result = part(took, went, given)
    keep(result)
    print("\n".join(table([result])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
