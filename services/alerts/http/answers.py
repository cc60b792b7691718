"""Stored rules, receivers and incidents, as the routes of alerts answer them."""

from datetime import datetime
from typing import Any

import msgspec
from aiohttp import web

from services.alerts.http import bodies
from services.alerts.store.deliveries import Delivery
from services.alerts.store.incidents import Comment, StoredIncident
from services.alerts.store.receivers import Receiver
from services.alerts.store.rules import StoredRule
from shared.schemas.alerts.event import AlertEvent


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1_000)


def _maybe_ms(at: datetime | None) -> int | None:
    return None if at is None else _ms(at)


def rule_of(one: StoredRule) -> bodies.Rule:
    """A rule."""
    return bodies.Rule(
        id=one.id, version=one.version, changed_ms=_ms(one.changed_at), changed_by=one.changed_by, rule=one.rule
    )


def incident_of(one: StoredIncident) -> bodies.Incident:
    """An incident."""
    return bodies.Incident(
        id=one.id,
        customer=one.customer_id,
        opened_ms=_ms(one.opened_at),
        closed_ms=_maybe_ms(one.closed_at),
        acknowledged_ms=_maybe_ms(one.acknowledged_at),
        acknowledged_by=one.acknowledged_by,
        muted_until_ms=_maybe_ms(one.muted_until),
        muted_by=one.muted_by,
        event=msgspec.convert(one.event, AlertEvent),
    )


def receiver_of(one: Receiver) -> bodies.ReceiverInfo:
    """A receiver, without its address."""
    same = ("id", "name", "kind", "template", "changed_by")
    values: dict[str, Any] = {name: getattr(one, name) for name in same}
    return msgspec.convert(values | {"changed_ms": _ms(one.changed_at)}, bodies.ReceiverInfo)


def delivery_of(one: Delivery) -> bodies.DeliveryInfo:
    """A message."""
    same = ("id", "receiver", "kind", "incident_id", "revision", "state", "attempts", "problem")
    values: dict[str, Any] = {name: getattr(one, name) for name in same}
    times = {"due_ms": _ms(one.due_at), "made_ms": _ms(one.made_at), "ended_ms": _maybe_ms(one.ended_at)}
    return msgspec.convert(values | times, bodies.DeliveryInfo)


def comment_of(one: Comment) -> bodies.CommentInfo:
    """A comment."""
    return bodies.CommentInfo(id=one.id, at_ms=_ms(one.at), author=one.author, text=one.text)


def json_answer(content: msgspec.Struct, *, status: int = 200) -> web.Response:
    """An answer."""
    return web.Response(body=msgspec.json.encode(content), content_type="application/json", status=status)
