"""What makes a Spark that runs for minutes cheap: that of the demo and of tests."""

from typing import Final

from deploy.local import class_archives
from deploy.local.paths import SPARK_JARS

#: Spark puts what this names on the class path of its JVMs.
CLASS_PATH: Final = "SPARK_DIST_CLASSPATH"
#: What a Spark of another class path or Java is not given.
OF_ARCHIVES: Final = ("JAVA_HOME", "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", CLASS_PATH)
#: By whether it is shared.
_HEAP: Final = {False: ("-Xms768m", "-Xmn384m"), True: ("-Xms1536m", "-Xmn1g")}
_LITTLE_INLINING: Final = ["-XX:MaxInlineLevel=6", "-XX:FreqInlineSize=120", "-XX:InlineSmallCode=1200"]


def environment(*, is_shared: bool = False) -> dict[str, str]:
    """Environment variables of the process that starts it.

    Most of a short run is starting, for which the first compiler is enough. A JVM that many runs share (`is_shared`) has hot code,
    for which the second one pays after some twenty batches. By default it would take a third of their CPU time, since it copies
    small methods into others many levels deep: with fewer levels it takes half as long. The code cache of the first holds 48 MB by
    default, less than Spark fills: methods would be dropped and compiled again. Jars on the class path are in the archive of
    classes. Young objects have half the heap from the start: they are collected half as often, and few are left to copy then. A
    shared JVM has twice as much: a sixteenth of its CPU time was that of its collector.
    """
    compilers = _LITTLE_INLINING if is_shared else ["-XX:TieredStopAtLevel=1"]
    home = class_archives.java_home(class_archives.SPARK)
    return {
        "JAVA_TOOL_OPTIONS": " ".join([*compilers, "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=240m"]),
        # For drivers alone: the JVM that makes up their command has a smaller heap, and an archive of its own.
        "SPARK_SUBMIT_OPTS": " ".join([*_HEAP[is_shared], *class_archives.options(class_archives.SPARK)]),
        "SPARK_LAUNCHER_OPTS": " ".join(class_archives.options(class_archives.LAUNCHER)),
        CLASS_PATH: ":".join(map(str, sorted(SPARK_JARS.glob("*.jar")))),
        **({} if home is None else {"JAVA_HOME": str(home)}),
    }
