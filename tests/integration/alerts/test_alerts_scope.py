"""Alerts of an organisation are nobody else's: by no route, and by no message to who had its customer before."""

from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
import pytest

from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.accounts.store.audit import Actor
from services.accounts.store.tenants import organisations
from services.alerts.core.rules import RuleBody, RuleWrong
from services.alerts.http.operations import OPERATIONS
from services.alerts.service import Alerting
from services.alerts.store import deliveries, incidents
from services.rim.database.pool import Postgres as Pool
from tests.integration.alerts.alerting import T0, alerting, asked, bad_minutes, page
from tests.integration.collector.collecting import SECONDS_MAX
from tests.unit.alerts.events import event

pytestmark = pytest.mark.integration

RULE: dict[str, Any] = {
    "customer": "acme", "name": "High", "metric": "rebuffering", "condition": "threshold", "threshold": 0.05, "receivers": [],
}  # fmt: skip
#: Of each route that takes one, a body in which only whose things it names is wrong.
BODIES: dict[str, Any] = {
    "post-alerts-rules": RULE,
    "post-alerts-rules-trial": RULE,
    "put-alerts-rules-id": {"version": 1, "rule": RULE},
    "post-alerts-receivers": {"name": "own", "kind": "email", "target": {"to": ["a@x.example"]}},
    "put-alerts-receivers-id": {"name": "mine"},
    "post-alerts-incidents-id-mute": {"hours": 1},
    "post-alerts-incidents-id-comments": {"text": "mine"},
}
#: What a route has to be asked with.
QUERIES: Final = {"alerts-rules-suggested": "?customer=acme"}

ROOM: Final = deliveries.Room(10, 10, 10, {}, {})


def answers_of_every_route(url: str, bearer: str, ids: dict[str, str]) -> dict[str, tuple[int, str]]:
    """Status and body of each route, of the things of these ids."""
    found = {}
    # What is deleted is there no more.
    for one in sorted(OPERATIONS, key=lambda one: one.method == "delete"):
        path = one.path.replace("{id}", ids[one.path.split("/")[3]])
        data = None if one.name not in BODIES else msgspec.json.encode(BODIES[one.name])
        headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
        request = Request(url + path + QUERIES.get(one.name, ""), data, headers, method=one.method.upper())
        try:
            with urlopen(request, timeout=SECONDS_MAX) as answer:
                found[one.name] = (answer.status, answer.read().decode())
        except HTTPError as error:
            found[one.name] = (error.code, error.read().decode())
    return found


def test_what_is_anothers_is_not_there_in_any_route_and_every_change_is_in_the_audit_log(dsn: str) -> None:
    ids: dict[str, str] = {}
    bad_minutes(dsn)

    async def make(made: Alerting, actor: Actor) -> None:
        target = {"to": ["a@x.example"]}
        ids["receivers"] = await made.add_receiver(actor, name="ours", kind="email", target=target, template=None)
        body = msgspec.convert(RULE | {"receivers": [ids["receivers"]]}, RuleBody)
        ids["rules"] = await made.add_rule(EVERYTHING, body, actor)
        one = event(rule_id=ids["rules"], at_ms=T0)
        ids["incidents"] = one.incident_id
        await made._ask(incidents.land, event=one, now_ms=T0)

    alerting(dsn, make)
    ids["deliveries"] = asked(dsn, "UPDATE alerts.deliveries SET state = 'dead' RETURNING id")[0][0]
    tables = ("rules", "receivers", "incidents", "deliveries", "comments", "environments")
    everything = [asked(dsn, f"SELECT * FROM alerts.{table}") for table in tables]
    with page(dsn, CustomerScope(own=frozenset({"globex"}))) as (url, bearer):
        answers = answers_of_every_route(url, bearer, ids)
    assert answers.pop("post-alerts-receivers")[0] == 201
    for name in ("rules", "receivers", "deliveries", "incidents"):
        status, text = answers.pop(f"alerts-{name}")
        assert (status, msgspec.json.decode(text)) == (200, {name: [], "next": None})
    assert {name: status for name, (status, _) in answers.items() if status != 404} == {}
    assert not any(text for _, text in answers.values() if "ours" in text or "acme" in text)
    asked(dsn, "DELETE FROM alerts.receivers WHERE name = 'own' RETURNING id")
    assert [asked(dsn, f"SELECT * FROM alerts.{table}") for table in tables] == everything
    # Whose they are is answered by each, and each change leaves a row.
    before = len(asked(dsn, "SELECT 1 FROM accounts.audit"))
    with page(dsn) as (url, bearer):
        newest = "SELECT id FROM accounts.organisations ORDER BY created_at DESC LIMIT 1"
        asked(dsn, f"UPDATE alerts.receivers SET organisation_id = ({newest}) RETURNING 1")
        answers = answers_of_every_route(url, bearer, ids)
    assert {name: status for name, (status, _) in answers.items() if status >= 300} == {}
    actions = asked(dsn, f"SELECT action FROM accounts.audit ORDER BY id OFFSET {before}")
    assert sorted(one[0] for one in actions) == sorted(
        [
            *("made_alert_rule", "changed_alert_rule", "deleted_alert_rule"),
            *("made_alert_receiver", "changed_alert_receiver", "deleted_alert_receiver", "tested_alert_receiver"),
            *("tried_message_again", "acknowledged_incident", "muted_incident", "commented_on_incident"),
        ]
    )


async def claimed(pool: Pool) -> list[tuple[str | None, int]]:
    """Incident and revision of the messages that are sent now."""
    found = await pool.ask(partial(deliveries.claim, room=ROOM, lease_seconds=0))
    return [(one.incident_id, one.revision) for one in found]


@pytest.mark.parametrize("is_listed", [True, False])
async def test_a_customer_that_moves_sends_nothing_to_the_receivers_of_its_former_organisation(
    dsn: str, is_listed: bool
) -> None:
    made = "INSERT INTO accounts.organisations (name, owns_rest) VALUES ('Home', true) RETURNING id::text"
    home = asked(dsn, made)[0][0]
    globex = asked(dsn, "INSERT INTO accounts.organisations (name) VALUES ('Globex') RETURNING id::text")[0][0]
    pool = Pool(dsn, service="test", connections_max=2, seconds_max=SECONDS_MAX, writes=True)
    await pool.open()
    try:
        actor, people = Actor("person", "p", "ada@home", None, home), Alerting(pool)
        target = {"to": ["ada@home.example"]}
        mail = await people.add_receiver(actor, name="our mail", kind="email", target=target, template=None)
        body = RuleBody(
            customer="acme", name="High", metric="rebuffering", condition="threshold", threshold=0.05, receivers=[mail]
        )
        rule = await people.add_rule(EVERYTHING, body, actor)
        add = partial(organisations.add_customer, customer_id="acme", name="", actor=actor)
        if is_listed:
            await pool.ask(partial(add, organisation_id=home))
        past: dict[str, Any] = {"rule_id": rule, "at_ms": T0}
        opened, open_again = event(**past), event(**past, incident_id="f" * 24)
        await pool.ask(partial(incidents.land, event=opened, now_ms=T0))
        assert await claimed(pool) == [(opened.incident_id, 1)]
        # Its attempt has failed, and another one is due when the customer moves.
        if is_listed:
            move = partial(organisations.change_customer, owner_id=None, name=None, new_owner_id=globex)
            await pool.ask(partial(move, customer_id="acme", actor=actor))
        else:
            await pool.ask(partial(add, organisation_id=globex))
        await pool.ask(partial(incidents.land, event=open_again, now_ms=T0))
        await pool.ask(partial(incidents.land, event=event("closed", 2, **past), now_ms=T0))
        for _ in range(3):
            assert await claimed(pool) == []
        kept = asked(dsn, "SELECT state, attempts, problem FROM alerts.deliveries ORDER BY made_at, revision")
        assert [one[:2] for one in kept] == [("skipped", 1), ("skipped", 0), ("skipped", 0)]
        assert kept[1][2] == "the customer is another organisation's"
        # The new owner hears nothing of the former one's receivers, and names its own.
        assert (await people.story(opened.incident_id, globex))[2] == []
        assert [one.receiver for one in (await people.story(opened.incident_id, home))[2]] == ["our mail"] * 2
        theirs = replace(actor, organisation_id=globex)
        with pytest.raises(RuleWrong):
            await people.change_rule(EVERYTHING, rule, body, theirs, version=1)
        hook = await people.add_receiver(theirs, name="theirs", kind="email", target=target, template=None)
        await people.change_rule(EVERYTHING, rule, replace_receivers(body, hook), theirs, version=1)
        await pool.ask(partial(incidents.land, event=event(**past, incident_id="e" * 24), now_ms=T0))
        assert await claimed(pool) == [("e" * 24, 1)]
    finally:
        await pool.close()


def replace_receivers(body: RuleBody, *receivers: str) -> RuleBody:
    """The same rule, which notifies these."""
    return msgspec.structs.replace(body, receivers=list(receivers))
