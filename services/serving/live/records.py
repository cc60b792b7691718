"""A record of topic `live`, `received` or `rejected` as it waits for its minute. Pure."""

from typing import Any, Final, get_args

import structlog

from services.serving.live.minutes import Intake, Place, Refusal, Waiting
from shared.codec import LIVE as LIVE_CODEC
from shared.codec import RECEIVED as RECEIVED_CODEC
from shared.codec import Undecodable
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.rejected import Reason
from shared.topics import LIVE, RECEIVED

log = structlog.get_logger(__name__)

_REASONS: Final = frozenset(get_args(Reason))
#: Who sent these was not shown to be of the customer that they name.
_OF_NOBODY: Final = frozenset({"unknown_customer", "revoked_key", "forbidden_origin", "unsigned"})
_OTHER_REASON: Final = "(other)"


def waiting_of(message: Any) -> tuple[Place, Waiting]:
    """Its partition, and the record as it waits. What is no live record, nor one of what was received, counts nowhere."""
    return Place(message.topic(), message.partition()), _waiting(message)


def _waiting(message: Any) -> Waiting:
    offset, appended_ms, value = message.offset(), message.timestamp()[1], message.value() or b""
    try:
        if message.topic() == LIVE.name:
            return Waiting(offset, LIVE_CODEC.decode(value).bucket_ms, value)
        if message.topic() == RECEIVED.name:
            # By the collector's clock: one that is ahead holds up nobody.
            return Waiting(offset, min(RECEIVED_CODEC.decode(value).bucket_ms, appended_ms), Intake(value))
    except Undecodable as problem:
        log.error(
            "live_undecodable", topic=message.topic(), partition=message.partition(), offset=offset, why=str(problem)
        )
        return Waiting(offset, appended_ms, None)
    return Waiting(offset, appended_ms, _refusal(message.key(), message.headers()))


def _refusal(key: bytes | None, headers: list[tuple[str, bytes | None]] | None) -> Refusal:
    stated = dict(headers or ()).get("reason") or b""
    reason = stated.decode("ascii", "replace")
    customer_id = (key or b"").partition(b":")[0].decode("ascii", "replace")
    is_known = reason not in _OF_NOBODY and CUSTOMER_ID.fullmatch(customer_id)
    return Refusal(customer_id if is_known else "", reason if reason in _REASONS else _OTHER_REASON)
