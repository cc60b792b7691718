"""The Spark session: quiet, in UTC, with the jars of a folder. Nothing is downloaded at run time.

Local by default; under `spark-submit` it uses the given master, memory and jars.
"""

import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from services.finalizer.failures import JobFailed
from services.finalizer.settings import FinalizerSettings, is_local

_LOG4J: Final = Path(__file__).parent / "log4j2.properties"
#: What the Kafka source and Delta need beyond pyspark's own jars, by the start of their files' names.
_JARS: Final = (
    "spark-sql-kafka",
    "spark-token-provider-kafka",
    "kafka-clients",
    "commons-pool2",
    "delta-spark",
    "delta-storage",
)
#: Whose settings nothing here reads: a local session has neither, and Spark sets what its writers need of them.
_UNUSED_DEFAULTS: Final = ("mapred-default.xml", "yarn-default.xml")
#: Of checkpoints on a disk of this machine. As the default, it asks whether a file is there, then renames another to it. The
#: default starts program `readlink` several times for each rename, since Java alone does not know symbolic links from files.
_CHECKPOINTS_HERE: Final[Mapping[str, str]] = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
#: A local session has no pages. By default it would keep the plans of the last 1,000 statements for them all the same, which is
#: most of what fills its memory, and note the state of each job ten times a second.
WITHOUT_PAGES: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.liveUpdate.period": "-1",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.sql.ui.retainedExecutions": "10",
}


class JarsMissing(JobFailed):
    """The jars folder lacks a jar that the session needs; the text names it."""


def start(settings: FinalizerSettings) -> SparkSession:
    """Starts the JVM and the session; raises `JarsMissing`."""
    logging.getLogger("py4j").setLevel(logging.WARNING)
    builder = SparkSession.builder.appName("playhead-finalizer")
    configuration = _configuration(settings)
    if not is_submitted():
        jars = find_jars(settings.jars_dir)
        # Otherwise Spark's workers use the first python on the PATH.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(f"local[{settings.cores}]")
        configuration |= _local(settings, jars)
    if is_local(settings.checkpoint_dir):
        configuration |= _CHECKPOINTS_HERE
    for key, value in configuration.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    if str(session.sparkContext.master).startswith("local"):
        _drop_unused_defaults(session)
    return session


def _drop_unused_defaults(session: SparkSession) -> None:
    """Takes the defaults of MapReduce and YARN out of Hadoop's settings. What an installation sets itself stays.

    They are two thirds of all, and go along with each task that reads or writes files: a seventh of a small batch's CPU time.
    """
    context: Any = session.sparkContext
    # These defaults are loaded with this class, whenever it is first used. With those of file systems all are loaded again.
    context._jvm.org.apache.hadoop.mapred.JobConf(False)
    settings = context._jsc.hadoopConfiguration()
    context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(settings)
    listed = context._jvm.java.io.StringWriter()
    context._jvm.org.apache.hadoop.conf.Configuration.dumpConfiguration(settings, listed)
    for one in json.loads(listed.toString())["properties"]:
        if one["resource"] in _UNUSED_DEFAULTS:
            settings.unset(one["key"])


def is_submitted() -> bool:
    """Whether `spark-submit` has started this process, and its JVM before it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def find_jars(jars_dir: Path) -> list[Path]:
    """The jars the session needs; raises `JarsMissing`."""
    present = sorted(jars_dir.absolute().glob("*.jar"))
    missing = [name for name in _JARS if not any(jar.name.startswith(name) for jar in present)]
    if missing:
        raise JarsMissing(f"{jars_dir} has no jar of {', '.join(missing)}")
    return present


def _local(settings: FinalizerSettings, jars: list[Path]) -> dict[str, str]:
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": jvm_options(),
        **WITHOUT_PAGES,
    }


def jvm_options(environ: Mapping[str, str] = os.environ) -> str:
    """The options of the JVM besides its memory.

    Batches need throughput: pauses delay no request, and G1 takes a sixth more CPU time than the parallel collector. A JVM does not
    start with two collectors, so a collector that the environment names is kept alone. Spark's classes take up to a quarter of a
    gigabyte. Without that size given, the JVM collects all garbage each time that their memory doubles.
    """
    asked = " ".join(environ.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"))
    collector = [] if re.search(r"-XX:\+Use\w+GC", asked) else ["-XX:+UseParallelGC"]
    classes = "-XX:MetaspaceSize=256m"
    return " ".join([*collector, classes, f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", "-Duser.timezone=UTC"])


def _configuration(settings: FinalizerSettings) -> dict[str, str]:
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.warehouse.dir": settings.warehouse_dir,
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.sql.streaming.stopTimeout": "10s",
        # A batch's cost is mostly fixed: planning a hundred columns, compiling what is run once, many tiny tasks.
        "spark.sql.codegen.wholeStage": str(settings.codegen).lower(),
        "spark.sql.codegen.factoryMode": "FALLBACK" if settings.codegen else "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.constraintPropagation.enabled": "false",
        # By default each plan is checked again after every rule that has changed it.
        "spark.sql.lightweightPlanChangeValidation": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        # Vacuum lists folders in so many tasks, however few there are: the default is 10,000.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
        # The source of a MERGE is kept by us, and should the kept copy be lost, the same offsets give the same rows again.
        "spark.databricks.delta.merge.materializeSource": "none",
        "spark.databricks.delta.merge.failSourceCachedAfterMaterialization": "false",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.debug.maxToStringFields": "8",
        "spark.sql.ui.explainMode": "simple",
        # Sketches and histograms of this many groups are held at once before they are sorted instead: the default is 128.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "20000",
        # The fold of a reprocess gets a Kafka partition's records in pieces, not a view's.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    }
