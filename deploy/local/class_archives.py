"""Archives of Java classes (application class-data sharing): a JVM that uses one starts in less CPU time.

An archive holds classes that another JVM has parsed and verified, for one Java and one class path. A JVM checks both, and starts
without the archive when they differ. `python -m tests.class_archives` makes the archives; without them JVMs only start more slowly.
"""

from pathlib import Path
from typing import Final

from deploy.local.paths import LOCAL

FOLDER: Final = LOCAL / "class-archives"
KAFKA: Final = FOLDER / "kafka.jsa"
SPARK: Final = FOLDER / "spark.jsa"
#: An archive that does not fit is ignored; a line about it in a process's output is of no use.
_QUIET: Final = "-Xlog:cds*=off"


def options(archive: Path) -> list[str]:
    """JVM options that use `archive`; none when it has not been made."""
    return [f"-XX:SharedArchiveFile={archive}", _QUIET] if archive.exists() else []


def making(archive: Path) -> list[str]:
    """JVM options that write an archive when the JVM ends in order; `keep` puts it in its place then."""
    return [f"-XX:ArchiveClassesAtExit={_unfinished(archive)}", _QUIET]


def keep(archive: Path) -> None:
    """Puts a written archive in its place. A JVM does not notice that the rest of one is missing, so it is written elsewhere."""
    _unfinished(archive).rename(archive)


def _unfinished(archive: Path) -> Path:
    return archive.with_suffix(".unfinished")
