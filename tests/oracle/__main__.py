"""Compares the fold with the oracle on many sessions; exits 1 where they disagree.

python -m tests.oracle --sessions 20000 --seed 7
"""

import argparse
import sys
import time
from collections import Counter

from tests.oracle.comparison import (
    ALLOWED,
    NOT_COMPARED,
    SKIPPED,
    SKIPPED_SHARE_MAX,
    Difference,
    Tally,
    differences,
    shrunk,
)

SHOWN_MAX = 5


def report(found: Difference, seed: int) -> str:
    """A disagreement with what reproduces it: seed, session, the fewest beacons that show it, the fields."""
    small = shrunk(found)
    beacons = "\n".join(f"  append {one.append_ms} {one.value.decode()}" for one in small.records)
    return f"seed {seed}, {found}\nwith {len(small.records)} of its {len(found.records)} beacons: {small}\n{beacons}\n"


def main() -> int:
    """The process' exit code."""
    parser = argparse.ArgumentParser(prog="tests.oracle", description=__doc__)
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first session")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.process_time()
    fields: Counter[str] = Counter()
    views = 0
    tally = Tally()
    for found in differences(given.seed, range(given.first, given.first + given.sessions), tally):
        views += 1
        fields.update(name for name, _, _ in found.fields)
        if views <= SHOWN_MAX:
            print(report(found, given.seed), flush=True)
    print(f"{given.sessions} sessions, {views} views differ, {time.process_time() - began:.0f} CPU seconds")
    for name, count in fields.most_common():
        print(f"  {name}: {count}")
    print("allowed to differ:", *(f"  {one.field}: {one.reason}" for one in ALLOWED), sep="\n")
    skipped, skipped_max = tally.skipped.total(), int(SKIPPED_SHARE_MAX * tally.rows)
    print(f"{skipped} of {tally.rows} rows not compared, at most {skipped_max}:")
    for one in SKIPPED:
        print(f"  {tally.skipped[one.reason]}: {one.reason}")
    print("fields not compared:", *(f"  {name}: {reason}" for name, reason in NOT_COMPARED.items()), sep="\n")
    return 1 if views or skipped > skipped_max else 0


if __name__ == "__main__":
    sys.exit(main())
