"""Bodies of requests and answers of the routes of alerts; the OpenAPI document is made of them. Times are ms since 1970."""

from typing import Any, Literal

import msgspec

from services.alerts.core.rules import RuleBody
from services.alerts.messages.bodies import Kind
from shared.schemas.alerts.event import AlertEvent


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, with its version: a change names the version that was read."""

    id: str
    version: int
    changed_ms: int
    changed_by: str
    rule: RuleBody


class RuleList(msgspec.Struct, frozen=True, kw_only=True):
    """Rules by customer and last change, or versions of one, the newest first; `next` is the `cursor` of those after the page."""

    rules: list[Rule]
    next: str | None


class SuggestedRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that an environment should have, to be added as they are or changed."""

    rules: list[RuleBody]


class AskedSuggested(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For whom."""

    customer: str


class RuleChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule as it is to be, and the version that was read."""

    version: int
    rule: RuleBody


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """The id of what was made, and its version where it has any."""

    id: str
    version: int = 1


class NewReceiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A receiver. `target`: `url` and `secret` of a webhook, `url` of Slack and Teams, `routing_key` of PagerDuty, `to` of e-mail.

    `template` replaces the text of messages; it may name `$title`, `$value`, `$usual`, `$where`, `$link` and others.
    """

    name: str
    kind: Kind
    target: dict[str, Any]
    template: str | None = None


class ReceiverChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A receiver as it is to be; its kind stays. Without `target` its address stays."""

    name: str
    target: dict[str, Any] | None = None
    template: str | None = None


class ReceiverInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver without its address."""

    id: str
    name: str
    kind: Kind
    template: str | None
    changed_ms: int
    changed_by: str


class ReceiverList(msgspec.Struct, frozen=True, kw_only=True):
    """The receivers of the organisation by name; `next` is the `cursor` of those after the page."""

    receivers: list[ReceiverInfo]
    next: str | None


class DeliveryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A message to a receiver, and what became of it. Its id is the idempotency key that the receiver sees."""

    id: str
    receiver: str
    kind: Kind
    incident_id: str | None
    revision: int
    state: Literal["waiting", "delivered", "dead", "skipped"]
    attempts: int
    due_ms: int
    made_ms: int
    ended_ms: int | None
    problem: str | None


class DeliveryList(msgspec.Struct, frozen=True, kw_only=True):
    """Messages, the newest first; `next` is the `cursor` of those after the page."""

    deliveries: list[DeliveryInfo]
    next: str | None


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """An incident as its newest change has it."""

    id: str
    customer: str
    opened_ms: int
    closed_ms: int | None
    acknowledged_ms: int | None
    acknowledged_by: str | None
    muted_until_ms: int | None
    muted_by: str | None
    event: AlertEvent


class IncidentList(msgspec.Struct, frozen=True, kw_only=True):
    """Incidents, the newest first; `next` is the `cursor` of those after the page."""

    incidents: list[Incident]
    next: str | None


class CommentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A comment on an incident."""

    id: int
    at_ms: int
    author: str
    text: str


class IncidentStory(msgspec.Struct, frozen=True, kw_only=True):
    """An incident with everything that it went through."""

    incident: Incident
    changes: list[AlertEvent]
    comments: list[CommentInfo]
    deliveries: list[DeliveryInfo]


class NewComment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A comment."""

    text: str


class Mute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For how many hours no message is sent but that of the end; 0: messages again."""

    hours: int


class AskedPage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page of a list, by the `next` before it."""

    limit: int = 100
    cursor: str = ""


class AskedRules(AskedPage, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The customer whose rules are listed."""

    customer: str | None = None


class AskedIncidents(AskedPage, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The incidents to list: by customer and state, those that opened before a time."""

    customer: str | None = None
    state: Literal["open", "all"] = "all"
    before_ms: int | None = None
    limit: int = 50


class AskedDeliveries(AskedPage, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which messages."""

    state: Literal["waiting", "delivered", "dead", "skipped"] | None = None
