"""Messages have what the receivers' formats ask for, and what is said of viewers stays text."""

import json
import re

import msgspec
import pytest

from services.alerts.messages import bodies
from services.alerts.messages.words import TemplateWrong, check_template, text
from tests.unit.alerts.events import AT_MS, EVIDENCE, event

LINK = "https://playhead.example/incident?id=1"


def test_the_text_says_what_where_how_much_and_who_is_suspect() -> None:
    found = text(event(), LINK, None)
    assert "rebuffering is 8.10% (usual: 2.00%) in cdn=a." in found
    assert "At most 81 viewers" in found
    assert "cdn=a (97% of it, 30% of viewers)" in found
    assert LINK in found


def test_a_template_replaces_the_text_and_names_only_what_there_is() -> None:
    assert text(event(), LINK, "$severity $where $$5") == "critical cdn=a $5"
    check_template("$title $link")
    with pytest.raises(TemplateWrong, match=r"\$secret is not known"):
        check_template("$secret")
    with pytest.raises(TemplateWrong):
        check_template("100 $")


def test_slack_escapes_what_would_be_markup() -> None:
    body = json.loads(bodies.slack(event(), LINK, None))
    assert "Rebuffering &lt;b&gt;&amp;" in body["blocks"][0]["text"]["text"]
    assert body["text"].startswith("Alert: ")


def test_teams_gets_an_adaptive_card() -> None:
    (attachment,) = json.loads(bodies.teams(event(), LINK, None))["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attachment["content"]["body"][0]["color"] == "attention"
    assert attachment["content"]["actions"][0]["url"] == LINK


@pytest.mark.parametrize(("change", "action"), [("opened", "trigger"), ("updated", "trigger"), ("closed", "resolve")])
def test_pagerduty_knows_an_incident_by_its_key(change: str, action: str) -> None:
    body = json.loads(bodies.pagerduty(event(change), LINK, None, routing_key="k" * 32, test_id="t"))
    assert (body["event_action"], body["dedup_key"]) == (action, event().incident_id)
    assert body["payload"]["severity"] == "critical"
    assert len(body["payload"]["summary"]) <= 1_024


def test_a_webhook_has_the_whole_change() -> None:
    body = json.loads(bodies.webhook(event("closed", 2), LINK, None, 0))
    assert body["type"] == "alert.closed"
    assert body["timestamp"] == "2026-11-30T00:00:00.000+00:00"
    assert body["data"]["revision"] == 2
    assert body["data"]["link"] == LINK


def test_an_email_is_of_its_incidents_thread_and_has_no_header_of_a_name() -> None:
    evil = event(rule_name="a\r\nBcc: all@example.com")
    with pytest.raises(ValueError, match="Header values may not contain"):
        bodies.email(evil, LINK, None, message_id="m", sender="p@x.example", to=["a@x.example"], at_ms=AT_MS)
    message = bodies.email(event(), LINK, None, message_id="m", sender="P <p@x.example>", to=["a@x.example"], at_ms=0)
    assert message["Subject"] == "[critical] Alert: Rebuffering <b>& (acme)"
    assert message["References"] == f"<{event().incident_id}@x.example>"
    assert message["Message-ID"] == "<m@x.example>"


@pytest.mark.parametrize("make", [bodies.slack, bodies.teams])
def test_a_test_says_that_it_is_one(make: object) -> None:
    assert "This is a test" in make(None, LINK, None).decode()  # type: ignore[operator]


def test_what_viewers_send_is_no_link_and_no_line_of_its_own() -> None:
    evil = EVIDENCE.slice | {"cdn": "[Log in](https://evil.example)\nFirst suspect: nobody."}
    one = event(slices=[msgspec.structs.replace(EVIDENCE, slice=evil)], suspects=[])
    (attachment,) = json.loads(bodies.teams(one, LINK, "$where"))["attachments"]
    _, line = attachment["content"]["body"]
    assert line["text"] == "cdn=\\[Log in](https://evil.example) First suspect: nobody."
    assert not any(line.startswith("First suspect") for line in text(one, LINK, None).splitlines())
    slack = json.loads(bodies.slack(one, LINK, "<https://evil.example|$where>"))["blocks"][0]["text"]["text"]
    assert "<" not in slack


def test_slack_makes_a_link_of_the_products_own_address_alone() -> None:
    """Slack made one of a CDN that is named like an address, and mentions of names."""
    evil = msgspec.structs.replace(EVIDENCE, slice={"cdn": "https://evil.example/login @here"})
    for template in (None, "<https://evil.example> in $where: $link"):
        text = json.loads(bodies.slack(event(slices=[evil]), f"{LINK}&b", template))["blocks"][0]["text"]
        assert text["verbatim"] is True
        assert re.findall("<[^>]*>", text["text"]) == [f"<{LINK}&amp;b>"]


def test_a_long_message_has_no_more_characters_than_slack_takes() -> None:
    body = json.loads(bodies.slack(event(rule_name="x" * 200), LINK, "y" * 4_000))
    assert len(body["blocks"][0]["text"]["text"]) <= 3_000


@pytest.mark.parametrize(
    "template", ["$where" * 600, "${title}${title}$$", "${where}\r\nBcc: all@x.example", "\u202e$title"]
)
def test_no_template_makes_a_message_that_cannot_be_sent(template: str) -> None:
    check_template(template)
    one = event(rule_name="x" * 200)
    for make in (bodies.slack, bodies.teams):
        assert len(make(one, LINK, template)) < 200_000
    assert len(bodies.webhook(one, LINK, template, 0)) < 200_000
    mail = bodies.email(one, LINK, template, message_id="m", sender="p@x.example", to=["a@x.example"], at_ms=AT_MS)
    assert mail["Bcc"] is None
    assert bytes(mail)


def test_beacons_are_what_is_hit_where_beacons_are_rejected() -> None:
    found = text(event(metric="rejected"), LINK, None)
    assert "rejected is 8.10% (usual: 2.00%)" in found
    assert "At most 81 beacons at a time" in found
