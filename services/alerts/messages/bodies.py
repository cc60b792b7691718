"""The body of a message in each receiver's format. Pure.

Sources: Standard Webhooks 1.0.0 (type, timestamp, data); Slack's incoming webhooks and Block Kit
(https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks); Adaptive Cards 1.4 in the envelope that workflows of
Teams take (https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors); PagerDuty's Events API v2
(https://developer.pagerduty.com/docs/events-api-v2/trigger-events).
"""

from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Final, Literal

import msgspec

from services.alerts.messages.words import text, values
from shared.schemas.alerts.event import AlertEvent

Kind = Literal["webhook", "slack", "teams", "pagerduty", "email"]

PAGERDUTY_URL: Final = "https://events.pagerduty.com/v2/enqueue"
_SLACK_CHARS_MAX: Final = 2_900
_SUMMARY_CHARS_MAX: Final = 1_024
_SLACK_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_EMOJI: Final = {"info": ":information_source:", "warning": ":warning:", "critical": ":rotating_light:"}
_COLOURS: Final = {"info": "accent", "warning": "warning", "critical": "attention"}
_TEST: Final = "Playhead reaches this receiver. This is a test, and nothing has happened."


def webhook(event: AlertEvent | None, link: str, template: str | None, at_ms: int) -> bytes:
    """Everything of the change, for programs."""
    at = datetime.fromtimestamp((event.at_ms if event else at_ms) / 1_000, UTC).isoformat(timespec="milliseconds")
    if event is None:
        return msgspec.json.encode({"type": "alert.test", "timestamp": at, "data": {"text": _TEST, "link": link}})
    data: dict[str, Any] = msgspec.to_builtins(event) | {"text": text(event, link, template), "link": link}
    return msgspec.json.encode({"type": f"alert.{event.change}", "timestamp": at, "data": data})


def slack(event: AlertEvent | None, link: str, template: str | None) -> bytes:
    """Text for notifications, and blocks."""
    if event is None:
        return msgspec.json.encode({"text": _TEST})
    title = f"{_EMOJI[event.severity]} *{_slack(values(event, link)['title'])}*"
    own = None if template is None else _slack(template)
    body = text(event, f"<{_slack(link)}>", own, escaped=_slack)
    # Verbatim: an address that viewers send is no link, and no @name a mention.
    marked = {"type": "mrkdwn", "text": f"{title}\n{body}"[:_SLACK_CHARS_MAX], "verbatim": True}
    section = {"type": "section", "text": marked}
    return msgspec.json.encode({"text": _slack(values(event, link)["title"]), "blocks": [section]})


def teams(event: AlertEvent | None, link: str, template: str | None) -> bytes:
    """An adaptive card."""
    if event is None:
        blocks = [{"type": "TextBlock", "text": _TEST, "wrap": True}]
    else:
        title = {"type": "TextBlock", "text": _teams(values(event, link)["title"]), "weight": "bolder", "wrap": True}
        lines = text(event, link, template, escaped=_teams).splitlines()
        blocks = [title | {"color": _COLOURS[event.severity]}] + [
            {"type": "TextBlock", "text": line, "wrap": True} for line in lines
        ]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
        "actions": [{"type": "Action.OpenUrl", "title": "Open", "url": link}],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return msgspec.json.encode({"type": "message", "attachments": [attachment]})


def pagerduty(event: AlertEvent | None, link: str, template: str | None, *, routing_key: str, test_id: str) -> bytes:
    """Triggers and resolves one alert of an incident: PagerDuty knows it by `dedup_key`."""
    if event is None:
        test = {"summary": _TEST, "source": "playhead", "severity": "info"}
        return msgspec.json.encode(
            {"routing_key": routing_key, "event_action": "trigger", "dedup_key": test_id, "payload": test}
        )
    found = values(event, link)
    action = "resolve" if event.change == "closed" else "trigger"
    payload: dict[str, Any] = {
        "summary": f"{found['title']}: {text(event, link, template)}"[:_SUMMARY_CHARS_MAX],
        "source": event.customer_id,
        "severity": event.severity,
        "timestamp": datetime.fromtimestamp(event.opened_ms / 1_000, UTC).isoformat(timespec="milliseconds"),
        "class": event.metric,
        "component": found["where"],
        "custom_details": {name: found[name] for name in ("value", "usual", "affected", "suspect", "incident")},
    }
    return msgspec.json.encode(
        {
            "routing_key": routing_key,
            "event_action": action,
            "dedup_key": event.incident_id,
            "payload": payload,
            "links": [{"href": link, "text": "Playhead"}],
            "client": "Playhead",
            "client_url": link,
        }
    )


def email(
    event: AlertEvent | None,
    link: str,
    template: str | None,
    *,
    message_id: str,
    sender: str,
    to: list[str],
    at_ms: int,
) -> EmailMessage:
    """An e-mail. All of one incident are one thread; the id is the same in every attempt."""
    message = EmailMessage()
    domain = sender.rpartition("@")[2].rstrip(">") or "playhead"
    message["From"], message["To"] = sender, ", ".join(to)
    message["Date"] = format_datetime(datetime.fromtimestamp(at_ms / 1_000, UTC))
    message["Message-ID"] = f"<{message_id}@{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    if event is None:
        message["Subject"] = "Playhead: a test"
        message.set_content(f"{_TEST}\n{link}\n")
        return message
    message["Subject"] = f"[{event.severity}] {values(event, link)['title']}"
    message["References"] = f"<{event.incident_id}@{domain}>"
    message.set_content(text(event, link, template) + "\n")
    return message


def _teams(words: str) -> str:
    """Text blocks read Markdown: what viewers send must be no link."""
    return words.replace("\\", "\\\\").replace("[", "\\[")


def _slack(words: str) -> str:
    return words.translate(_SLACK_ESCAPES)
