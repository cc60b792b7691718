"""A command of the demo whose services start as forks: `python -m tests.integration.deploy.demo_command deploy.demo …`.

A run of the demo starts some fifteen Python processes, each of which imports for a second of CPU time. All runs of a file of tests
have their services of the same templates (`tests.prefork`), which are made where this module is imported: in the template of the
command itself.
"""

import importlib
import runpy
import sys
from typing import Final

from deploy.local import process
from tests import prefork

COMMANDS: Final = ("deploy.demo", "deploy.demo.load")
_SERVICES: Final = (
    *("services.collector", "services.processor", "services.finalizer", "services.serving", "services.query"),
    *("services.dashboard", "services.notifications", "loadtest.players", "loadtest.audience"),
)
for _command in COMMANDS:
    importlib.import_module(f"{_command}.__main__")
    # It is run from the beginning, as `python -m` does.
    del sys.modules[f"{_command}.__main__"]
for _service in _SERVICES:
    prefork.template_of(_service)


def main() -> None:
    """Runs the command that is the first argument, with the others."""
    command, *arguments = sys.argv[1:]
    if command not in COMMANDS:
        sys.exit(f"no command of the demo: {command}")
    process.launch = prefork.start
    sys.argv = [command, *arguments]
    runpy.run_module(command, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
