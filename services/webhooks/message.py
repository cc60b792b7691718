"""Which revisions of an anomaly are sent, and the text of the message. Pure."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from shared import codec
from shared.schemas.apis.anomaly import ApiAnomaly


@dataclass(frozen=True)
class Message:
    """One message to deliver."""

    id: str
    body: bytes


def message_of(value: bytes) -> Message | None:
    """The message of a record of topic `api_anomalies`: an opening or a closing; None for a revision between them.

    Raises `shared.codec.Undecodable`.
    """
    anomaly = codec.API_ANOMALY.decode(value)
    if anomaly.state == "open" and anomaly.revision > 1:
        return None
    kind = "opened" if anomaly.state == "open" else "closed"
    # As the specification proposes: type, time, data. The time is that of the anomaly: a replay sends the same message.
    at_ms = anomaly.opened_ms if kind == "opened" else anomaly.last_ms
    at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    body = msgspec.json.encode({"type": f"api_anomaly.{kind}", "timestamp": at, "data": anomaly})
    return Message(_id_of(anomaly), body)


def _id_of(anomaly: ApiAnomaly) -> str:
    """An id that follows from the row and its revision: the same however often it is read."""
    named = msgspec.json.encode(
        [
            *(anomaly.customer_id, anomaly.host, anomaly.method, anomaly.path),
            *(anomaly.measure, anomaly.opened_ms, anomaly.revision),
        ]
    )
    return f"msg_{hashlib.sha256(named).hexdigest()[:32]}"
