"""The alert of the demo's incident: a wrong time, place or number of messages is seen."""

import json
import urllib.request
from typing import Any

import msgspec
import pytest

from deploy.demo.comparing.alerting import CUSTOMER, Alert, Message, rule_of
from deploy.demo.comparing.asking import VIEWS_MIN, Api
from loadtest.incident import incident_of
from services.alerts.core.rules import RuleBody, check
from services.rim.http.signing import headers, key_of

INCIDENT = incident_of(60)
BEGAN_MS = 1_000_000_000
WHERE = {"cdn": INCIDENT.cdn, "asn": str(INCIDENT.asn)}
ROWS: list[dict[str, Any]] = [{}] * VIEWS_MIN


class FakeApi(Api):
    """Answers with incidents, and makes what it is sent."""

    def __init__(self, *events: dict[str, Any]) -> None:
        super().__init__(0, "")
        object.__setattr__(self, "events", events)
        object.__setattr__(self, "sent", [])

    events: tuple[dict[str, Any], ...]
    sent: list[Any]

    def ask(self, path: str, **parameters: str) -> dict[str, Any]:
        assert (path, parameters) == ("/v1/alerts/incidents", {"customer": CUSTOMER})
        return {"incidents": [{"event": one} for one in self.events]}

    def send(self, path: str, body: Any) -> dict[str, Any]:
        self.sent.append(body)
        return {"id": f"id-{len(self.sent)}"}


def event(after_ms: int = 12_000, where: dict[str, str] = WHERE, rule: str = "") -> dict[str, Any]:
    opened_ms = BEGAN_MS + INCIDENT.from_ms + after_ms
    return {"rule_id": rule, "incident_id": "one", "opened_ms": opened_ms, "slices": [{"slice": where}]}


def opening(number: int = 1, *, is_signed: bool = True) -> Message:
    return Message(f"msg-{number}", "alert.opened", {"incident_id": "one"}, is_signed)


def verdict(
    *events: dict[str, Any], messages: tuple[Message, ...] = (opening(),), views: int = VIEWS_MIN
) -> bool | None:
    alert = Alert(INCIDENT)
    alert.receiver.messages.extend(messages)
    return alert.line(FakeApi(*events), ROWS[:views], BEGAN_MS).ok


def test_the_rule_is_one_that_the_api_takes() -> None:
    check(msgspec.convert(rule_of(INCIDENT, []), RuleBody))


def test_one_incident_in_time_and_place_with_one_message_is_right() -> None:
    assert verdict(event()) is True
    # Delivered twice under one id, as may be; an incident of another rule is not ours.
    assert verdict(event(), event(rule="another"), messages=(opening(), opening())) is True


@pytest.mark.parametrize(
    ("events", "messages"),
    [
        ((), ()),
        ((event(-1),), (opening(),)),
        ((event(31_000),), (opening(),)),
        ((event(where={"cdn": "akamai", "asn": "64500"}),), (opening(),)),
        ((event(), event(20_000)), (opening(),)),
        ((event(),), ()),
        ((event(),), (opening(), opening(2))),
        ((event(),), (opening(is_signed=False),)),
    ],
)
def test_anything_else_differs_unless_there_are_too_few_views_to_tell(
    events: tuple[dict[str, Any], ...], messages: tuple[Message, ...]
) -> None:
    assert verdict(*events, messages=messages) is False
    assert verdict(*events, messages=messages, views=VIEWS_MIN - 1) is None


def test_the_receiver_verifies_what_it_is_sent() -> None:
    alert, api = Alert(INCIDENT), FakeApi()
    alert.prepare(api)
    try:
        receiver = alert.receiver
        assert api.sent[0]["target"] == {"url": receiver.url, "secret": receiver.secret}
        assert api.sent[1]["receivers"] == ["id-1"]
        body = json.dumps({"type": "alert.opened", "data": {}}).encode()
        for secret in (receiver.secret, "another secret"):
            given = headers(key_of(secret), "msg", 1_795_000_000, body)
            with urllib.request.urlopen(urllib.request.Request(receiver.url, body, given), timeout=10) as answer:
                assert answer.status == 204
        assert [one.is_signed for one in receiver.messages] == [True, False]
    finally:
        alert.stop()
