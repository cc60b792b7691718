"""Archives of Java classes (ahead-of-time caches, JEP 483 and 515): a JVM that uses one starts in less CPU time.

An archive holds classes that another JVM has loaded and linked, and what their methods did, for one Java and one class path. A JVM
checks both, and starts without an archive that does not fit. So whoever uses an archive runs on the Java that made it. Archives are
the suite's: `python -m tests.class_archives` makes them, and what it starts is named `VARIABLE`. Everything else, and a suite
without archives, runs on the Java of the machine.
"""

import os
from pathlib import Path
from typing import Final

from deploy.local.paths import LOCAL

#: Set in the environment of whoever uses archives.
VARIABLE: Final = "USES_CLASS_ARCHIVES"
FOLDER: Final = LOCAL / "class-archives"
KAFKA: Final = "kafka.aot"
SPARK: Final = "spark.aot"
#: What starts Spark first computes the driver's command, in a JVM of its own.
LAUNCHER: Final = "launcher.aot"
#: Of an older Java, an archive's options would be errors.
_QUIET: Final = "-Xlog:aot*=off,cds*=off"
#: Adapters in machine code are for the features of one processor, which no JVM checks: on another one they end it.
_NO_MACHINE_CODE: Final = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTAdapterCaching", "-XX:-AOTStubCaching")


def java_home(folder: Path = FOLDER) -> Path:
    """`JAVA_HOME` of the JVMs that use the archives of `folder`."""
    return folder / "java"


def java(archive: str, folder: Path = FOLDER) -> Path | None:
    """The Java that made an archive; None where archives are not used, or one of both is not there."""
    # A link to the real one, which an environment that was made again may no longer have.
    is_there = (folder / archive).exists() and (folder / "jdk").exists()
    return java_home(folder) / "bin" / "java" if os.environ.get(VARIABLE) and is_there else None


def options(archive: str, folder: Path = FOLDER) -> list[str]:
    """Options that use an archive, of JVMs of the Java that made it; none where `java` is None."""
    return [f"-XX:AOTCache={folder / archive}", *_NO_MACHINE_CODE, _QUIET] if java(archive, folder) else []


def making(archive: str, folder: Path) -> list[str]:
    """JVM options that write an archive when the JVM ends in order. What it says of that is no part of its output."""
    return [f"-XX:AOTCacheOutput={folder / archive}", *_NO_MACHINE_CODE, _QUIET, "-XX:+DisplayVMOutputToStderr"]
