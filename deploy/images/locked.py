"""Prints the packages of a lock file that standard input names as `name==version`, each with its hashes.

deploy/Dockerfile runs it before the project is installed: it needs only Python. Exit code 1 when a package is not in the lock, or
in another version.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")


def locked(wanted: Iterable[str], lock: str) -> Iterator[str]:
    """The lock's entries of the wanted packages; raises `KeyError` with the first that has none."""
    entries = {}
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock):
        if found := _PACKAGE.match(entry):
            kept = [line for line in entry.splitlines() if not line.lstrip().startswith("#")]
            entries[found[1].lower(), found[2]] = "\n".join(kept)
    for line in wanted:
        if found := _PACKAGE.match(line):
            yield entries[found[1].lower(), found[2]]


def main(lock: str) -> int:
    """The command."""
    try:
        entries = list(locked(sys.stdin, Path(lock).read_text(encoding="utf-8")))
    except KeyError as missing:
        print(f"not in {lock}: {'=='.join(missing.args[0])}", file=sys.stderr)
        return 1
    # What should have named them has failed.
    if not entries:
        print("no package was named", file=sys.stderr)
        return 1
    print("\n".join(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
