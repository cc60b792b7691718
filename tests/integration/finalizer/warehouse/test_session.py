"""What a Spark session of the finalizer has, and lacks, of Hadoop's settings."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration


def test_a_local_session_has_no_defaults_of_yarn_and_mapreduce_and_keeps_all_that_was_set(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    # Writers of files load what they need of MapReduce, which must not bring its defaults back.
    spark.range(1).write.format("noop").mode("overwrite").save()
    context._jvm.org.apache.hadoop.mapred.JobConf(context._jsc.hadoopConfiguration())
    settings = context._jsc.hadoopConfiguration()

    assert settings.get("yarn.resourcemanager.address") is None
    assert settings.get("mapreduce.job.maps") is None
    # Spark's own choice, a default of Hadoop's file systems, and one that Spark has changed.
    assert settings.get("mapreduce.fileoutputcommitter.algorithm.version") == "1"
    assert settings.get("fs.defaultFS") == "file:///"
    assert settings.get("io.file.buffer.size") == "65536"
