"""Runs the benchmarks one after the other and tells all goals in one table: `python -m bench [NAME ...]`.

Each checks its results before it tells a speed. The exit code is 1 when one found something missing, doubled or wrong.
A goal that was missed is told, and is no failure.
"""

import argparse
import subprocess
import sys

from bench import report
from bench.parts import PARTS
from bench.results import kept, table


def main() -> int:
    """0 when every benchmark ran and was right."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PARTS], metavar="NAME", help=", ".join(PARTS))
    names = parser.parse_args().names or list(PARTS)
    failed = [
        name for name in names if subprocess.run([sys.executable, "-m", *PARTS[name]], check=False).returncode != 0
    ]
    report.main()
    print("\n".join(["", *table([part for name in names for part in kept(name)])]))
    if failed:
        print(f"failed, figures are of an earlier run: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
