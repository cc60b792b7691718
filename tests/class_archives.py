"""Makes the archives of Java classes that the suite's JVMs start from: `python -m tests.class_archives`.

The suite starts dozens of brokers and Sparks. Half of a start's CPU time is loading classes, which an archive saves. Each
archive is made from a run like those of the tests, so it holds the classes that they need, and is made again when the jars or
Java change.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pyspark

from deploy.local import class_archives
from deploy.local.broker import Broker
from deploy.local.paths import KAFKA_JARS, ROOT, SPARK_JARS
from deploy.local.postgres import Postgres
from deploy.topics import create_topics
from shared.settings import Settings
from tests.integration.finalizer.finalizing import Installation, Topic, a_view

_OPTIONS: Final = "JAVA_TOOL_OPTIONS"
_STAMP: Final = class_archives.FOLDER / "stamp"
#: Also beside other work: an archive is made once.
RUN_SECONDS_MAX: Final = 1200.0


def ensure() -> None:
    """Makes both archives unless they are those of these jars and this Java."""
    wanted = _fingerprint()
    if _STAMP.exists() and _STAMP.read_text() == wanted:
        return
    class_archives.FOLDER.mkdir(parents=True, exist_ok=True)
    for old in (_STAMP, class_archives.KAFKA, class_archives.SPARK):
        old.unlink(missing_ok=True)
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
    os.environ[_OPTIONS] = " ".join(class_archives.making(class_archives.KAFKA))
    with Broker(folder / "broker") as broker:
        del os.environ[_OPTIONS]
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
    Topic(installation.bootstrap, "archives").send([a_view(f"view-{number}") for number in range(20)])
    environment = {
        **installation.environment(),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    # Unlike JAVA_TOOL_OPTIONS, which the JVM that makes up the command would follow too.
    environment["SPARK_SUBMIT_OPTS"] = " ".join(class_archives.making(class_archives.SPARK))
    # Under spark-submit the JVM is the parent, so its end, at which it writes the archive, can be waited for.
    result = subprocess.run(
        [
            *(f"{environment['SPARK_HOME']}/bin/spark-submit", "--master", "local[2]", "--driver-memory", "1g"),
            *(str(ROOT / "services/finalizer/__main__.py"), "stream", "--once"),
        ],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=RUN_SECONDS_MAX,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise RuntimeError(f"no archive of Spark's classes: {result.stdout[-4000:]}")
    class_archives.keep(class_archives.SPARK)


def _fingerprint() -> str:
    """Java's version, and name, size and time of every jar."""
    version = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    folders = (KAFKA_JARS, SPARK_JARS, Path(pyspark.__file__).parent / "jars")
    files = [(str(path), path.stat()) for folder in folders for path in sorted(folder.glob("*.jar"))]
    parts = [version, *(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in files)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


if __name__ == "__main__":
    ensure()
