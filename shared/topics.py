"""Every topic, once: name, key, schema, partitions, cleanup, retention, owner. Pure data.

`deploy.topics` creates them; every service verifies its own at boot. It refuses to start when one is missing, or differs from its
declaration here in partition count, cleanup policy or kind of timestamp. Auto-creation is off on the broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Cleanup = Literal["delete", "compact"]
ProfileName = Literal["small", "laptop", "trial", "production"]

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_MIB: Final = 1024 * 1024
_GIB: Final = 1024 * _MIB


@dataclass(frozen=True)
class Profile:
    """How large an installation is: what the declarations below leave to it."""

    name: ProfileName
    replication_factor: int
    #: Never equal to the replication factor where there is more than one broker: one slow replica would stop every write.
    min_insync_replicas: int
    #: Partitions of everything keyed by view, when it is created.
    view_partitions: int
    #: Partitions of session recordings: their bytes are hundreds of times those of everything else.
    recording_partitions: int
    #: Partitions of topic `beacons` and its application's changelog once they have grown (docs/growing.md); None: as created.
    beacon_partitions: int | None = None


PROFILES: Final[Mapping[ProfileName, Profile]] = {
    # For tests: each partition costs a producer, a store and CPU time, and of four, two slots have two each.
    "small": Profile("small", replication_factor=1, min_insync_replicas=1, view_partitions=4, recording_partitions=4),
    "laptop": Profile("laptop", replication_factor=1, min_insync_replicas=1, view_partitions=8, recording_partitions=8),
    # Three small brokers of one machine: as safe as production, without its many partitions.
    "trial": Profile("trial", replication_factor=3, min_insync_replicas=2, view_partitions=8, recording_partitions=8),
    "production": Profile(
        "production", replication_factor=3, min_insync_replicas=2, view_partitions=64, recording_partitions=768
    ),
}


@dataclass(frozen=True)
class Topic:
    """One topic as it must be on the broker. Sizes are bytes per partition; times are ms."""

    name: str
    key: str
    schema: str
    owner: str
    cleanup: Cleanup
    retention_ms: int | None = None
    retention_bytes: int | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    #: For topics that are not keyed by view.
    partitions_fixed: int | None = None
    #: For topics that are spread as recordings are.
    as_recordings: bool = False
    #: For topics whose partitions can grow, all of these together.
    as_beacons: bool = False

    def partitions(self, profile: Profile) -> int:
        """How many partitions the topic has in an installation of this profile."""
        if self.as_beacons and profile.beacon_partitions is not None:
            return profile.beacon_partitions
        keyed = profile.recording_partitions if self.as_recordings else profile.view_partitions
        return self.partitions_fixed or keyed

    def config(self, profile: Profile) -> dict[str, str]:
        """The topic's broker settings in an installation of this profile."""
        settings = {
            "cleanup.policy": self.cleanup,
            "min.insync.replicas": str(profile.min_insync_replicas),
            "message.timestamp.type": "LogAppendTime",
            "unclean.leader.election.enable": "false",
            "max.message.bytes": str(RECORD_BYTES_MAX + 100_000),
        }
        if self.cleanup == "delete":
            # A record stays until the newest one of its segment is old enough: a day longer at the most.
            settings["segment.ms"] = str(_DAY_MS)
        if self.retention_ms is not None:
            settings["retention.ms"] = str(self.retention_ms)
        if self.retention_bytes is not None:
            settings["retention.bytes"] = str(self.retention_bytes)
        return settings | dict(self.extra)

    def kept_ms_max(self, profile: Profile) -> int | None:
        """How long a record may stay at the most, ms: of a compacted topic one that was deleted. None: for ever."""
        config = {name: int(value) for name, value in self.config(profile).items() if value.isdecimal()}
        if self.cleanup == "delete":
            return None if self.retention_ms is None else config["retention.ms"] + config["segment.ms"]
        if "max.compaction.lag.ms" not in config:
            return None
        return config["max.compaction.lag.ms"] + config["segment.ms"] + config["delete.retention.ms"]


#: No record's value is larger, bytes.
RECORD_BYTES_MAX: Final = 1_000_000

#: Small segments, so that compaction can reach all but the newest minutes (the active segment is never compacted).
_CHANGELOG: Final = {
    "segment.bytes": str(64 * _MIB),
    "segment.ms": str(10 * _MINUTE_MS),
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": str(_DAY_MS),
    # Also of a quiet partition: else what was deleted would stay there without end.
    "max.compaction.lag.ms": str(_DAY_MS),
}


def _changelog_of(application: str, *, as_recordings: bool = False, as_beacons: bool = False) -> Topic:
    """The changelog of an application of the processor."""
    return Topic(
        name=f"{application}.changelog",
        key="<store id><row key>, or meta",
        schema="services.processor.engine.state.rows",
        owner=f"processor/{application}",
        # Compacted alone: time-based deletion would expire `meta` on a quiet partition and open views in an outage.
        cleanup="compact",
        extra=_CHANGELOG,
        as_recordings=as_recordings,
        as_beacons=as_beacons,
    )


BEACONS: Final = Topic(
    name="beacons",
    key="<customer>:<view id>",
    schema="shared.schemas.beacon.Beacon",
    owner="collector, finalizer, processor/video_views",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=50 * _GIB,
    as_beacons=True,
)
VIEWS: Final = Topic(
    name="views",
    key="<customer>:<view id>",
    schema="shared.schemas.view.View",
    owner="processor/video_views",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=20 * _GIB,
)
#: Written only where it is switched on (VIDEO_VIEWS_EXPORT_PROTOBUF): every revision of a row, for consumers of Mux's export.
VIEWS_PROTOBUF: Final = Topic(
    name="views.protobuf",
    key="<customer>:<view id>",
    schema="shared.schemas.video_view (protocol buffers)",
    owner="processor/video_views",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=20 * _GIB,
)
LIVE: Final = Topic(
    name="live",
    key="<customer>",
    schema="shared.schemas.live.Live",
    owner="processor/video_views",
    cleanup="delete",
    retention_ms=_DAY_MS,
    retention_bytes=_GIB,
)
#: What collectors received of each customer, and what of it they rejected.
RECEIVED: Final = Topic(
    name="received",
    key="<customer>",
    schema="shared.schemas.received.Received",
    owner="collector",
    cleanup="delete",
    retention_ms=_DAY_MS,
    retention_bytes=_GIB,
)
LATE: Final = Topic(
    name="late",
    key="<customer>:<view id>",
    schema="shared.schemas.beacon.Beacon",
    owner="processor/video_views",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=5 * _GIB,
)
REJECTED: Final = Topic(
    name="rejected",
    key="<customer>:<view id>, or none",
    schema="shared.schemas.rejected (original bytes; reason in headers)",
    owner="collector, processor",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=5 * _GIB,
)
#: Which records of `rejected` were produced to their inputs again (`python -m services.processor redrive`).
REDRIVEN: Final = Topic(
    name="redriven",
    key="<application>",
    schema="services.processor.runtime.operations.redrive.Marker",
    owner="operator",
    cleanup="delete",
    # A marker is younger than the records it names: it outlives them.
    retention_ms=8 * _DAY_MS,
    partitions_fixed=1,
)
VIDEO_VIEWS_CHANGELOG: Final = _changelog_of("video_views", as_beacons=True)

SPANS: Final = Topic(
    name="spans",
    key="<customer>:<trace id>",
    schema="shared.schemas.span.Span",
    owner="collector",
    cleanup="delete",
    retention_ms=3 * _DAY_MS,
    retention_bytes=50 * _GIB,
)
TRACES: Final = Topic(
    name="traces",
    key="<customer>:<trace id>",
    schema="shared.schemas.trace.Trace",
    owner="processor/traces",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=50 * _GIB,
)
LATE_SPANS: Final = Topic(
    name="late_spans",
    key="<customer>:<trace id>",
    schema="shared.schemas.span.Span",
    owner="processor/traces",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=5 * _GIB,
)
TRACES_CHANGELOG: Final = _changelog_of("traces")

API_CALLS: Final = Topic(
    name="api_calls",
    key="<customer>:<host>",
    schema="shared.schemas.apis.call.ApiCall",
    owner="collector, finalizer, processor/traces",
    cleanup="delete",
    # Shapes of calls may hold words of payloads until it is known whether these are an enumeration's.
    retention_ms=_DAY_MS,
    retention_bytes=20 * _GIB,
)
API_CHANGES: Final = Topic(
    name="api_changes",
    key="<customer>:<host>",
    schema="shared.schemas.apis.change.ApiChange",
    owner="processor/api_schemas",
    cleanup="delete",
    retention_ms=30 * _DAY_MS,
    retention_bytes=_GIB,
)
API_SCHEMAS_CHANGELOG: Final = _changelog_of("api_schemas")
API_WINDOWS: Final = Topic(
    name="api_windows",
    key="<customer>:<host>",
    schema="shared.schemas.apis.window.ApiWindow",
    owner="processor/api_baselines",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=5 * _GIB,
)
API_ANOMALIES: Final = Topic(
    name="api_anomalies",
    key="<customer>:<host>",
    schema="shared.schemas.apis.anomaly.ApiAnomaly",
    owner="processor/api_baselines",
    cleanup="delete",
    retention_ms=30 * _DAY_MS,
    retention_bytes=_GIB,
)
WEBHOOKS_FAILED: Final = Topic(
    name="webhooks_failed",
    key="<customer>:<host>",
    schema="shared.schemas.apis.anomaly.ApiAnomaly (reason and origin in headers)",
    owner="webhooks",
    cleanup="delete",
    retention_ms=30 * _DAY_MS,
    retention_bytes=_GIB,
)
ALERT_RULES: Final = Topic(
    name="alert_rules",
    key="<customer>",
    schema="shared.schemas.alerts.rule.AlertRules",
    owner="finalizer, notifications",
    # Of every customer the newest rules.
    cleanup="compact",
    extra=_CHANGELOG,
)
ALERT_EVENTS: Final = Topic(
    name="alert_events",
    key="<customer>:<incident id>",
    schema="shared.schemas.alerts.event.AlertEvent",
    owner="processor/alerts",
    cleanup="delete",
    retention_ms=30 * _DAY_MS,
    retention_bytes=_GIB,
)
ALERTS_CHANGELOG: Final = _changelog_of("alerts")
API_BASELINES_CHANGELOG: Final = _changelog_of("api_baselines")

#: Payloads in chunks: see `shared.chunks`. Never compacted, which would keep the last chunk of a session alone.
RECORDINGS: Final = Topic(
    name="recordings",
    key="<customer>:<session id>",
    schema="shared.chunks (a payload's bytes; what they are, in headers)",
    owner="collector, finalizer",
    cleanup="delete",
    retention_ms=_DAY_MS,
    retention_bytes=20 * _GIB,
    as_recordings=True,
)
RECORDING_INDEX: Final = Topic(
    name="recording_index",
    key="<customer>:<session id>",
    schema="shared.schemas.recording.RecordingRow",
    owner="processor/recordings",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=5 * _GIB,
)
RECORDINGS_CHANGELOG: Final = _changelog_of("recordings", as_recordings=True)

USER_COMMANDS: Final = Topic(
    name="user_commands",
    key="<user id>, or <e-mail address in lower case>",
    schema="shared.schemas.user_command.UserCommand",
    owner="processor/users",
    cleanup="delete",
    retention_ms=7 * _DAY_MS,
    retention_bytes=20 * _GIB,
)
#: The table for others: of every user the newest row; a tombstone once it is deleted.
USERS: Final = Topic(
    name="users",
    key="<user id>",
    schema="shared.schemas.user.User",
    owner="processor/users",
    cleanup="compact",
    extra=_CHANGELOG,
)
USERS_CHANGELOG: Final = _changelog_of("users")

PRESENCE: Final = Topic(
    name="presence",
    key="<application>/<slot>/<replica>",
    schema="shared.schemas.presence.Presence",
    owner="processor",
    cleanup="delete",
    retention_ms=10 * _MINUTE_MS,
    retention_bytes=64 * _MIB,
    extra={"segment.ms": str(5 * _MINUTE_MS)},
    # All beats are read by all: one partition keeps them in one order.
    partitions_fixed=1,
)

ALL: Final = (
    *(BEACONS, VIEWS, VIEWS_PROTOBUF, LIVE, RECEIVED, LATE, REJECTED, REDRIVEN, VIDEO_VIEWS_CHANGELOG, PRESENCE),
    *(SPANS, TRACES, LATE_SPANS, TRACES_CHANGELOG),
    *(API_CALLS, API_CHANGES, API_SCHEMAS_CHANGELOG),
    *(RECORDINGS, RECORDING_INDEX, RECORDINGS_CHANGELOG),
    *(API_WINDOWS, API_ANOMALIES, API_BASELINES_CHANGELOG, WEBHOOKS_FAILED),
    *(USER_COMMANDS, USERS, USERS_CHANGELOG),
    *(ALERT_RULES, ALERT_EVENTS, ALERTS_CHANGELOG),
)
