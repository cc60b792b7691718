"""A record of topic `live` or `rejected` as it waits for its minute. Pure."""

from typing import Any, Final, get_args

import structlog

from services.serving.live.minutes import Place, Refusal, Waiting
from shared.codec import LIVE as LIVE_CODEC
from shared.codec import Undecodable
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.rejected import Reason
from shared.topics import LIVE

log = structlog.get_logger(__name__)

_REASONS: Final = frozenset(get_args(Reason))
#: Who sent these was not shown to be of the customer that they name.
_OF_NOBODY: Final = frozenset({"unknown_customer", "revoked_key", "forbidden_origin", "unsigned"})
_OTHER_REASON: Final = "(other)"


def waiting_of(message: Any) -> tuple[Place, Waiting]:
    """Its partition, and the record as it waits. What is no live record counts nowhere."""
    return Place(message.topic(), message.partition()), _waiting(message)


def _waiting(message: Any) -> Waiting:
    if message.topic() != LIVE.name:
        return Waiting(message.offset(), message.timestamp()[1], _refusal(message.key(), message.headers()))
    value = message.value() or b""
    try:
        return Waiting(message.offset(), LIVE_CODEC.decode(value).bucket_ms, value)
    except Undecodable as problem:
        log.error("live_undecodable", partition=message.partition(), offset=message.offset(), why=str(problem))
        return Waiting(message.offset(), message.timestamp()[1], None)


def _refusal(key: bytes | None, headers: list[tuple[str, bytes | None]] | None) -> Refusal:
    stated = dict(headers or ()).get("reason") or b""
    reason = stated.decode("ascii", "replace")
    customer_id = (key or b"").partition(b":")[0].decode("ascii", "replace")
    is_known = reason not in _OF_NOBODY and CUSTOMER_ID.fullmatch(customer_id)
    return Refusal(customer_id if is_known else "", reason if reason in _REASONS else _OTHER_REASON)
