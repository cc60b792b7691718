"""Starts a slot or a command: `python -m services.processor [COMMAND ...]`."""

import os
import sys

from services.rim.process import compiled

# A module is imported once: the build is chosen before the program imports the fold.
BUILD = compiled.choose("processor", os.environ)

from services.processor import program  # noqa: E402

if __name__ == "__main__":
    program.leave(program.run(sys.argv[1:], BUILD))
