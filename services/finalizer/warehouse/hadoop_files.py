"""Files by Hadoop's file systems: local ones, and those of an object store."""

from typing import Any, Final

from pyspark.sql import SparkSession

_LOG: Final = "_delta_log"


def hadoop_file(spark: SparkSession, path: str) -> tuple[Any, Any, Any]:
    """The JVM, Hadoop's file system of the path, and the path there."""
    context: Any = spark.sparkContext
    where = context._jvm.org.apache.hadoop.fs.Path(path)
    return context._jvm, where.getFileSystem(context._jsc.hadoopConfiguration()), where


def holds_data(spark: SparkSession, table_path: str) -> bool:
    """Whether a table's folder has anything besides its log: rows of any version, or what a writer that died has left."""
    _, files, where = hadoop_file(spark, table_path)
    return bool(files.exists(where)) and any(status.getPath().getName() != _LOG for status in files.listStatus(where))
