"""Everything, as `make test` runs it: some workers; then alone what failed.

Before the run the archives of Java classes are made, unless they are there. After it, what failed runs once more with nothing
beside it. A test that passes only then is unsteady, which is a fault of the test or of the product: the run names it. With
`--strict` it fails the run. `--workers` says how many run at once, and `--cpu-seconds` which files take how much CPU time.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.suite import class_archives, cpu_seconds

_PYTEST: Final = (sys.executable, "-m", "pytest")
#: `tests/suite/scheduling.py` says what runs where and in which order; xdist's own order would start the long files late.
_BY_GROUP: Final = ("--dist", "loadfile", "--no-loadscope-reorder")
#: Three more than the cores of continuous integration: tests wait for sessions, graces and starts, and a core would wait with them.
WORKERS: Final = 5
_ALONE: Final = ("--last-failed", "--last-failed-no-failures", "none")
#: Failures in more files than these are not examined again. A file, because what its tests share may have failed once for all.
AGAIN_MAX = 12
_CACHE: Final = Path(".pytest_cache/v/cache/lastfailed")
_FAILED: Final = 1


def failed_tests(cache: Path) -> list[str]:
    """What pytest wrote down as failed in its last run; empty when it wrote nothing."""
    return sorted(json.loads(cache.read_text())) if cache.exists() else []


def run(
    cache: Path = _CACHE,
    pytest: tuple[str, ...] = _PYTEST,
    *,
    is_strict: bool = False,
    workers: int = WORKERS,
    counts_cpu: bool = False,
) -> int:
    """Runs all tests; 0 when each passed, at its first attempt where `is_strict`, else at its second one at the latest."""
    cache.unlink(missing_ok=True)
    counting = ("-p", cpu_seconds.__name__) if counts_cpu else ()
    if counts_cpu:
        cpu_seconds.begin()
    code = subprocess.run([*pytest, "-n", str(workers), *_BY_GROUP, *counting], check=False).returncode
    if counts_cpu:
        print(f"\n{cpu_seconds.report()}", flush=True)
    failed = failed_tests(cache)
    files = {name.split("::", 1)[0] for name in failed}
    if code != _FAILED or not 0 < len(files) <= AGAIN_MAX:
        return code
    print(f"\n{len(failed)} FAILED; once more, alone, to see which are unsteady", flush=True)
    again = subprocess.run([*pytest, *_ALONE], check=False).returncode
    broken = set(failed_tests(cache)) if again else set()
    unsteady = [name for name in failed if name not in broken]
    if unsteady:
        print("\nUNSTEADY, passed only alone (a fault to mend):", *unsteady, sep="\n  ", flush=True)
    return code if is_strict else again


def main(arguments: Sequence[str]) -> int:
    """`python -m tests.suite.whole`."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite.whole", description=__doc__)
    parser.add_argument(
        "--strict", action="store_true", help="a test that passes only at its second attempt fails the run"
    )
    parser.add_argument("--workers", type=int, default=WORKERS, help="how many processes run tests")
    parser.add_argument("--cpu-seconds", action="store_true", help="list the files with the most CPU time, as root")
    given = parser.parse_args(arguments)
    class_archives.ensure()
    return run(is_strict=given.strict, workers=given.workers, counts_cpu=given.cpu_seconds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
