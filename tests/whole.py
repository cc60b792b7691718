"""Everything, as `make test` runs it: two workers; then alone what failed.

Before the run the archives of Java classes are made, unless they are there. After it, what failed runs once more with nothing
beside it. A test that passes only then is unsteady, which is a fault of the test or of the product: the run names it. With
`--strict` it fails the run.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests import class_archives

_PYTEST: Final = (sys.executable, "-m", "pytest")
#: `tests/scheduling.py` says what runs where and in which order; xdist's own order would start the long files late.
_TWO_WORKERS: Final = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
_ALONE: Final = ("--last-failed", "--last-failed-no-failures", "none")
#: Failures in more files than these are not examined again. A file, because what its tests share may have failed once for all.
AGAIN_MAX = 12
_CACHE: Final = Path(".pytest_cache/v/cache/lastfailed")
_FAILED: Final = 1


def failed_tests(cache: Path) -> list[str]:
    """What pytest wrote down as failed in its last run; empty when it wrote nothing."""
    return sorted(json.loads(cache.read_text())) if cache.exists() else []


def run(cache: Path = _CACHE, pytest: tuple[str, ...] = _PYTEST, *, is_strict: bool = False) -> int:
    """Runs all tests; 0 when each passed, at its first attempt where `is_strict`, else at its second one at the latest."""
    cache.unlink(missing_ok=True)
    code = subprocess.run([*pytest, *_TWO_WORKERS], check=False).returncode
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


if __name__ == "__main__":
    class_archives.ensure()
    sys.exit(run(is_strict="--strict" in sys.argv[1:]))
