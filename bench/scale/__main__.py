"""What slots and partitions cost beside their beacons: `python -m bench.scale [--slots 4 8 16] [--partitions 32 128]`.

Idle slots by processes on one broker, in growing number; then with heartbeats (as with standbys), with lookups, and with a trickle
of beacons that makes every partition commit twice a second. Measured are the CPU of broker and slots, memory, connections,
heartbeats, commits, and how long slots take until they work. `bench.scale.model` is fitted to it, and holds its answer for the
largest (`--largest SLOTS PARTITIONS`) against what is measured there. Phase `group` simulates the group's members at the full
number. `bench.report` extrapolates (docs/capacity.md). Checked before any figure: all partitions are worked, by as many slots as
are given.

`--only PHASE ...` runs some phases; what the others measured last on this machine is kept.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

import msgspec

from bench.report.results import HOME, Part, keep
from bench.scale import model
from bench.scale.group import Settled
from bench.scale.phases import PHASES, Given, Measured, group

_RAW: Final = HOME / "scale"
_GROUP: Final = "group"


def main() -> int:
    """Runs the phases, prints them and keeps the result."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--slots", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--partitions", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--committing", type=int, nargs="+", default=[8, 16, 32], metavar="PARTITIONS")
    parser.add_argument("--largest", type=int, nargs=2, default=(20, 192), metavar=("SLOTS", "PARTITIONS"))
    parser.add_argument("--group", type=int, nargs=2, default=(100, 768), metavar=("MEMBERS", "PARTITIONS"))
    parser.add_argument("--only", nargs="+", choices=[*PHASES, _GROUP], default=[*PHASES, _GROUP])
    asked = parser.parse_args()
    given = Given(sorted(asked.slots), asked.partitions, asked.committing, tuple(asked.largest), tuple(asked.group))
    for name in asked.only:
        if name == _GROUP:
            settled = group(given)
            print(_settled(settled), flush=True)
            _write(_GROUP, settled)
            continue
        found = []
        for one in PHASES[name](given):
            found.append(one)
            print(_line(one), flush=True)
            _write(name, found)
    measured = [one for name in PHASES for one in _read(name)]
    missing = PHASES.keys() - {one.what for one in measured}
    if not _file(_GROUP).exists():
        missing |= {_GROUP}
    if missing:
        print(f"not measured yet: {', '.join(sorted(missing))}; no result is kept", file=sys.stderr)
        return 1
    keep(_part(measured, msgspec.json.decode(_file(_GROUP).read_bytes(), type=Settled), given))
    return 0


def _file(phase: str) -> Path:
    return _RAW / f"{phase}.json"


def _write(phase: str, found: list[Measured] | Settled) -> None:
    _RAW.mkdir(parents=True, exist_ok=True)
    _file(phase).write_bytes(msgspec.json.encode(found))


def _read(phase: str) -> list[Measured]:
    return msgspec.json.decode(_file(phase).read_bytes(), type=list[Measured]) if _file(phase).exists() else []


def _line(one: Measured) -> str:
    point = one.point
    joined = "" if one.join_seconds is None else f"{one.join_seconds:.1f}"
    return (
        f"| {one.what}: {point.slots} slots, {point.partitions:,} partitions | {point.broker:.2f} | {point.of_slots:.2f} |"
        f" {point.of_slots / point.slots:.3f} | {point.commits:,.0f} | {one.heartbeats:,.0f} | {one.connections:,} |"
        f" {one.pss_mib:.0f} | {one.waited:.0%} |"
        f" {one.start_seconds:.1f} | {joined} |"
    )


def _settled(one: Settled) -> str:
    return (
        f"{one.members} bare members of the group, simulated in one process, divide {one.partitions} partitions in"
        f" {one.start_seconds:.1f} s when all start at once. One more has its partitions after {one.join_seconds:.1f} s; those of"
        f" one that leaves are others' after {one.leave_seconds:.1f} s. Their heartbeats and polls cost the broker"
        f" {one.broker:.2f} cores."
    )


def _part(measured: list[Measured], settled: Settled, given: Given) -> Part:
    points = [one.point for one in measured if one.what != "largest"]
    (largest,) = (one.point for one in measured if one.what == "largest")
    broker_rows, slot_rows = ([terms(one) for one in points] for terms in (model.broker_terms, model.slot_terms))
    of_broker = model.fitted(broker_rows, [one.broker for one in points])
    of_slots = model.fitted(slot_rows, [one.of_slots for one in points])
    errors = (
        model.error(broker_rows, [one.broker for one in points], of_broker),
        model.error(slot_rows, [one.of_slots for one in points], of_slots),
    )
    expected = (
        model.value(model.broker_terms(largest), of_broker),
        model.value(model.slot_terms(largest), of_slots),
    )
    lines = [
        "One broker and slots of `video_views` on the same two cores, each slot a process. CPU is in cores.",
        "",
        (
            "| state | broker | all slots | a slot | commits/s | heartbeats/s | connections | MiB a slot |"
            " waited for a core | all work after, s | one more works after, s |"
        ),
        "|" + "---|" * 11,
        *map(_line, measured),
        "",
        (
            "The model is a sum: each term times its number in an installation, fitted by least relative error to all rows but the"
            f" last (largest error: broker {errors[0]:.0%}, slots {errors[1]:.0%}). Of the last row, which it has not seen, it"
            f" says {expected[0]:.2f} cores of the broker and {expected[1]:.2f} of the slots."
        ),
        "",
        "| term | broker, CPU µs a second | all slots, CPU µs a second |",
        "|---|---|---|",
        f"| fixed | {of_broker[0] * 1e6:,.2f} | 0 |",
        *(
            f"| {term} | {broker * 1e6:,.2f} | {slots * 1e6:,.2f} |"
            for term, broker, slots in zip(model.SLOT_TERMS, of_broker[1:], of_slots, strict=True)
        ),
        "",
        _settled(settled),
    ]
    numbers = {
        "--slots": given.slots,
        "--partitions": given.partitions,
        "--committing": given.committing,
        "--largest": given.largest,
        "--group": given.group,
    }
    arguments = " ".join(f"{name} {' '.join(map(str, values))}" for name, values in numbers.items())
    return Part(
        name="scale",
        title="Scale: what slots and partitions cost beside their beacons",
        command=f"python -m bench.scale {arguments}",
        checked="all partitions were worked by all slots, before and after each measurement",
        compared=[],
        lines=lines,
    )


if __name__ == "__main__":
    sys.exit(main())
