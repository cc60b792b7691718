"""Topics whose records are rows of a table: the outputs of applications, as the warehouse keeps them. Pure data.

To land another one, add it to `ALL`: its table and its stream follow.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from shared import topics
from shared.schemas import recording, trace, user
from shared.schemas.apis import anomaly as api_anomaly
from shared.schemas.apis import change as api_change
from shared.schemas.apis import window as api_window
from shared.topics import Topic

#: The place of a record: the key of a row that is never revised. The append time separates a recreated topic from the former one.
PLACE: Final = ("kafka_partition", "kafka_offset", "kafka_timestamp_ms")
#: The order of versions in a compacted topic, where the records of a key are in one partition.
APPENDED: Final = ("kafka_timestamp_ms", "kafka_offset")


@dataclass(frozen=True)
class RowTopic:
    """A topic and its table. This has the topic's name, and as columns the schema's fields and where each row came from."""

    topic: Topic
    #: Who writes it: `PROCESSOR_APPLICATION`.
    application: str
    schema: type[msgspec.Struct]
    schema_version: int
    #: The columns by which a row is known; of rows with the same ones the newest stays.
    key: tuple[str, ...] = PLACE
    #: The columns that say which is newer, the first first; none where rows are never revised.
    revised_by: tuple[str, ...] = ()
    #: The column of ms since 1970 whose day (`day`) a row is stored under; None for a table without days. It is best one that no
    #: revision changes.
    day_of: str | None = "kafka_timestamp_ms"
    #: How many days from a revision's own its row may be stored, where that column does change: the row stays where it is.
    days_apart: int = 0
    #: The column that a tombstone's key names. It marks the row as `deleted`.
    tombstone_of: str | None = None
    #: Fields that no column can hold: they are kept as JSON.
    as_json: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ("customer_id",)

    @property
    def name(self) -> str:
        """The table's name, and the stream's."""
        return self.topic.name


ALL: Final = (
    RowTopic(
        topics.TRACES,
        "traces",
        trace.Trace,
        trace.SCHEMA_VERSION,
        key=("customer_id", "trace_id", "part"),
        revised_by=("revision",),
        # A span that comes later may begin earlier, so it is the append's day. `TRACES_GRACE_MS` and `_KEPT_MS` are a day at most.
        days_apart=3,
        as_json=("spans",),
    ),
    RowTopic(
        topics.API_CHANGES,
        "api_schemas",
        api_change.ApiChange,
        api_change.SCHEMA_VERSION,
        cluster_by=("customer_id", "host"),
    ),
    RowTopic(
        topics.API_WINDOWS,
        "api_baselines",
        api_window.ApiWindow,
        api_window.SCHEMA_VERSION,
        cluster_by=("customer_id", "host"),
    ),
    RowTopic(
        topics.API_ANOMALIES,
        "api_baselines",
        api_anomaly.ApiAnomaly,
        api_anomaly.SCHEMA_VERSION,
        key=("customer_id", "host", "method", "path", "measure", "opened_ms"),
        revised_by=("revision",),
        day_of="opened_ms",
        cluster_by=("customer_id", "host"),
    ),
    RowTopic(
        topics.RECORDING_INDEX,
        "recordings",
        recording.RecordingRow,
        recording.SCHEMA_VERSION,
        cluster_by=("customer_id", "session_id"),
    ),
    RowTopic(
        topics.USERS,
        "users",
        user.User,
        user.SCHEMA_VERSION,
        key=("id",),
        revised_by=APPENDED,
        day_of=None,
        tombstone_of="id",
        cluster_by=(),
    ),
)

APPLICATIONS: Final = tuple(dict.fromkeys(one.application for one in ALL))
