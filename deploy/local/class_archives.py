"""Archives of Java classes (ahead-of-time caches, JEP 483 and 515): a JVM that uses one starts in less CPU time.

An archive holds classes that another JVM has loaded and linked, and how often their methods ran, for one Java and one class path. A
JVM checks both, and starts without the archive when they differ. So whoever uses an archive runs on the Java that made it.
`python -m tests.class_archives` makes the archives; without them JVMs only start more slowly, on the Java of the machine.
"""

from pathlib import Path
from typing import Final

from deploy.local.paths import LOCAL

FOLDER: Final = LOCAL / "class-archives"
KAFKA: Final = FOLDER / "kafka.aot"
SPARK: Final = FOLDER / "spark.aot"
#: What starts Spark first computes the driver's command, in a JVM of its own.
LAUNCHER: Final = FOLDER / "launcher.aot"
#: `JAVA_HOME` of the JVMs that use an archive.
JAVA_HOME: Final = FOLDER / "java"
#: An archive that does not fit is ignored; a line about it in a process's output is of no use.
_QUIET: Final = "-Xlog:aot*=off,cds*=off"


def java(archive: Path) -> Path | None:
    """The Java that made `archive`; None when there is no archive."""
    return JAVA_HOME / "bin" / "java" if archive.exists() else None


def options(archive: Path) -> list[str]:
    """JVM options that use `archive`; none when it has not been made."""
    return [f"-XX:AOTCache={archive}", _QUIET] if archive.exists() else []


def making(archive: Path) -> list[str]:
    """JVM options that write an archive when the JVM ends in order; `keep` puts it in its place then."""
    # What it says of the archive is no part of its output, which may be read.
    return [f"-XX:AOTCacheOutput={_unfinished(archive)}", _QUIET, "-XX:+DisplayVMOutputToStderr"]


def keep(archive: Path) -> None:
    """Puts a written archive in its place. A JVM does not notice that the rest of one is missing, so it is written elsewhere."""
    _unfinished(archive).rename(archive)


def _unfinished(archive: Path) -> Path:
    return archive.with_suffix(".unfinished")
