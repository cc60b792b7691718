"""Starts a broker as the public Kafka image does: each variable KAFKA_A_B is property a.b, the data are formatted once."""

import os
import subprocess
import sys
from pathlib import Path

_HOME = Path("/opt/kafka")
_PROPERTIES = Path("/tmp/server.properties")  # noqa: S108 - of the container's own
#: Of the image, not of the broker.
_OTHERS = ("KAFKA_HEAP_OPTS",)


def main() -> None:
    """Becomes the broker."""
    settings = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in os.environ.items()
        if name.startswith("KAFKA_") and name not in _OTHERS
    }
    _PROPERTIES.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    java = (
        "java",
        *os.environ.get("KAFKA_HEAP_OPTS", "-Xms512m -Xmx512m").split(),
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile=file:{_HOME}/kafka_log4j2.properties",
        "-cp",
        f"{_HOME}/libs/*",
    )
    if not (Path(settings["log.dirs"]) / "meta.properties").exists():
        cluster = os.environ["CLUSTER_ID"]
        format_ = (*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(_PROPERTIES))
        if code := subprocess.run(format_, check=False).returncode:
            sys.exit(code)
    command = (*java, "kafka.Kafka", str(_PROPERTIES))
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
