"""Starts the collector: `python -m services.collector`."""

import contextlib
import os
import sys

from services.rim.process import compiled

# A module is imported once: the build is chosen before the program imports the intake.
BUILD = compiled.choose("collector", os.environ)

from services.collector import program  # noqa: E402

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(program.main(BUILD))
