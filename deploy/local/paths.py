"""Where local runs keep their files: everything under `.local/` of the checkout."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LOCAL: Final = ROOT / ".local"
KAFKA_JARS: Final = LOCAL / "jars" / "kafka"
SPARK_JARS: Final = LOCAL / "jars" / "spark"
#: For a warehouse in an object store.
S3_JARS: Final = LOCAL / "jars" / "s3"
MIRRORMAKER_JARS: Final = LOCAL / "jars" / "mirrormaker"
MIRRORMAKER_PROPERTIES: Final = ROOT / "deploy" / "mirrormaker" / "mirrormaker.properties"
KAFKA_LOG4J: Final = ROOT / "deploy" / "local" / "kafka_log4j2.properties"
#: What tests and the demo run in a browser or in node: packages from npm, unpacked.
PLAYERS: Final = LOCAL / "players"
#: Recorder and player of recordings of pages.
RRWEB: Final = PLAYERS / "rrweb"
#: `prometheus` and `promtool`, for tests.
PROMETHEUS: Final = LOCAL / "prometheus"
#: `moto_server`, for tests: an S3 server.
S3_SERVER: Final = LOCAL / "s3" / "bin" / "moto_server"
