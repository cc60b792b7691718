"""The collector's settings and limits, from the environment: `COLLECTOR_PORT`, `COLLECTOR_BODY_BYTES_MAX` and so on."""

import ipaddress
import re
from pathlib import Path
from typing import ClassVar, Self

import pydantic

from services.collector.admission.bounds import BodyLimits, Limits
from services.collector.http.recordings.uploads import UploadLimits
from services.collector.intake.limits import IntakeLimits
from services.collector.intake.post import Rules
from services.collector.intake.sender.customers import ANYBODY, Customer, Customers
from services.rim.database.postgres import Dsn
from services.rim.process.compiled import CompiledSettings
from shared.chunks import BETWEEN_CHUNKS_SECONDS_MAX, CHUNK_BYTES_MAX
from shared.http.peer import Network
from shared.schemas.beacon import CUSTOMER_ID
from shared.settings import Settings

_ID = re.compile(r"[A-Za-z0-9._-]{0,64}")


#: Of COLLECTOR_TRUSTED_PROXIES: players connect to the collector itself.
NO_PROXIES = "none"


class CollectorSettings(IntakeLimits, CompiledSettings, Settings):
    """What the collector reads besides the common settings."""

    PREFIX: ClassVar[str] = "COLLECTOR_"

    host: str = pydantic.Field(
        default="127.0.0.1",
        min_length=1,
        description="address that players' requests come in on; 0.0.0.0 in a container",
    )
    port: int = pydantic.Field(
        default=8080, ge=0, le=65535, description="port of players' requests; several collectors may share one"
    )
    admin_host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of health and metrics; 0.0.0.0 in a container"
    )
    admin_port: int = pydantic.Field(default=9101, ge=0, le=65535, description="port of health and metrics")
    id: str = pydantic.Field(default="", description="names this process in beacons; empty: host name and process id")
    customers: str = pydantic.Field(default="", description="customer ids, comma separated; empty: any well-formed id")

    customers_file: str = pydantic.Field(
        default="", description="TOML or JSON file of customers, instead of COLLECTOR_CUSTOMERS"
    )
    customers_dsn: Dsn | None = pydantic.Field(
        default=None, description="postgresql://... of a database with table collector.customers, instead of either"
    )
    customers_seconds: float = pydantic.Field(
        default=2.0, gt=0, le=3_600, description="seconds between two checks of the file or table for changes"
    )
    usage_seconds: float = pydantic.Field(
        default=10.0,
        gt=0,
        le=30,
        description="seconds between reports of stored bytes and refusals to the database of COLLECTOR_CUSTOMERS_DSN",
    )
    trusted_proxies: str = pydantic.Field(
        default="",
        description="networks whose X-Forwarded-For is read, comma separated: 10.0.0.0/8; or none",
    )
    places_files: str = pydantic.Field(
        default="", description="databases of MaxMind's format (country, ASN), comma separated"
    )

    customer_beacons_per_second: float = pydantic.Field(
        default=10_000.0,
        gt=0,
        le=1e12,
        description="beacons of a listed customer that has no rate of its own",
    )
    customer_bytes_per_second: float = pydantic.Field(
        default=10_000_000.0, gt=0, le=1e12, description="bytes of bodies and recordings of such a customer"
    )
    customer_bytes_per_day: float = pydantic.Field(
        default=500e9, gt=0, le=1e15, description="bytes that such a customer may store in a day"
    )
    customer_cpu_ms_per_second: float = pydantic.Field(
        default=500.0, gt=0, le=1e12, description="ms of CPU a second that reading such a customer's requests takes"
    )
    customer_spans_per_second: float = pydantic.Field(
        default=10_000.0, gt=0, le=1e12, description="spans of such a customer"
    )
    customer_calls_per_second: float = pydantic.Field(
        default=2_000.0, gt=0, le=1e12, description="API calls of such a customer"
    )
    customer_recordings_per_minute: float = pydantic.Field(
        default=6_000.0, gt=0, le=1e12, description="payloads of recordings of such a customer"
    )
    customer_new_views_per_second: float = pydantic.Field(
        default=1_000.0, gt=0, le=1e12, description="views of such a customer that this process has not seen lately"
    )
    address_requests_per_second: float = pydantic.Field(
        default=2_000.0, gt=0, le=1e9, description="requests of one address, before a key is read"
    )
    connections_max: int = pydantic.Field(
        default=10_000, ge=1, le=1_000_000, description="connections of clients at a time"
    )
    head_seconds_max: float = pydantic.Field(
        default=10.0, gt=0, le=600, description="seconds for a request's head to arrive"
    )
    body_seconds_max: float = pydantic.Field(default=30.0, gt=0, le=600, description="seconds for a body to arrive")
    body_bytes_per_second_min: float = pydantic.Field(
        default=500.0, gt=0, le=1e9, description="average rate of a body that takes longer than a second"
    )
    slow_bodies_by_address_max: int = pydantic.Field(
        default=32, ge=1, le=100_000, description="bodies of one address that take longer than a second"
    )
    slow_bodies_by_key_max: int = pydantic.Field(
        default=256, ge=1, le=100_000, description="the same of one key, where path, query or headers have it"
    )
    in_flight_bytes_max: int = pydantic.Field(
        default=256 * 1024 * 1024,
        ge=1_024,
        le=2**40,
        description="bytes of bodies and records being received or stored",
    )
    in_flight_share_max: float = pydantic.Field(
        default=0.25, gt=0, le=1, description="share of the bytes in flight that one address, and one key, may hold"
    )
    wasted_ms_per_second_max: float = pydantic.Field(
        default=50.0,
        gt=0,
        le=1e6,
        description="ms of CPU a second that one address may take beyond what good requests need",
    )
    rejected_bytes_per_second_max: int = pydantic.Field(
        default=1024 * 1024,
        ge=1_024,
        le=2**40,
        description="bytes into topic rejected, from listed customers and from all others each; the rest is counted",
    )
    throttle_seconds_max: float = pydantic.Field(
        default=5.0, ge=0, le=60, description="seconds a Mux client beyond its customer's rate is held back"
    )

    queue_records_max: int = pydantic.Field(
        default=100_000, ge=1, le=10_000_000, description="records waiting for Kafka"
    )
    queue_kbytes_max: int = pydantic.Field(default=131_072, ge=1_024, le=2_097_151, description="KiB waiting for Kafka")
    linger_ms: int = pydantic.Field(default=5, ge=0, le=1_000, description="ms a Kafka batch waits to fill")
    ack_seconds_max: float = pydantic.Field(default=10.0, gt=0, le=110, description="seconds a request waits for Kafka")
    recording_bytes_max: int = pydantic.Field(
        default=100 * 1024 * 1024, ge=1_024, le=10 * 1024**3, description="bytes of one payload of a session recording"
    )
    recording_uploads_max: int = pydantic.Field(
        default=32,
        ge=1,
        le=10_000,
        description="uploads at a time; each holds up to 1 MB, further ones get 503",
    )
    recording_queue_bytes_max: int = pydantic.Field(
        default=32 * 1024 * 1024, ge=1024 * 1024, le=2**31, description="bytes of recordings on their way to Kafka"
    )
    recording_chunk_seconds_max: float = pydantic.Field(
        default=60.0, gt=0, le=BETWEEN_CHUNKS_SECONDS_MAX / 2, description="seconds for 1 MB of an upload to arrive"
    )
    recording_ack_seconds_max: float = pydantic.Field(
        default=30.0, gt=0, le=110, description="seconds that a chunk waits for Kafka"
    )
    spool_dir: str = pydantic.Field(
        default="",
        description="folder of the spool for Mux clients, of this process alone, on a disk that survives it; empty: no spool",
    )
    spool_bytes_max: int = pydantic.Field(default=1024**3, ge=1024**2, le=2**50, description="bytes of the spool")
    spool_seconds_max: float = pydantic.Field(
        default=1_800.0,
        gt=0,
        le=86_400,
        description="seconds that a spooled request may wait, half the lateness window; then no more are accepted",
    )
    drain_notice_seconds: float = pydantic.Field(
        default=2.0, ge=0, le=300, description="seconds between readiness going away and no new connections"
    )
    drain_seconds_max: float = pydantic.Field(
        default=30.0, gt=0, le=600, description="seconds to finish requests and deliveries after SIGTERM"
    )

    @pydantic.field_validator("customers")
    @classmethod
    def _customers_well_formed(cls, value: str) -> str:
        wrong = [name for name in _split(value) if CUSTOMER_ID.fullmatch(name) is None]
        if wrong:
            raise ValueError(f"not customer ids ([A-Za-z0-9_-]{{1,64}}): {', '.join(wrong)}")
        return value

    @pydantic.field_validator("trusted_proxies")
    @classmethod
    def _proxies_well_formed(cls, value: str) -> str:
        if value.strip() != NO_PROXIES:
            for name in _split(value):
                ipaddress.ip_network(name)
        return value

    @pydantic.model_validator(mode="after")
    def _one_home_for_customers(self) -> Self:
        if sum(map(bool, (self.customers, self.customers_file, self.customers_dsn))) > 1:
            raise ValueError(
                "COLLECTOR_CUSTOMERS, COLLECTOR_CUSTOMERS_FILE and COLLECTOR_CUSTOMERS_DSN: only one of them can be set"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _production_is_not_open(self) -> Self:
        """In production beacons are those of customers, and limits by address are by the client's own."""
        if self.topics_profile != "production":
            return self
        if not (self.customers or self.customers_file or self.customers_dsn):
            raise ValueError(
                "profile production: COLLECTOR_CUSTOMERS_DSN, COLLECTOR_CUSTOMERS_FILE or COLLECTOR_CUSTOMERS must be set;"
                " without one anybody is a customer"
            )
        if not self.trusted_proxies.strip():
            raise ValueError(
                "profile production: COLLECTOR_TRUSTED_PROXIES must be set, to the networks of what stands before the"
                f" collector, or to {NO_PROXIES}"
            )
        return self

    @pydantic.field_validator("id")
    @classmethod
    def _id_well_formed(cls, value: str) -> str:
        if _ID.fullmatch(value) is None:
            raise ValueError("not of [A-Za-z0-9._-]{0,64}")
        return value

    @property
    def listed_customers(self) -> Customers:
        """Those of `customers`, without terms."""
        names = _split(self.customers)
        return Customers(dict.fromkeys(names, Customer())) if names else ANYBODY

    @property
    def proxies(self) -> list[Network]:
        """The networks of `trusted_proxies`."""
        if self.trusted_proxies.strip() == NO_PROXIES:
            return []
        return [ipaddress.ip_network(name) for name in _split(self.trusted_proxies)]

    @property
    def places(self) -> list[Path]:
        """The files of `places_files`."""
        return [Path(name) for name in _split(self.places_files)]

    def upload_limits(self) -> UploadLimits:
        """The part of these settings that bounds uploads of recordings."""
        return UploadLimits(
            payload_bytes_max=self.recording_bytes_max,
            uploads_max=self.recording_uploads_max,
            chunks_max=max(1, self.recording_queue_bytes_max // CHUNK_BYTES_MAX),
            chunk_seconds_max=self.recording_chunk_seconds_max,
            uploads_by_customer_max=max(1, self.recording_uploads_max // 2),
            uploads_by_address_max=max(1, self.recording_uploads_max // 4),
        )

    def limits(self) -> Limits:
        """The part of these settings that bounds a request besides the intake's rules."""
        return Limits(
            bodies=BodyLimits(
                seconds_max=self.body_seconds_max,
                bytes_per_second_min=self.body_bytes_per_second_min,
                slow_by_address_max=self.slow_bodies_by_address_max,
                slow_by_key_max=self.slow_bodies_by_key_max,
            ),
            in_flight_bytes_max=self.in_flight_bytes_max,
            party_share_max=self.in_flight_share_max,
            wasted_seconds_per_second=self.wasted_ms_per_second_max / 1_000,
            address_requests_per_second=self.address_requests_per_second,
            throttle_seconds_max=self.throttle_seconds_max,
            rejected_bytes_per_second_max=self.rejected_bytes_per_second_max,
            customer_rates=Customer(
                beacons_per_second=self.customer_beacons_per_second,
                bytes_per_second=self.customer_bytes_per_second,
                bytes_per_day=self.customer_bytes_per_day,
                cpu_ms_per_second=self.customer_cpu_ms_per_second,
                spans_per_second=self.customer_spans_per_second,
                calls_per_second=self.customer_calls_per_second,
                recordings_per_minute=self.customer_recordings_per_minute,
                new_views_per_second=self.customer_new_views_per_second,
            ),
        )

    def rules(self, collector_id: str, customers: Customers) -> Rules:
        """The part of these settings that the intake goes by."""
        return Rules(
            collector_id=collector_id, customers=customers, **self.model_dump(include=set(IntakeLimits.model_fields))
        )


def _split(customers: str) -> list[str]:
    return [name for part in customers.split(",") if (name := part.strip())]
