"""Frames that are computed once and read several times."""

from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame


def keep(kept: ExitStack, frame: DataFrame) -> DataFrame:
    """The frame, computed when it is first read, until `kept` ends.

    It drops its plan, unlike `persist`. So plans that use it are short, and a write to a table it was read from does not plan it
    again. An executor that is lost takes its part along, which fails the batch: it is run again.
    """
    local = frame.localCheckpoint(eager=False)
    plan: Any = local
    kept.callback(lambda: plan._jdf.queryExecution().logical().rdd().unpersist(False))
    return local
