"""What a table's log says of its newest version. A query of Spark that asks the same costs many times as much.

These are Delta's own classes: what Spark offers of a table is made by queries.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

#: A reader waits until it has the newest version.
_MAY_BE_OLDER: Final = False
#: Of a folder whose log has no version: there is no table, or its creation was interrupted.
_NO_VERSION: Final = -1


@dataclass(frozen=True)
class Described:
    """A table that is there."""

    #: Of the table that was made: one that takes its place has another.
    id: str
    schema: StructType
    #: As they were set. What Delta adds to those is not among them.
    properties: Mapping[str, str]


def newest(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """The log of a table, and the snapshot of its newest version."""
    session: Any = spark
    jvm: Any = spark.sparkContext._jvm
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
    return log, log.update(_MAY_BE_OLDER, none, none)


def described(spark: SparkSession, path: str) -> Described | None:
    """A table's id, columns and properties; None where no table is."""
    _, snapshot = newest(spark, path)
    if snapshot.version() == _NO_VERSION:
        return None
    found = json.loads(snapshot.metadata().json())["metaData"]
    return Described(found["id"], StructType.fromJson(json.loads(found["schemaString"])), found["configuration"])


def is_known_empty(spark: SparkSession, path: str) -> bool:
    """Whether the newest version is known to have no file: a query would find no row."""
    _, snapshot = newest(spark, path)
    count = snapshot.numOfFilesIfKnown()
    return bool(count.isDefined() and count.get() == 0)
