"""Runs the benchmarks one after the other and prints all goals in one table: `python -m bench [NAME ...]`.

Each checks its results before it reports a speed. The exit code is 1 when one found a row missing, doubled or wrong. A missed goal
is reported, and is not a failure.
"""

import argparse
import subprocess
import sys

from bench.report import documents
from bench.report.parts import PARTS
from bench.report.results import kept, table


def main() -> int:
    """0 when every benchmark ran and was right."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PARTS], metavar="NAME", help=", ".join(PARTS))
    names = parser.parse_args().names or list(PARTS)
    failed = [
        name for name in names if subprocess.run([sys.executable, "-m", *PARTS[name]], check=False).returncode != 0
    ]
    documents.main()
    print("\n".join(["", *table([part for name in names for part in kept(name)])]))
    if failed:
        print(f"failed, figures are of an earlier run: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
