"""Input and output of the intake: one POST and the rules in, beacons and rejected inputs out."""

from collections.abc import Callable
from typing import Any

import msgspec
import pydantic

from services.collector.intake.limits import IntakeLimits
from services.collector.intake.sender.client import Client, Sender
from services.collector.intake.sender.customers import ANYBODY, Customers, Found
from shared.schemas.apis.call import ApiCall
from shared.schemas.beacon import CUSTOMER_ID, SCHEMA_VERSION, VIEW_ID_CHARS_MAX, Beacon
from shared.schemas.rejected import Reason
from shared.schemas.span import Span

USER_AGENT_CHARS_MAX = 512
EVENT_CHARS_MAX = 64
#: In no view id: in the processor's keys it ends the id of a session, and what follows it is the number of a play.
NUL = "\0"
DETAIL_CHARS_MAX = 300


class Rules(IntakeLimits):
    """What the intake accepts: besides the limits, who accepts and for which customers."""

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    collector_id: str = ""
    customers: Customers = ANYBODY


def no_pause() -> None:
    """The parser goes on at once."""


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """One POST as it came; `recv_time_ms` is the collector's clock, ms since 1970."""

    #: The request path.
    origin: str
    body: bytes
    #: The body unpacked, where that is known already.
    unpacked: bytes | None = None
    #: False where the body was longer than what the collector takes: `body` is then its beginning.
    whole: bool = True
    content_type: str = ""
    content_encoding: str = ""
    #: The write key that the path, query or headers hold; empty where the body names it.
    key: str = ""
    #: By which the customer's server signed the view; empty where the query has none.
    token: str = ""
    recv_time_ms: int
    client: Client = Client()
    #: EPAS: the SDK counts playheads and durations in seconds.
    in_seconds: bool = False
    batch_id: str = ""
    #: On the event loop: how many inputs may be invalid. Beyond it the parser raises `TooManyInvalid`.
    invalid_max: int | None = None
    #: The parser calls it after each input, so that other threads have their turn.
    pause: Callable[[], None] = no_pause


def commons(post: Post, key: str, customer_id: str, sender: Sender, rules: Rules) -> dict[str, Any]:
    """The fields that all beacons under one write key in one POST share."""
    return {
        "schema_version": SCHEMA_VERSION,
        "customer_id": customer_id,
        "recv_time_ms": post.recv_time_ms,
        "ip_trunc": sender.ip_trunc,
        "user_agent": sender.user_agent,
        "browser": sender.agent.browser,
        "os": sender.agent.os,
        "device": sender.agent.device,
        "is_bot": sender.agent.is_bot,
        "country": sender.place.country,
        "asn": sender.place.asn,
        "write_key": key if key and key != customer_id else None,
        "collector_id": rules.collector_id,
        "batch_id": post.batch_id,
    }


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """An input that is no beacon: its bytes and why. `encoded` means that they are still in the POST's content encoding."""

    reason: Reason
    detail: str
    value: bytes
    customer_id: str | None = None
    view_id: str | None = None
    encoded: bool = False
    #: Its place among the beacons of the request, from 0; None where it is the whole body.
    place: int | None = None


class ParsedBody(msgspec.Struct, frozen=True):
    """What one POST holds, in its order; all of one kind."""

    accepted: list[Beacon] | list[Span] | list[ApiCall]
    rejected: list[Rejected]
    #: Of a body that names keys itself: each key with how many inputs were accepted under it.
    by_key: tuple[tuple[str, int], ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one POST: the number of its beacons, and its rejected items. A request that waits for Kafka needs no more."""

    accepted: int
    rejected: list[Rejected]


class InvalidInput(ValueError):
    """An input cannot become a beacon; never leaves the intake."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail[:DETAIL_CHARS_MAX]


class TooManyInvalid(RuntimeError):
    """More inputs of a body are invalid than the event loop has time for: it is to be parsed on a thread."""


def check_invalid(count: int, post: Post) -> None:
    """Raises `TooManyInvalid` for the event loop's sake: an invalid input takes longer than a good one."""
    if post.invalid_max is not None and count > post.invalid_max:
        raise TooManyInvalid


def rejected_body(post: Post, invalid: InvalidInput, customer_id: str | None = None) -> ParsedBody:
    """The whole body, rejected unchanged."""
    rejected = Rejected(
        reason=invalid.reason, detail=invalid.detail, value=post.body, customer_id=customer_id, encoded=True
    )
    return ParsedBody([], [rejected])


def checked_customer(key: object, post: Post, rules: Rules) -> Found:
    """The customer of `key`, if it is well-formed and ours and its pages may send; raises `InvalidInput` otherwise."""
    if not isinstance(key, str) or CUSTOMER_ID.fullmatch(key) is None:
        raise InvalidInput("invalid", f"key {_short(key)} is not [A-Za-z0-9_-]{{1,64}}")
    found = rules.customers.find(key)
    if not isinstance(found, Found):
        why = "is revoked" if found == "revoked_key" else "is no customer's of this installation"
        raise InvalidInput(found, f"key {key} {why}")
    origins = found.terms.origins
    if origins and post.client.origin is not None and post.client.origin not in origins:
        raise InvalidInput("forbidden_origin", f"{_short(post.client.origin)} is no page of {found.id}")
    return found


def checked_view_id(view_id: object) -> str:
    """`view_id` if it can be one; raises `InvalidInput` otherwise."""
    if not isinstance(view_id, str) or not 0 < len(view_id) <= VIEW_ID_CHARS_MAX or NUL in view_id:
        raise InvalidInput(
            "invalid",
            f"view id {_short(view_id)} is not a string of 1 to {VIEW_ID_CHARS_MAX} characters other than NUL",
        )
    return view_id


def claimed_customer(key: object, rules: Rules) -> str | None:
    """The customer under whose name a rejected input is kept: the key's, or the key itself if it belongs to no customer."""
    if not isinstance(key, str) or CUSTOMER_ID.fullmatch(key) is None:
        return None
    found = rules.customers.find(key)
    return found.id if isinstance(found, Found) else key


def claimed_view_id(view_id: object) -> str | None:
    """`view_id` if it can be one."""
    if not isinstance(view_id, str) or not 0 < len(view_id) <= VIEW_ID_CHARS_MAX or NUL in view_id:
        return None
    return view_id


def checked_event(event: object) -> str:
    """The client's event name if it can be one; raises `InvalidInput` otherwise."""
    if not isinstance(event, str) or not 0 < len(event) <= EVENT_CHARS_MAX:
        raise InvalidInput("invalid", f"event {_short(event)} is not a string of 1 to {EVENT_CHARS_MAX} characters")
    return event


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 80 else text[:80] + "…"
