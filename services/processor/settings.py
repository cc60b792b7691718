"""The processor's settings, from the environment."""

from pathlib import Path
from typing import ClassVar, Literal, Self

import pydantic

from services.processor.engine.application.failure_rules import FailureRules
from services.rim.http.credentials import Credential, Credentials, digest_of, parse
from services.rim.process.compiled import CompiledSettings
from services.rim.process.crash_points import ARMED_PATTERN
from shared.settings import Settings

ApplicationName = Literal["video_views", "traces", "api_schemas", "api_baselines", "recordings", "users", "alerts"]


class ProcessorSettings(FailureRules, CompiledSettings, Settings):
    """One slot."""

    PREFIX: ClassVar[str] = "PROCESSOR_"

    application: ApplicationName = pydantic.Field(default="video_views", description="application that the slot runs")
    slot: str = pydantic.Field(
        default="0/0", pattern=r"[A-Za-z0-9._-]+/[0-9]+", description="<host>/<slot>, e.g. pod-0/1"
    )
    replica: int = pydantic.Field(default=0, ge=0, le=9, description="0 for the home replica, 1 and more for standbys")
    standbys: int = pydantic.Field(default=0, ge=0, le=9, description="standbys of each slot; 0: none")
    suspect_ms: int = pydantic.Field(
        default=1_500, ge=300, le=60_000, description="silence after which a standby takes over"
    )
    hand_back_ms: int = pydantic.Field(
        default=10_000,
        ge=0,
        le=3_600_000,
        description="time for which the home replica is caught up before it takes its slot back",
    )
    state_dir: Path = pydantic.Field(default=Path("state"), description="a folder for the local stores")
    admin_host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of health and metrics; 0.0.0.0 in a container"
    )
    admin_port: int = pydantic.Field(default=9102, ge=1, le=65535, description="port of health and metrics")
    lookup_host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of the lookups; 0.0.0.0 in a container"
    )
    lookup_port: int = pydantic.Field(default=9103, ge=1, le=65535, description="port of the lookups")
    lookup_url: str = pydantic.Field(
        default="",
        pattern=r"(https?://[^\s@]+)?",
        description="where other slots reach the lookups; by default this host's name",
    )
    lookup_token: pydantic.SecretStr | None = pydantic.Field(
        default=None,
        min_length=16,
        description="bearer token with which slots of one application forward requests to each other; without it lookups are off",
    )
    lookup_credentials: pydantic.SecretStr = pydantic.Field(
        default=pydantic.SecretStr(""),
        description="callers of lookups: name=scope,scope=SHA-256 of its token[=customer,customer], separated by spaces",
    )
    lookup_certificate_file: str = pydantic.Field(
        default="", description="PEM file of the lookups' certificate and its chain; with it they are HTTPS alone"
    )
    lookup_key_file: str = pydantic.Field(default="", description="PEM file of that certificate's key")
    lookup_ca_file: str = pydantic.Field(
        default="",
        description="PEM file of the authorities that other slots' certificates are checked with; empty: the system's",
    )
    request_ms_max: int = pydantic.Field(
        default=5_000,
        ge=100,
        le=60_000,
        description="longest time before a request is answered, with 503 if nothing else",
    )
    commit_interval_ms: int = pydantic.Field(
        default=200, ge=20, le=5_000, description="time between two commits of a partition"
    )
    flush_interval_ms: int = pydantic.Field(
        default=15_000, ge=100, le=60_000, description="time between two writes of a partition's local store"
    )
    rewrite_interval_ms: int = pydantic.Field(
        default=86_400_000,
        ge=100,
        le=30 * 86_400_000,
        description="time after which a local store's files are written again without deleted rows",
    )
    session_ms: int = pydantic.Field(
        default=6_000, ge=1_000, le=20_000, description="silence after which the group gives its partitions to others"
    )
    commit_ms_max: int = pydantic.Field(
        default=10_000,
        ge=500,
        le=60_000,
        description="longest commit; after this its outcome is unclear and the partition is taken over again",
    )
    revoke_ms_max: int = pydantic.Field(
        default=5_000, ge=500, le=60_000, description="time for the last commit of revoked partitions"
    )
    refused_ms_max: int = pydantic.Field(
        default=30_000, ge=0, le=600_000, description="how long missing permissions are retried before the slot ends"
    )
    append_lead_ms_max: int = pydantic.Field(
        default=300_000,
        ge=60_000,
        le=86_400_000,
        description="how far ahead of the present a broker may stamp a record; one beyond it does not move the clock",
    )
    store_open_ms_max: int = pydantic.Field(
        default=30_000,
        ge=100,
        le=600_000,
        description="how long the slot waits for another process to release the store's files",
    )
    store_kept_ms: int = pydantic.Field(
        default=21_600_000,
        ge=60_000,
        le=604_800_000,
        description="how long the local store of a partition that has moved away is kept; after it, its files are deleted",
    )
    poll_records_max: int = pydantic.Field(
        default=5_000, ge=1, le=100_000, description="records taken from the client at once"
    )
    poll_interval_ms_max: int = pydantic.Field(
        default=20_000, ge=1_000, le=600_000, description="time without a poll after which the group expels the slot"
    )
    fetch_kbytes_max: int = pydantic.Field(
        default=32_768, ge=1_024, le=1_048_576, description="KiB fetched and not yet read"
    )
    waiting_records_max: int = pydantic.Field(
        default=20_000,
        ge=1,
        le=1_000_000,
        description="records of one partition's input that are read and not yet folded",
    )
    dirty_rows_max: int = pydantic.Field(
        default=20_000, ge=1, le=1_000_000, description="changed rows of one partition that make a commit due at once"
    )
    block_cache_bytes: int = pydantic.Field(
        default=64 * 1024 * 1024, ge=1024 * 1024, le=2**40, description="RocksDB's block cache, of all partitions"
    )
    write_buffer_bytes: int = pydantic.Field(
        default=64 * 1024 * 1024, ge=1024 * 1024, le=2**40, description="RocksDB's write buffers, of all partitions"
    )
    cache_rows_max: int = pydantic.Field(
        default=200_000, ge=1_000, le=100_000_000, description="decoded rows in the cache, of all partitions"
    )
    cache_bytes_max: int = pydantic.Field(
        default=128 * 1024 * 1024,
        ge=1024 * 1024,
        le=2**40,
        description="encoded size of these rows; decoded they take more",
    )
    waiting_bytes_max: int = pydantic.Field(
        default=64 * 1024 * 1024,
        ge=1024 * 1024,
        le=2**40,
        description="records read and not yet folded, of all partitions",
    )
    dirty_bytes_max: int = pydantic.Field(
        default=128 * 1024 * 1024,
        ge=1024 * 1024,
        le=2**40,
        description="changed rows not yet in a checkpoint, of all partitions",
    )
    unflushed_bytes_max: int = pydantic.Field(
        default=256 * 1024 * 1024,
        ge=1024 * 1024,
        le=2**40,
        description="committed rows not yet in the local store, of all partitions",
    )
    objects: str = pydantic.Field(
        default="objects",
        min_length=1,
        description="where recordings are stored, the same for all slots: a folder, or an address as s3://bucket/prefix",
    )
    media_threads: int = pydantic.Field(default=4, ge=1, le=64, description="objects of a slot that are stored at once")
    object_refused_ms: int = pydantic.Field(
        default=900_000,
        ge=0,
        le=86_400_000,
        description="an object that the store answers 4xx for this time is rejected, and its session continues without it",
    )
    version: str = pydantic.Field(
        default="",
        max_length=64,
        description="version of the application; by default a digest of its code, see quarantine in processor.md",
    )
    crash_at: str | None = pydantic.Field(
        default=None, pattern=ARMED_PATTERN, description="tests only: see rim.crash_points"
    )

    @pydantic.model_validator(mode="after")
    def _session_fits_the_poll_interval(self) -> Self:
        # The Kafka client refuses it.
        if self.session_ms > self.poll_interval_ms_max:
            raise ValueError("PROCESSOR_SESSION_MS must be no more than PROCESSOR_POLL_INTERVAL_MS_MAX")
        return self

    @pydantic.model_validator(mode="after")
    def _lookups_fit_together(self) -> Self:
        try:
            parse(self.lookup_credentials.get_secret_value())
        except ValueError as error:
            raise ValueError(f"PROCESSOR_LOOKUP_CREDENTIALS: {error}") from None
        if bool(self.lookup_certificate_file) != bool(self.lookup_key_file):
            raise ValueError("PROCESSOR_LOOKUP_CERTIFICATE_FILE and PROCESSOR_LOOKUP_KEY_FILE go together")
        return self

    @property
    def lookup_certificate_files(self) -> list[Path]:
        """PEM files of certificates that lookups rest on."""
        return [Path(name) for name in (self.lookup_certificate_file, self.lookup_ca_file) if name]

    @property
    def lookup_credentials_known(self) -> Credentials:
        """Who may ask lookups: those of the setting, and the other slots of the application, operators' commands too."""
        known = parse(self.lookup_credentials.get_secret_value())
        if self.lookup_token is not None:
            own = digest_of(self.lookup_token.get_secret_value())
            known.append(Credential("slots", frozenset({"slots", "operators", "partitions"}), own))
        return Credentials(known)
