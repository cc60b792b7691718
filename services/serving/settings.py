"""The settings of the service `serving`, from the environment: `SERVING_POSTGRES_DSN` and so on."""

from typing import ClassVar

import pydantic

from services.rim.database.postgres import Dsn
from services.rim.process.crash_points import ARMED_PATTERN
from shared.settings import Settings


class ServingSettings(Settings):
    """Where hot rows go, how many at once, how often they are compared with the warehouse's sums; the history of topic `live`."""

    PREFIX: ClassVar[str] = "SERVING_"

    postgres_dsn: Dsn = pydantic.Field(description="postgresql://... of the serving database")
    records_max: int = pydantic.Field(default=5_000, ge=1, le=100_000, description="records of one transaction")
    linger_ms: int = pydantic.Field(
        default=50, ge=0, le=10_000, description="how long a first record waits for others of its transaction"
    )
    session_ms: int = pydantic.Field(
        default=10_000,
        ge=1_000,
        le=300_000,
        description="silence after which a process loses its partitions to the others",
    )
    compare_seconds: float = pydantic.Field(
        default=60.0, gt=0, le=3_600, description="time between two comparisons of closed hours with the rollups"
    )
    closed_seconds: float = pydantic.Field(
        default=600.0, ge=0, le=86_400, description="time without a change after which an hour that is over is closed"
    )
    live_days: int = pydantic.Field(
        default=90, ge=0, le=3_650, description="days of topic `live` by minute; 0 lands nothing of it"
    )
    live_pair_days: int = pydantic.Field(
        default=14, ge=0, le=3_650, description="days for which pairs of dimensions are kept, `live_days` at most"
    )
    live_steps_hours: int = pydantic.Field(
        default=26, ge=25, le=744, description="hours for which the steps of 5 s are kept"
    )
    live_customers_max: int = pydantic.Field(
        default=1_000, ge=1, le=100_000, description="customers of a minute; others are added up without a name"
    )
    admin_host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of health and metrics; 0.0.0.0 in a container"
    )
    admin_port: int = pydantic.Field(default=9106, ge=0, le=65535, description="port of health and metrics")
    crash_at: str | None = pydantic.Field(
        default=None, pattern=ARMED_PATTERN, description="tests only: see rim.crash_points"
    )
