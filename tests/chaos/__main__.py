"""`python -m tests.chaos`: the chaos run as a command; exits 1 and keeps its folder when anything is not right."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from bench import results
from tests.chaos.run import Options, run

MINUTES_MAX = 24 * 60
#: A run of this length is a result that docs/results.md shows.
RESULT_MINUTES = 20


def main() -> int:
    """Runs, prints the table, and says where the logs are when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slots", type=int, default=3, choices=range(2, 6))
    parser.add_argument("--views-per-second", type=float, default=30.0)
    parser.add_argument("--standby", action=argparse.BooleanOptionalAction, default=True, help="for one of the slots")
    parser.add_argument("--broker-faults", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    if not 0 < given.minutes <= MINUTES_MAX:
        parser.error(f"--minutes is not in (0, {MINUTES_MAX}]")
    folder = Path(tempfile.mkdtemp(prefix="playhead-chaos-"))
    options = Options(
        seconds=given.minutes * 60,
        seed=given.seed,
        slots=given.slots,
        views_per_second=given.views_per_second,
        standby=given.standby,
        broker_faults=given.broker_faults,
    )
    is_right = False
    try:
        result = run(options, folder)
        is_right = result.is_right
        print(result.table())
        if is_right and given.minutes >= RESULT_MINUTES:
            results.keep(
                results.Part(
                    name="chaos",
                    title="Chaos: slots, standby and broker killed and stopped",
                    command=f"make chaos MINUTES={given.minutes:g} SEED={given.seed}",
                    checked="every view: 0 missing, 0 doubled, 0 wrong, 0 split, 0 still open, 0 late, 0 rejected",
                    compared=[],
                    lines=results.fenced(result.table()),
                )
            )
    finally:
        if is_right:
            shutil.rmtree(folder)
        else:
            print(f"logs: {folder}", file=sys.stderr)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
