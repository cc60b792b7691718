"""Writes every figure of the documents: `python -m bench.report`."""

import sys

from bench.report.documents import main

if __name__ == "__main__":
    sys.exit(main())
