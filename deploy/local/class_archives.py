"""Archives of Java classes (ahead-of-time caches, JEP 483 and 515): a JVM that uses one starts in less CPU time.

An archive holds classes that another JVM has loaded and linked, and what their methods did, for one Java and one class path. A JVM
checks both, and starts without an archive that does not fit. An older Java refuses the options, so who uses an archive runs on the
Java that made it. `python -m tests.suite.class_archives` makes the archives. They are used where the environment has `VARIABLE`,
as in tests. Everything else, and tests without archives, run on the Java of the machine.
"""

import os
from pathlib import Path
from typing import Final

from deploy.local.paths import LOCAL

VARIABLE: Final = "USES_CLASS_ARCHIVES"
FOLDER: Final = LOCAL / "class-archives"
KAFKA: Final = "kafka.aot"
SPARK: Final = "spark.aot"
#: What starts Spark first computes the driver's command, in a JVM of its own.
LAUNCHER: Final = "launcher.aot"
#: `JAVA_HOME` of the JVMs that use the archives beside it, and the Java that its command starts: a link.
JAVA_HOME: Final = "java"
JDK: Final = "jdk"
#: An object has a header of 8 bytes in place of 12 (JEP 519). An archive fits JVMs that have the same.
_COMPACT: Final = "-XX:+UseCompactObjectHeaders"
#: An archive that does not fit is ignored; a line about it in a process's output is of no use.
_QUIET: Final = "-Xlog:aot*=off,cds*=off"
#: Adapters in machine code are for the features of one processor, which no JVM checks: on another one they end it.
_NO_MACHINE_CODE: Final = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTAdapterCaching", "-XX:-AOTStubCaching")


def java_home(archive: str, folder: Path = FOLDER) -> Path | None:
    """`JAVA_HOME` of who uses an archive; None where archives are not used, or this one or its Java is not there."""
    # The link's end is in `.venv`, which may be made again without it.
    is_there = (folder / archive).exists() and (folder / JDK).exists()
    return folder / JAVA_HOME if is_there and os.environ.get(VARIABLE) else None


def options(archive: str, folder: Path = FOLDER) -> list[str]:
    """Options of a JVM of `java_home` that uses the archive; none where that is None."""
    if java_home(archive, folder) is None:
        return []
    return [f"-XX:AOTCache={folder / archive}", *_NO_MACHINE_CODE, _COMPACT, _QUIET]


def making(archive: str, folder: Path) -> list[str]:
    """JVM options that write an archive when the JVM ends in order. What it says of that is no part of its output."""
    return [
        f"-XX:AOTCacheOutput={folder / archive}",
        *_NO_MACHINE_CODE,
        _COMPACT,
        _QUIET,
        "-XX:+DisplayVMOutputToStderr",
    ]
