"""What the tests of `tests.suite.prefork` start: says where and how it runs, then waits for a signal or ends with a code."""

import json
import os
import signal
import sys
from pathlib import Path


def main() -> None:
    """`wait`, `say`, or `exit CODE`."""
    said = {
        "arguments": sys.argv[1:],
        "folder": str(Path.cwd()),
        "value": os.environ.get("PREFORK_VALUE"),
        "of_tests": "PYTEST_CURRENT_TEST" in os.environ,
        "session": os.getsid(0) == os.getpid(),
        "main": __name__,
        "process": os.getpid(),
        "template": os.getppid(),
        "groups": Path("/proc/self/cgroup").read_text(),
    }
    # `say` leaves it to Python when this goes out.
    print(json.dumps(said), flush=sys.argv[1] != "say")
    if sys.argv[1] in {"wait", "say"}:
        signal.pause()
    sys.exit(int(sys.argv[2]))


if __name__ == "__main__":
    main()
