"""Where local runs keep their files: everything under `.local/` of the checkout."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LOCAL: Final = ROOT / ".local"
KAFKA_JARS: Final = LOCAL / "jars" / "kafka"
SPARK_JARS: Final = LOCAL / "jars" / "spark"
#: `prometheus` and `promtool`, for tests.
PROMETHEUS: Final = LOCAL / "prometheus"
