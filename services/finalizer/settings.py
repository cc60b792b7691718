"""The finalizer's settings: `FINALIZER_...`, read once in `__main__`."""

from pathlib import Path
from typing import ClassVar, Final, Self

import pydantic

from services.finalizer.locations import Location
from services.finalizer.transforms.rollups import DIMENSIONS, Sets
from services.rim.crash_points import ARMED_PATTERN
from services.rim.postgres import Dsn
from shared.settings import Settings

_DIMENSION: Final = f"({'|'.join(DIMENSIONS)})"
_DAYS: Final = "days; 0 keeps for ever"

#: A view counts within this many days of the day it is stored under: that of its session's first beacon.
ROLLUP_DAYS_FROM_VIEW: Final = 7


class FinalizerSettings(Settings):
    """Where the warehouse lies, how large a batch may be, how long things may take, and how long they are kept."""

    PREFIX: ClassVar[str] = "FINALIZER_"

    warehouse_dir: Location = pydantic.Field(description="folder or s3a:// address of the Delta tables")
    checkpoint_dir: Location = pydantic.Field(description="the streams' checkpoints; one driver at a time")
    jars_dir: Path = pydantic.Field(description="folder with the Kafka connector's and Delta's jars")
    postgres_dsn: Dsn = pydantic.Field(description="postgresql://... of the serving database")
    postgres_away_seconds_max: float = pydantic.Field(60.0, gt=0, le=3600, description="then the batch fails")
    trigger_seconds: float = pydantic.Field(30.0, ge=0.1, le=3600)
    offsets_per_trigger_max: int = pydantic.Field(100_000, ge=1, le=10_000_000, description="offsets of one batch")
    raw_offsets_per_trigger_max: int = pydantic.Field(
        200_000, ge=1, le=10_000_000, description="the same, of the stream that fills bronze, late and rejected"
    )
    slices_max: int = pydantic.Field(
        500, ge=1, le=10_000, description="slices rebuilt and published in one transaction; a batch may take several"
    )
    rollup_by: str = pydantic.Field(
        ",".join(DIMENSIONS),
        pattern=rf"^({_DIMENSION}(\+{_DIMENSION}){{0,3}}(,{_DIMENSION}(\+{_DIMENSION}){{0,3}}){{0,19}})?$",
        description="what rollups are broken down by: dimensions, or several joined by +; a slice's total is always there",
    )
    drain_seconds_max: float = pydantic.Field(60.0, gt=0, le=600, description="for the running batch after SIGTERM")
    cores: int = pydantic.Field(2, ge=1, le=256, description="threads of the local Spark; spark-submit has its own")
    shuffle_partitions: int = pydantic.Field(2, ge=1, le=1024)
    codegen: bool = pydantic.Field(
        False, description="compile plans: pays for batches of hundreds of thousands of views"
    )
    driver_memory: str = pydantic.Field("2g", pattern=r"^\d+[mg]$", description="heap of the JVM, as 2g or 900m")
    admin_host: str = "0.0.0.0"
    admin_port: int = pydantic.Field(9103, ge=0, le=65535)
    crash_at: str | None = pydantic.Field(None, pattern=ARMED_PATTERN, description="tests only: see rim.crash_points")
    auto_compact: bool = pydantic.Field(True, description="small files are joined as they become many")
    maintenance_seconds: float = pydantic.Field(
        3600.0, gt=0, le=604_800, description="between two rounds of compaction, retention and vacuum"
    )
    vacuum_hours: int = pydantic.Field(168, ge=1, le=8760, description="files that no version needs are kept so long")
    bronze_days: int = pydantic.Field(90, ge=0, description=_DAYS)
    late_days: int = pydantic.Field(90, ge=0, description=_DAYS)
    rejected_days: int = pydantic.Field(90, ge=0, description=_DAYS)
    unparsed_days: int = pydantic.Field(0, ge=0, description=_DAYS)
    views_days: int = pydantic.Field(0, ge=0, description=_DAYS)
    minutes_days: int = pydantic.Field(0, ge=0, description=f"rollups by minute; {_DAYS}")
    rollups_days: int = pydantic.Field(0, ge=0, description=f"rollups by hour and day, here and in Postgres; {_DAYS}")
    recent_days: int = pydantic.Field(7, ge=0, le=100_000, description="days of finished views in Postgres; 0: none")

    @pydantic.model_validator(mode="after")
    def _rollups_rest_on_views(self) -> Self:
        # A late revision rebuilds its slice from the views: were some of them gone, it would count too few.
        for name in ("minutes_days", "rollups_days"):
            days = getattr(self, name) or 10**9
            if self.views_days and days > self.views_days - ROLLUP_DAYS_FROM_VIEW:
                raise ValueError(
                    f"FINALIZER_{name.upper()} must be at least {ROLLUP_DAYS_FROM_VIEW} fewer than FINALIZER_VIEWS_DAYS:"
                    " rollups are rebuilt from views"
                )
        return self

    @property
    def sets(self) -> Sets:
        """What rollups are broken down by: of each set its dimensions, in order, the total first."""
        return ((), *(tuple(one.split("+")) for one in self.rollup_by.split(",") if one))
