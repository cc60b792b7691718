"""A command of the demo whose services start as forks: `python -m tests.integration.deploy.demo_command deploy.demo …`.

A run of the demo starts some fifteen Python processes, each of which imports for half a second of CPU time and more.
"""

import importlib
import runpy
import sys
from typing import Final

from deploy.local import process
from tests.suite import prefork

COMMANDS: Final = ("deploy.demo", "deploy.demo.load")
for _command in COMMANDS:
    importlib.import_module(f"{_command}.__main__")
    # It is run from the beginning, as `python -m` does.
    del sys.modules[f"{_command}.__main__"]


def main() -> None:
    """Runs the command that is the first argument, with the others."""
    command, *arguments = sys.argv[1:]
    if command not in COMMANDS:
        sys.exit(f"no command of the demo: {command}")
    process.launch, run = prefork.start, prefork.Run()
    sys.argv = [command, *arguments]
    try:
        runpy.run_module(command, run_name="__main__", alter_sys=True)
    finally:
        run.end()


if __name__ == "__main__":
    main()
