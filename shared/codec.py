"""Schema to bytes and back: the only place where records are encoded.

Values are JSON (readable with any console consumer, and by Spark's `from_json`); `schema_version` is in every one. The export
(`VIDEO_VIEW`) is in Mux's format.
"""

from typing import Final, Generic, TypeVar

import msgspec

from shared.protobuf import Encoder
from shared.schemas import (
    beacon,
    live,
    presence,
    received,
    recording,
    span,
    trace,
    user,
    user_command,
    video_view,
    view,
)
from shared.schemas.alerts import event as alert_event
from shared.schemas.alerts import rule as alert_rule
from shared.schemas.apis import anomaly as api_anomaly
from shared.schemas.apis import call as api_call
from shared.schemas.apis import change as api_change
from shared.schemas.apis import window as api_window

T = TypeVar("T", bound=msgspec.Struct)

#: What msgspec raises for bytes that are no JSON, or not of the type. A `ValidationError` is a `DecodeError`. Values that are
#: nested too deep raise `RecursionError`, also in fields that are passed over.
NO_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Undecodable(ValueError):
    """The bytes are not a record of this schema, or of a version this code does not know. Reject the record."""


class Codec(Generic[T]):
    """Encodes and decodes the records of one schema, up to its newest known version."""

    def __init__(self, schema: type[T], version: int) -> None:
        self._version = version
        self._decoder = msgspec.json.Decoder(schema)
        self._encoder = msgspec.json.Encoder()

    def encode(self, record: T) -> bytes:
        """The record's bytes: compact JSON, UTF-8."""
        return self._encoder.encode(record)

    def decode(self, data: bytes) -> T:
        """The record in `data`; raises `Undecodable` when it is not such a record, or is of a newer version."""
        try:
            record = self._decoder.decode(data)
        except NO_JSON as error:
            raise Undecodable(str(error)) from error
        version: int = record.schema_version  # type: ignore[attr-defined]
        if version > self._version:
            raise Undecodable(f"schema_version {version} is newer than {self._version}")
        return record


BEACON: Final = Codec(beacon.Beacon, beacon.SCHEMA_VERSION)
VIEW: Final = Codec(view.View, view.SCHEMA_VERSION)
LIVE: Final = Codec(live.Live, live.SCHEMA_VERSION)
RECEIVED: Final = Codec(received.Received, received.SCHEMA_VERSION)
PRESENCE: Final = Codec(presence.Presence, presence.SCHEMA_VERSION)
VIDEO_VIEW: Final = Encoder(video_view.VIDEO_VIEW)
SPAN: Final = Codec(span.Span, span.SCHEMA_VERSION)
TRACE: Final = Codec(trace.Trace, trace.SCHEMA_VERSION)
API_CALL: Final = Codec(api_call.ApiCall, api_call.SCHEMA_VERSION)
API_CHANGE: Final = Codec(api_change.ApiChange, api_change.SCHEMA_VERSION)
RECORDING: Final = Codec(recording.RecordingRow, recording.SCHEMA_VERSION)
API_WINDOW: Final = Codec(api_window.ApiWindow, api_window.SCHEMA_VERSION)
API_ANOMALY: Final = Codec(api_anomaly.ApiAnomaly, api_anomaly.SCHEMA_VERSION)
USER: Final = Codec(user.User, user.SCHEMA_VERSION)
USER_COMMAND: Final = Codec(user_command.UserCommand, user_command.SCHEMA_VERSION)
ALERT_RULES: Final = Codec(alert_rule.AlertRules, alert_rule.SCHEMA_VERSION)
ALERT_EVENT: Final = Codec(alert_event.AlertEvent, alert_event.SCHEMA_VERSION)
