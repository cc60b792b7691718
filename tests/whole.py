"""Everything, as `make test` runs it: some workers; then alone what failed.

Before the run the archives of Java classes are made, unless they are there. After it, what failed runs once more with nothing
beside it. A test that passes only then is unsteady, which is a fault of the test or of the product: the run names it. With
`--strict` it fails the run. `--workers` says how many run at once, and `--cpu-seconds` which files take how much CPU time.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests import class_archives, cpu_seconds

_PYTEST: Final = (sys.executable, "-m", "pytest")
#: `tests/scheduling.py` says what runs where and in which order; xdist's own order would start the long files late.
_BY_GROUP: Final = ("--dist", "loadfile", "--no-loadscope-reorder")
#: Two more than the cores of continuous integration: tests wait for sessions, graces and starts, and a core would wait with them.
#: With a fifth one each test waits longer for its turn.
WORKERS: Final = 4
_ALONE: Final = ("--last-failed", "--last-failed-no-failures", "none")
#: Failures in more files than these are not examined again. A file, because what its tests share may have failed once for all.
AGAIN_MAX = 12
_CACHE: Final = Path(".pytest_cache/v/cache/lastfailed")
_FAILED: Final = 1
_SHARED_MEMORY: Final = Path("/dev/shm")
#: What a run writes is a tenth of this. Where memory has less room, it is written to disk.
MEMORY_BYTES_MIN: Final = 8 << 30
#: Of a container: cgroup v2, and v1.
_MEMORY_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


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


@contextmanager
def temporary_files(memory: Path = _SHARED_MEMORY, bytes_min: int = MEMORY_BYTES_MIN) -> Iterator[None]:
    """Has what tests write in memory, if there is room: to write it to disk costs CPU time.

    Like pytest, it leaves what was written for whoever looks why a test failed. The next run removes it.
    A TMPDIR that is set stays.
    """
    folder = None if "TMPDIR" in os.environ else _folder_in(memory, bytes_min)
    if folder is None:
        yield
        return
    os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        del os.environ["TMPDIR"]


def _folder_in(memory: Path, bytes_min: int) -> Path | None:
    """A folder of this run, in place of those of runs that are over; None where programs do not run from, or there is no room."""
    ours = f"playhead-{os.getuid()}-"
    for former in memory.glob(f"{ours}*"):
        is_over = not Path("/proc", former.name.removeprefix(ours)).exists()
        if is_over and former.lstat().st_uid == os.getuid():
            shutil.rmtree(former, ignore_errors=True)
    folder = memory / f"{ours}{os.getpid()}"
    try:
        if os.statvfs(memory).f_flag & os.ST_NOEXEC or min(shutil.disk_usage(memory).free, _available()) < bytes_min:
            return None
        folder.mkdir(mode=0o700)
    except OSError:
        return None
    return folder


def _available() -> int:
    """Bytes of memory that this machine, and its container, have left."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    limits = [limit.read_text().strip() for limit in _MEMORY_LIMITS if limit.exists()]
    return min([int(found[1]) << 10 if found else 0, *(int(limit) for limit in limits if limit.isdigit())])


def main(arguments: Sequence[str]) -> int:
    """`python -m tests.whole`."""
    parser = argparse.ArgumentParser(prog="python -m tests.whole", description=__doc__)
    parser.add_argument(
        "--strict", action="store_true", help="a test that passes only at its second attempt fails the run"
    )
    parser.add_argument("--workers", type=int, default=WORKERS, help="how many processes run tests")
    parser.add_argument("--cpu-seconds", action="store_true", help="list the files with the most CPU time, as root")
    given = parser.parse_args(arguments)
    class_archives.ensure()
    with temporary_files():
        return run(is_strict=given.strict, workers=given.workers, counts_cpu=given.cpu_seconds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
