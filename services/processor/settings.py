"""The processor's settings, from the environment."""

from pathlib import Path
from typing import ClassVar, Final, Literal, Self

import pydantic

from services.rim.process.crash_points import ARMED_PATTERN
from shared.settings import Settings

ApplicationName = Literal["video_views", "traces", "api_schemas", "api_baselines", "recordings", "users"]


class ProcessorSettings(Settings):
    """One slot."""

    PREFIX: ClassVar[str] = "PROCESSOR_"

    application: ApplicationName = "video_views"
    slot: str = pydantic.Field("0/0", pattern=r"[A-Za-z0-9._-]+/[0-9]+", description="<host>/<slot>, e.g. pod-0/1")
    replica: int = pydantic.Field(0, ge=0, le=9, description="0 at home; 1, 2 ... where it stands by for the slot")
    standbys: int = pydantic.Field(0, ge=0, le=9, description="how many others stand by for each slot; 0: none")
    suspect_ms: int = pydantic.Field(1_500, ge=300, le=60_000, description="silence after which a standby takes over")
    hand_back_ms: int = pydantic.Field(
        10_000, ge=0, description="how long home is caught up before it has its slot back"
    )
    state_dir: Path = pydantic.Field(Path("state"), description="a folder for the local stores")
    admin_host: str = "0.0.0.0"
    admin_port: int = pydantic.Field(9102, ge=1, le=65535)
    lookup_host: str = "0.0.0.0"
    lookup_port: int = pydantic.Field(9103, ge=1, le=65535)
    lookup_url: str = pydantic.Field(
        "",
        pattern=r"(https?://[^\s@]+)?",
        description="where other slots reach the lookups; by default this host's name",
    )
    lookup_token: pydantic.SecretStr | None = pydantic.Field(
        None, min_length=16, description="the bearer token of lookups, the same for all slots; without it they are off"
    )
    request_ms_max: int = pydantic.Field(
        5_000, ge=100, le=60_000, description="until a request of the application's routes is answered, be it by 503"
    )
    commit_interval_ms: int = pydantic.Field(200, ge=20, le=5_000)
    flush_interval_ms: int = pydantic.Field(15_000, ge=100, le=60_000)
    session_ms: int = pydantic.Field(
        6_000, ge=1_000, le=20_000, description="silence after which the group gives its partitions to others"
    )
    commit_ms_max: int = pydantic.Field(10_000, ge=500, le=60_000, description="then its outcome counts as unclear")
    revoke_ms_max: int = pydantic.Field(5_000, ge=500, le=60_000, description="for committing what is given up")
    refused_ms_max: int = pydantic.Field(
        30_000, ge=0, le=600_000, description="how long missing rights are borne before the slot ends"
    )
    store_open_ms_max: int = pydantic.Field(30_000, ge=100, le=600_000, description="for others to let its files go")
    block_cache_bytes: int = pydantic.Field(64 * 1024 * 1024, ge=1024 * 1024)
    write_buffer_bytes: int = pydantic.Field(64 * 1024 * 1024, ge=1024 * 1024)
    cache_rows_max: int = pydantic.Field(200_000, ge=1_000, description="decoded rows, of all partitions together")
    cache_bytes_max: int = pydantic.Field(
        128 * 1024 * 1024, ge=1024 * 1024, description="of these rows as they are stored; decoded they take more"
    )
    waiting_bytes_max: int = pydantic.Field(64 * 1024 * 1024, ge=1024 * 1024, description="read, not yet folded")
    dirty_bytes_max: int = pydantic.Field(128 * 1024 * 1024, ge=1024 * 1024, description="folded, not yet cut")
    unflushed_bytes_max: int = pydantic.Field(256 * 1024 * 1024, ge=1024 * 1024, description="committed, not on disk")
    objects: str = pydantic.Field(
        "objects",
        min_length=1,
        description="where recordings are stored, the same for all slots: a folder, or an address as s3://bucket/prefix",
    )
    media_threads: int = pydantic.Field(4, ge=1, le=64, description="objects of a slot that are stored at once")
    version: str = pydantic.Field(
        "",
        max_length=64,
        description="of the application; by default a digest of its code: see quarantine in processor.md",
    )
    quarantine_failures: int = pydantic.Field(
        10, ge=1, le=1_000, description="records and rows of one key that fail, then the key is quarantined"
    )
    quarantine_window_records: int = pydantic.Field(
        10_000, ge=1, description="of a partition, between two failures of a key that count together"
    )
    quarantined_keys_max: int = pydantic.Field(1_000, ge=0, le=10_000, description="of one partition")
    quarantined_bytes_max: int = pydantic.Field(
        64 * 1024 * 1024, ge=0, description="of the rows of a partition's quarantined keys"
    )
    broken_release_keys: int = pydantic.Field(
        50,
        ge=0,
        le=200,
        description="distinct keys of a partition that fail after an upgrade, then the slot ends; 0: never",
    )
    broken_release_records: int = pydantic.Field(
        10_000, ge=1, description="of a partition after an upgrade in which these keys are counted"
    )
    crash_at: str | None = pydantic.Field(None, pattern=ARMED_PATTERN, description="tests only: see rim.crash_points")


_SLICED: Final = "(stream_type|cdn|country|device|os|browser|player_name)"


class VideoViewsSettings(Settings):
    """When a view finishes, ms (`applications.video_views.finish.FinishRules`); what a good view is (`metrics.GoodRules`)."""

    PREFIX: ClassVar[str] = "VIDEO_VIEWS_"

    finish_clean_ms: int = pydantic.Field(60_000, ge=0)
    finish_ended_ms: int = pydantic.Field(300_000, ge=0)
    finish_silent_ms: int = pydantic.Field(300_000, ge=1_000)
    finish_paused_ms: int = pydantic.Field(3_600_000, ge=1_000)
    view_max_ms: int = pydantic.Field(86_400_000, ge=1_000)
    lateness_ms: int = pydantic.Field(3_600_000, ge=0)
    closed_ms: int = pydantic.Field(86_400_000, ge=0)
    live_silence_ms: int = pydantic.Field(75_000, ge=1_000)
    good_startup_ms_max: int = pydantic.Field(4_000, ge=0, description="a good view starts within this")
    good_rebuffer_share_max: float = pydantic.Field(0.02, ge=0, le=1, description="of its watch time, as a fraction")
    good_bitrate_bps_min: int = pydantic.Field(500_000, ge=0, description="on average while playing")
    good_exit_wait_ms_min: int = pydantic.Field(2_000, ge=0, description="an exit before start after this is bad")
    live_dimensions: str = pydantic.Field(
        "stream_type,cdn",
        pattern=rf"^({_SLICED}(,{_SLICED}){{0,4}})?$",
        description="fields of the row by which live gauges are sliced, at most five",
    )
    generation: int = pydantic.Field(
        1, ge=1, le=1_000_000, description="of its rows: larger when they mean something else, see docs/reprocessing.md"
    )
    export_protobuf: bool = pydantic.Field(
        False, description="also write rows to topic views.protobuf, as Mux's VideoView messages"
    )


class TracesSettings(Settings):
    """When the spans of a trace are joined, ms, and how many (`applications.traces.trace.TraceRules`)."""

    PREFIX: ClassVar[str] = "TRACES_"

    gap_ms: int = pydantic.Field(5_000, ge=0, le=3_600_000, description="silence after which a trace is told")
    grace_ms: int = pydantic.Field(60_000, ge=0, le=86_400_000, description="how much later spans still revise it")
    kept_ms: int = pydantic.Field(
        900_000,
        ge=0,
        le=86_400_000,
        description="how long it is still answered for, and joined by long spans, after that",
    )
    spans_max: int = pydantic.Field(2_000, ge=1, le=2_000, description="spans of one trace")
    span_bytes_max: int = pydantic.Field(500_000, ge=1_000, le=500_000, description="bytes of their records")


class ApiSchemasSettings(Settings):
    """How APIs are learned (`applications.api_schemas.app.SchemaRules`), ms."""

    PREFIX: ClassVar[str] = "API_SCHEMAS_"

    learning_ms: int = pydantic.Field(3_600_000, ge=0, description="then an endpoint's schema is published")
    kept_ms: int = pydantic.Field(90 * 86_400_000, ge=60_000, description="then one that is not called is forgotten")
    endpoints_max: int = pydantic.Field(500, ge=1, le=2_000, description="endpoints of one API")


class RecordingsSettings(Settings):
    """How long recordings are waited for, ms (`applications.recordings.session.SessionRules`)."""

    PREFIX: ClassVar[str] = "RECORDINGS_"

    gap_ms: int = pydantic.Field(
        300_000, ge=0, le=86_400_000, description="then a missing payload is given up, and told"
    )
    upload_ms: int = pydantic.Field(
        3_600_000, ge=1_000, le=86_400_000, description="from an upload's first chunk to its last, at the most"
    )
    kept_ms: int = pydantic.Field(
        7 * 86_400_000,
        ge=60_000,
        description="how long a silent session is answered for, and its repetitions are known",
    )
    uploads_max: int = pydantic.Field(16, ge=1, le=100, description="unfinished uploads of one session")
    waiting_max: int = pydantic.Field(500, ge=1, le=1_000, description="whole payloads that wait behind a gap")


class ApiBaselinesSettings(Settings):
    """What is usual for an API, and when it is told that it is not (`applications.api_baselines.endpoint.BaselineRules`), ms."""

    PREFIX: ClassVar[str] = "API_BASELINES_"

    window_ms: int = pydantic.Field(300_000, ge=1_000, le=3_600_000, description="length of a window")
    grace_ms: int = pydantic.Field(60_000, ge=0, le=3_600_000, description="for calls that come later than others")
    usual_windows_min: int = pydantic.Field(
        24, ge=8, le=500, description="windows of the same hour that make a baseline; until then an endpoint is learned"
    )
    usual_windows_max: int = pydantic.Field(100, ge=8, le=500, description="of which so many are remembered")
    closing_windows: int = pydantic.Field(3, ge=1, le=100, description="usual windows in a row that close an anomaly")
    anomaly_ms_max: int = pydantic.Field(
        86_400_000, ge=60_000, description="an anomaly of this length is the new usual: all is learned anew"
    )
    kept_ms: int = pydantic.Field(
        14 * 86_400_000, ge=60_000, description="then an endpoint that is not called is forgotten"
    )
    endpoints_max: int = pydantic.Field(500, ge=1, le=2_000, description="endpoints of one API")

    @pydantic.model_validator(mode="after")
    def _enough_is_remembered(self) -> Self:
        if self.usual_windows_max < self.usual_windows_min:
            raise ValueError("API_BASELINES_USUAL_WINDOWS_MAX must be no less than API_BASELINES_USUAL_WINDOWS_MIN")
        return self


class UsersSettings(Settings):
    """How long and how many outcomes of requests are kept (`applications.users.outcomes.KeepRules`), ms."""

    PREFIX: ClassVar[str] = "USERS_"

    idempotency_ms: int = pydantic.Field(
        86_400_000, ge=1_000, le=30 * 86_400_000, description="then a request with the same key is another one"
    )
    outcome_ms: int = pydantic.Field(
        60_000, ge=10_000, le=3_600_000, description="of requests without a key: as long as somebody may wait for them"
    )
    outcomes_max: int = pydantic.Field(100_000, ge=10_000, le=10_000_000, description="of one partition")
    claim_retry_ms: int = pydantic.Field(
        30_000, ge=1_000, le=3_600_000, description="a claim of an e-mail address unanswered for so long is made again"
    )
