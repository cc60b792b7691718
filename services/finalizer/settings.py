"""The finalizer's settings: `FINALIZER_...`, read once in `__main__`."""

from pathlib import Path
from typing import ClassVar

import pydantic

from services.rim.crash_points import ARMED_PATTERN
from services.rim.postgres import Dsn
from shared.settings import Settings


class FinalizerSettings(Settings):
    """Where the warehouse lies, how large a batch may be, and how long things may take."""

    PREFIX: ClassVar[str] = "FINALIZER_"

    warehouse_dir: Path = pydantic.Field(description="folder of the Delta tables")
    checkpoint_dir: Path = pydantic.Field(description="folder of the stream's checkpoint; one driver at a time")
    jars_dir: Path = pydantic.Field(description="folder with the Kafka connector's and Delta's jars")
    postgres_dsn: Dsn = pydantic.Field(description="postgresql://... of the serving database")
    postgres_away_seconds_max: float = pydantic.Field(60.0, gt=0, le=3600, description="then the batch fails")
    trigger_seconds: float = pydantic.Field(30.0, ge=0.1, le=3600)
    offsets_per_trigger_max: int = pydantic.Field(100_000, ge=1, le=10_000_000, description="offsets of one batch")
    slices_max: int = pydantic.Field(
        500, ge=1, le=10_000, description="slices rebuilt and published in one transaction; a batch may take several"
    )
    drain_seconds_max: float = pydantic.Field(60.0, gt=0, le=600, description="for the running batch after SIGTERM")
    cores: int = pydantic.Field(2, ge=1, le=256, description="threads of the local Spark")
    shuffle_partitions: int = pydantic.Field(2, ge=1, le=1024)
    codegen: bool = pydantic.Field(
        False, description="compile plans: pays for batches of hundreds of thousands of views"
    )
    driver_memory: str = pydantic.Field("2g", pattern=r"^\d+[mg]$", description="heap of the JVM, as 2g or 900m")
    admin_host: str = "0.0.0.0"
    admin_port: int = pydantic.Field(9103, ge=0, le=65535)
    crash_at: str | None = pydantic.Field(None, pattern=ARMED_PATTERN, description="tests only: see rim.crash_points")
    auto_compact: bool = pydantic.Field(True, description="small files are joined as they become many")
