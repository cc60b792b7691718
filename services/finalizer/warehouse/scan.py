"""Reads of a table whose files are looked up once.

A plain read of a table with deletion vectors looks its files up three times, each by a job of Spark: for the condition, for the
vectors, and for the scan. The second lists every file of the table, however few are read. Here the table's snapshot gives the
files that the condition leaves, and the frame is made of them, as in Delta's own merge.
"""

from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession

from services.finalizer.warehouse.tables import Table

_WITHOUT_STATISTICS: Final = False
_STREAMS: Final = False
#: A reader waits until it has the newest version.
_MAY_BE_OLDER: Final = False


def read_where(spark: SparkSession, warehouse: str, table: Table, condition: Column) -> DataFrame:
    """The rows of a table as it is now for which `condition` is true."""
    session: Any = spark
    jvm: Any = spark.sparkContext._jvm
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, table.path(warehouse))
    snapshot = log.update(_MAY_BE_OLDER, none, none)
    parts = jvm.PythonUtils.toSeq(_parts(spark, snapshot.schema(), condition))
    files = snapshot.filesForScan(parts, _WITHOUT_STATISTICS).files()
    return DataFrame(log.createDataFrame(snapshot, files, _STREAMS, none), spark).where(condition)


def _parts(spark: SparkSession, schema: Any, condition: Column) -> list[Any]:
    """What ANDs join in the condition: a part of partition columns leaves out whole partitions.

    Optimised, because bounds of files are compared with literals alone, and not with casts of them.
    """
    session: Any = spark
    context: Any = spark.sparkContext
    asked: Any = condition
    rows = session._jsparkSession.createDataFrame(context._jsc.emptyRDD(), schema).where(asked._jc)
    left, parts = [rows.queryExecution().optimizedPlan().condition()], []
    while left:
        part = left.pop()
        if part.nodeName() == "And":
            left += [part.right(), part.left()]
        else:
            parts.append(part)
    return parts
