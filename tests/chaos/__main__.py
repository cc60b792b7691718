"""`python -m tests.chaos`: the chaos run as a command; exits 1 and keeps its folder when anything is not right."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.report import results
from tests.chaos.production.network import CannotRun
from tests.chaos.production.run import FAULTS_PER_HOUR, production
from tests.chaos.run import Options, laptop, run

MINUTES_MAX = 24 * 60
#: A run of this length is a result that docs/results.md shows.
RESULT_MINUTES = 20
#: What two cores carry beside the faults: three brokers, a router, hosts and disks take half of them.
LAPTOP_VIEWS_PER_SECOND: Final = 30.0
PRODUCTION_VIEWS_PER_SECOND: Final = 15.0
_VIEWS_PER_SECOND: Final = {"laptop": LAPTOP_VIEWS_PER_SECOND, "production": PRODUCTION_VIEWS_PER_SECOND}
_PROFILES: Final = {"laptop": laptop, "production": production}
_TITLES: Final = {
    "laptop": "Chaos: slots, standby and broker killed and stopped",
    "production": "Chaos as in production: brokers, disks, clocks, network, hosts and hostile input",
}


def main() -> int:
    """Runs, prints the table, and says where the logs are when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slots", type=int, default=3, choices=range(2, 6))
    parser.add_argument(
        "--views-per-second",
        type=float,
        help=f"default: {LAPTOP_VIEWS_PER_SECOND:g}, of production {PRODUCTION_VIEWS_PER_SECOND:g}",
    )
    parser.add_argument("--standby", action=argparse.BooleanOptionalAction, default=True, help="for one of the slots")
    parser.add_argument(
        "--broker-faults", action=argparse.BooleanOptionalAction, default=True, help="production always has them"
    )
    parser.add_argument(
        "--profile",
        choices=sorted(_PROFILES),
        default="laptop",
        help="production: three brokers, hosts of their own, a network that fails; needs root",
    )
    given = parser.parse_args()
    if not 0 < given.minutes <= MINUTES_MAX:
        parser.error(f"--minutes is not in (0, {MINUTES_MAX}]")
    folder = Path(tempfile.mkdtemp(prefix="playhead-chaos-"))
    is_production = given.profile == "production"
    options = Options(
        seconds=given.minutes * 60,
        seed=given.seed,
        slots=given.slots,
        views_per_second=given.views_per_second or _VIEWS_PER_SECOND[given.profile],
        standby=given.standby,
        broker_faults=given.broker_faults,
        long_views=3 if is_production else 0,
        hostile_share=0.02 if is_production else 0.0,
        faults_per_hour=FAULTS_PER_HOUR if is_production else 0.0,
    )
    is_right = False
    try:
        result = run(options, folder, _PROFILES[given.profile])
        is_right = result.is_right
        print(result.table())
        if is_right and given.minutes >= RESULT_MINUTES:
            results.keep(
                results.Part(
                    name="chaos-production" if is_production else "chaos",
                    title=_TITLES[given.profile],
                    command=f"make chaos MINUTES={given.minutes:g} SEED={given.seed}"
                    + (" PROFILE=production" if is_production else ""),
                    checked="every view: 0 missing, 0 doubled, 0 wrong, 0 split, 0 still open, 0 late, 0 rejected",
                    compared=[],
                    lines=results.fenced(result.table()),
                )
            )
    except CannotRun as problem:
        shutil.rmtree(folder)
        parser.error(str(problem))
    finally:
        if is_right:
            shutil.rmtree(folder)
        elif folder.exists():
            print(f"logs: {folder}", file=sys.stderr)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
