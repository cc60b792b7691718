"""The finalizer's settings: `FINALIZER_...`, read once in `__main__`."""

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

import pydantic

from services.finalizer.row_topics import ALL as ROW_TOPICS
from services.finalizer.row_topics import APPLICATIONS, RowTopic
from services.finalizer.transforms.rollups import MEMBERS_MAX, Sets
from services.rim.database.postgres import Dsn
from services.rim.process.crash_points import ARMED_PATTERN
from shared.measures import DIMENSIONS, SOURCE
from shared.settings import Settings

_DIMENSION: Final = f"({'|'.join(DIMENSIONS)})"
#: What makes a connection to Kafka safe: fields `kafka_...` for all topics, `views_...` for the cluster that has the views.
_SECURITY: Final = (
    "security_protocol",
    "ca_file",
    "certificate_file",
    "key_file",
    "key_password",
    "sasl_mechanism",
    "username",
    "password",
)
_APPLICATION: Final = f"({'|'.join(APPLICATIONS)})"
_DAYS: Final = "how long rows are kept; 0: for ever"
_DAYS_MAX: Final = 36_500
#: A view that goes on has a row a day, in another hour each. The former must be kept still: else both count until the next batch.
_RECENT_DAYS_MIN: Final = 1.25

#: A view counts within this many days of the day it is stored under: that of its session's first beacon.
ROLLUP_DAYS_FROM_VIEW: Final = 7


def is_local(location: str) -> bool:
    """Whether the location is a folder of this machine (or one that is mounted here)."""
    return "://" not in location


def _absolute(location: str) -> str:
    return str(Path(location).absolute()) if is_local(location) else location.rstrip("/")


#: Where tables or checkpoints are: an absolute path, or `scheme://...` without a slash at its end.
Location = Annotated[str, pydantic.Field(min_length=1), pydantic.AfterValidator(_absolute)]


class FinalizerSettings(Settings):
    """Where the warehouse lies, how large a batch may be, how long things may take, and how long they are kept."""

    PREFIX: ClassVar[str] = "FINALIZER_"

    warehouse_dir: Location = pydantic.Field(description="folder or s3a:// address of the Delta tables")
    checkpoint_dir: Location = pydantic.Field(description="the streams' checkpoints; one driver at a time")
    jars_dir: Path = pydantic.Field(description="folder with the Kafka connector's and Delta's jars")
    postgres_dsn: Dsn = pydantic.Field(description="postgresql://... of the serving database")
    customers_dsn: Dsn | None = pydantic.Field(
        default=None, description="postgresql://... of the customers' database, if it is not the serving one"
    )
    accounts_dsn: Dsn | None = pydantic.Field(
        default=None, description="postgresql://... of the accounts' database, if it is not the serving one"
    )
    objects: str = pydantic.Field(
        default="", description="PROCESSOR_OBJECTS of recordings: where a deletion finds them; empty: there are none"
    )
    deletion_settle_seconds: float = pydantic.Field(
        default=600.0,
        ge=0,
        le=86_400,
        description="wait after a request to delete data, for spooled beacons and open traces",
    )
    postgres_away_seconds_max: float = pydantic.Field(
        default=60.0, gt=0, le=3600, description="seconds without Postgres after which the batch fails"
    )
    views_bootstrap: str | None = pydantic.Field(
        default=None, min_length=1, description="host:port of the cluster that has topic views, if it is another one"
    )
    views_security_protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] | None = pydantic.Field(
        default=None,
        description="security protocol of that cluster, with the settings below; without it, those of the first cluster hold",
    )
    views_ca_file: str = pydantic.Field(default="", description="as PLAYHEAD_KAFKA_CA_FILE")
    views_certificate_file: str = pydantic.Field(default="", description="as PLAYHEAD_KAFKA_CERTIFICATE_FILE")
    views_key_file: str = pydantic.Field(default="", description="as PLAYHEAD_KAFKA_KEY_FILE")
    views_key_password: pydantic.SecretStr | None = pydantic.Field(default=None, description="password of the key file")
    views_sasl_mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] = pydantic.Field(
        default="SCRAM-SHA-512", description="as PLAYHEAD_KAFKA_SASL_MECHANISM"
    )
    views_username: str = pydantic.Field(default="", description="user name of the finalizer at that cluster")
    views_password: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=1, description="password of FINALIZER_VIEWS_USERNAME"
    )
    trigger_seconds: float = pydantic.Field(
        default=30.0, ge=0.1, le=3600, description="time between the starts of two batches of views"
    )
    raw_trigger_seconds: float = pydantic.Field(
        default=60.0,
        ge=0.1,
        le=3600,
        description="time between the starts of two batches of each other stream",
    )
    rollup_seconds: float = pydantic.Field(
        default=60.0,
        ge=0.1,
        le=3600,
        description="time between two rounds that count changed hours again; until then hot rows have them",
    )
    offsets_per_trigger_max: int = pydantic.Field(
        default=100_000, ge=1, le=10_000_000, description="offsets of one batch of views"
    )
    batch_bytes_max: int = pydantic.Field(
        default=64 * 1024 * 1024,
        ge=1_024,
        le=2**31,
        description="bytes of views that are merged, and that the driver holds, at a time; a larger batch is landed in pieces",
    )
    raw_offsets_per_trigger_max: int = pydantic.Field(
        default=400_000,
        ge=1,
        le=10_000_000,
        description="offsets of one batch of each other stream",
    )
    slices_max: int = pydantic.Field(
        default=500,
        ge=1,
        le=10_000,
        description="slices rebuilt and published in one transaction; a round may take several",
    )
    rollup_by: str = pydantic.Field(
        default=",".join(DIMENSIONS),
        pattern=rf"^({_DIMENSION}(\+{_DIMENSION}){{0,3}}(,{_DIMENSION}(\+{_DIMENSION}){{0,3}}){{0,19}})?$",
        description="dimensions by which rollups are broken down, or several joined by +; the total and source are always there",
    )
    members_max: int = pydantic.Field(
        default=MEMBERS_MAX,
        ge=1,
        le=1_000_000,
        description="members of each of these that a customer's hour keeps apart, those with the most views; the rest is (other)",
    )
    drain_seconds_max: float = pydantic.Field(
        default=60.0, gt=0, le=600, description="time for the running batch after SIGTERM"
    )
    cores: int = pydantic.Field(
        default=2, ge=1, le=256, description="threads of the local Spark; spark-submit has its own"
    )
    shuffle_partitions: int = pydantic.Field(default=2, ge=1, le=1024, description="tasks of one Spark shuffle")
    codegen: bool = pydantic.Field(
        default=False, description="compile plans: pays for batches of hundreds of thousands of views"
    )
    applications: str = pydantic.Field(
        default=",".join(APPLICATIONS),
        pattern=rf"^({_APPLICATION}(,{_APPLICATION})*)?$",
        description="applications whose topics are landed, besides views",
    )
    driver_memory: str = pydantic.Field(
        default="2g", pattern=r"^\d+[mg]$", description="heap of the JVM, as 2g or 900m"
    )
    admin_host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of health and metrics; 0.0.0.0 in a container"
    )
    admin_port: int = pydantic.Field(default=9103, ge=0, le=65535, description="port of health and metrics")
    crash_at: str | None = pydantic.Field(
        default=None, pattern=ARMED_PATTERN, description="tests only: see rim.crash_points"
    )
    auto_compact: bool = pydantic.Field(default=True, description="whether small files are joined as they become many")
    maintenance_seconds: float = pydantic.Field(
        default=3600.0,
        gt=0,
        le=604_800,
        description="time between two rounds of compaction, retention and vacuum, over restarts",
    )
    vacuum_hours: int = pydantic.Field(
        default=168, ge=1, le=8760, description="hours for which files that no version needs are kept"
    )
    bronze_days: int = pydantic.Field(default=90, ge=0, le=_DAYS_MAX, description=_DAYS)
    late_days: int = pydantic.Field(default=90, ge=0, le=_DAYS_MAX, description=_DAYS)
    rejected_days: int = pydantic.Field(default=90, ge=0, le=_DAYS_MAX, description=_DAYS)
    unparsed_days: int = pydantic.Field(default=0, ge=0, le=_DAYS_MAX, description=_DAYS)
    applications_days: int = pydantic.Field(
        default=90, ge=0, le=_DAYS_MAX, description=f"of applications' tables; {_DAYS}"
    )
    views_days: int = pydantic.Field(default=0, ge=0, le=_DAYS_MAX, description=_DAYS)
    minutes_days: int = pydantic.Field(default=0, ge=0, le=_DAYS_MAX, description=f"rollups by minute; {_DAYS}")
    rollups_days: int = pydantic.Field(
        default=0, ge=0, le=_DAYS_MAX, description=f"rollups by hour and day, here and in Postgres; {_DAYS}"
    )
    recent_days: float = pydantic.Field(
        default=7.0,
        ge=0,
        le=100_000,
        description=f"days of finished views in Postgres, by the hour; at least {_RECENT_DAYS_MIN}, or 0: none",
    )

    @pydantic.field_validator("recent_days")
    @classmethod
    def _has_former_rows(cls, days: float) -> float:
        if 0 < days < _RECENT_DAYS_MIN:
            raise ValueError(f"at least {_RECENT_DAYS_MIN}, or 0")
        return days

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

    @pydantic.model_validator(mode="after")
    def _views_security_fits_together(self) -> Self:
        given = self.model_fields_set & {f"views_{name}" for name in _SECURITY}
        if given and not (self.views_bootstrap and self.views_security_protocol):
            raise ValueError(
                "FINALIZER_VIEWS_BOOTSTRAP and FINALIZER_VIEWS_SECURITY_PROTOCOL must be set where other settings of that"
                " cluster are"
            )
        try:
            Settings.model_validate(self._views_connection())
        except pydantic.ValidationError as error:
            message = "; ".join(problem["msg"] for problem in error.errors())
            raise ValueError(message.replace("PLAYHEAD_KAFKA_", "FINALIZER_VIEWS_")) from None
        return self

    @property
    def views_kafka(self) -> Settings:
        """The cluster that has topic `views`: another one where it is named, else that of all topics."""
        return self.model_copy(update=self._views_connection())

    def _views_connection(self) -> dict[str, object]:
        if self.views_bootstrap is None:
            return {}
        if self.views_security_protocol is None:
            return {"kafka_bootstrap": self.views_bootstrap}
        own = {f"kafka_{name}": getattr(self, f"views_{name}") for name in _SECURITY}
        return {"kafka_bootstrap": self.views_bootstrap, **own}

    @property
    def customers_database(self) -> str:
        """Where limits that customers have of their own are."""
        return (self.customers_dsn or self.postgres_dsn).get_secret_value()

    @property
    def accounts_database(self) -> str:
        """Where requests to delete data are."""
        return (self.accounts_dsn or self.postgres_dsn).get_secret_value()

    @property
    def row_topics(self) -> list[RowTopic]:
        """The topics of applications that are landed."""
        return [topic for topic in ROW_TOPICS if topic.application in self.applications.split(",")]

    @property
    def sets(self) -> Sets:
        """What rollups are broken down by: of each set its dimensions, in order, the total first.

        By client they always are: no other figure can say whether a median mixes clients that measure differently.
        """
        chosen = [tuple(one.split("+")) for one in self.rollup_by.split(",") if one]
        return tuple(dict.fromkeys([(), *chosen, (SOURCE,)]))
