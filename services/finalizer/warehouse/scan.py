"""Reads of a table whose files are looked up once.

A plain read of a table with deletion vectors looks its files up three times, each by a job of Spark: for the condition, for the
vectors, and for the scan. The second lists every file of the table, however few are read. Here the table's snapshot gives the
files that the condition leaves, and the frame is made of them, as in Delta's own merge.
"""

from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession

from services.finalizer.warehouse.table_log import newest
from services.finalizer.warehouse.tables import Table

_WITHOUT_STATISTICS: Final = False
_STREAMS: Final = False
#: Files of so many bytes in all are read by one task: what is made of few rows is then never exchanged between tasks, which would
#: cost more than to compute it.
_ONE_TASK_BYTES_MAX: Final = 1 << 20


def read_where(spark: SparkSession, warehouse: str, table: Table, condition: Column) -> DataFrame:
    """The rows of a table as it is now for which `condition` is true."""
    jvm: Any = spark.sparkContext._jvm
    log, snapshot = newest(spark, table.path(warehouse))
    parts = jvm.PythonUtils.toSeq(_parts(spark, snapshot.schema(), condition))
    scan = snapshot.filesForScan(parts, _WITHOUT_STATISTICS)
    frame = log.createDataFrame(snapshot, scan.files(), _STREAMS, jvm.scala.Option.empty())
    rows = DataFrame(frame, spark).where(condition)
    size_bytes = scan.scanned().bytesCompressed()
    return rows.coalesce(1) if size_bytes.isDefined() and size_bytes.get() <= _ONE_TASK_BYTES_MAX else rows


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
