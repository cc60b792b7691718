"""Everything, as `make test` runs it: two files at a time, then alone whatever failed.

The tests start brokers, JVMs and browsers on whatever machine there is, and one of them may run into its deadline because another
took the machine. A test that failed is therefore run once more, with nothing beside it; failing again, it has failed. One
that passes then is named as unsteady at the end, for somebody to look at.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

_PYTEST: Final = (sys.executable, "-m", "pytest")
#: Two files at a time: most tests wait for the processes they have started. No reordering, so that the long files begin early.
_BESIDE_EACH_OTHER: Final = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
_ALONE: Final = ("--last-failed", "--last-failed-no-failures", "none")
#: More failures than these are no matter of a busy machine.
AGAIN_MAX = 12
_CACHE: Final = Path(".pytest_cache/v/cache/lastfailed")
_FAILED: Final = 1


def failed_tests(cache: Path) -> list[str]:
    """What pytest wrote down as failed in its last run; empty when it wrote nothing."""
    return sorted(json.loads(cache.read_text())) if cache.exists() else []


def run(cache: Path = _CACHE, pytest: tuple[str, ...] = _PYTEST) -> int:
    """Runs all tests; 0 when each passed, at the second attempt at the latest."""
    cache.unlink(missing_ok=True)
    code = subprocess.run([*pytest, *_BESIDE_EACH_OTHER], check=False).returncode
    failed = failed_tests(cache)
    if code != _FAILED or not 0 < len(failed) <= AGAIN_MAX:
        return code
    print(f"\n{len(failed)} failed beside others; once more, alone", flush=True)
    code = subprocess.run([*pytest, *_ALONE], check=False).returncode
    if code == 0:
        print("\nunsteady, passed only alone:", *failed, sep="\n  ", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(run())
