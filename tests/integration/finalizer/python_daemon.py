"""Spark's Python daemon, which has imported what the finalizer's functions need: each of its workers is a fork of it.

Spark ends a worker that has had nothing to do for a minute, and the next one would import hundreds of modules again.
"""

import gc

import pandas as pd  # noqa: F401  (as Spark does for functions over Arrow)
import pyarrow as pa  # noqa: F401
from pyspark import daemon

from services.finalizer import folding  # noqa: F401

if __name__ == "__main__":
    # A worker looks for garbage after each task.
    gc.collect()
    gc.freeze()
    daemon.manager()
