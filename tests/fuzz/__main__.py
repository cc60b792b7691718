"""Sends hostile requests through every intake and every fold in memory; exits 1 where one does what it may not.

python -m tests.fuzz --cases 10000 --seed 7
"""

import argparse
import sys
import time
from random import Random

from services.processor.settings import ApplicationName
from tests.fuzz.pipeline import MINUTE_MS, ROUTES, Pipeline

APPLICATIONS: tuple[ApplicationName, ...] = ("video_views", "traces", "api_schemas", "api_baselines", "recordings")
SETTLES_EVERY = 100


def fuzzed(seed: int, cases: int) -> Pipeline:
    """The applications after so many hostile requests, and after all that they wait for is due."""
    rng = Random(f"fuzz/{seed}")
    pipeline = Pipeline(APPLICATIONS)
    for number in range(cases):
        pipeline.request(rng, rng.choice(ROUTES))
        if number % SETTLES_EVERY == 0:
            pipeline.settle()
    for _ in range(4):
        pipeline.settle(20 * 60 * MINUTE_MS)
    return pipeline


def main() -> int:
    """The process' exit code."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.process_time()
    pipeline = fuzzed(given.seed, given.cases)
    print(f"{given.cases} requests, {time.process_time() - began:.0f} CPU seconds")
    print("most calls for one record:", dict(pipeline.calls_most))
    print("largest rows, bytes:", dict(pipeline.row_bytes_most))
    for fault, count in pipeline.faults.most_common():
        print(f"FAULT {count}: {fault}")
    return 1 if pipeline.faults else 0


if __name__ == "__main__":
    sys.exit(main())
