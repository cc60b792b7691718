"""What `/v1` says of a customer's data, over HTTP on a real Postgres: deletions, and for how long they are kept."""

import asyncio
import hashlib
import json
import threading
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from deploy.local.postgres import Postgres
from services.accounts.core.credentials import Credential
from services.accounts.core.deletions import STEPS
from services.accounts.store import schema
from services.accounts.store.audit import SYSTEM
from services.accounts.store.customers import deletions
from services.accounts.store.tenants.organisations import CustomerUnknown
from services.finalizer.jobs.deletions import asking
from services.finalizer.serving.database import Serving
from services.finalizer.serving.deletion_requests import DeletionRequests
from services.query.deleting import Deleting
from services.rim.process.crash_points import CrashPoints
from services.serving.live.database import LiveDatabase
from tests.integration.accounts.accounts_parts import Site, globex, invited, new_site

pytestmark = pytest.mark.integration


@pytest.fixture
async def home(postgres: Postgres) -> AsyncIterator[Site]:
    async with new_site(postgres) as made:
        yield made


async def test_a_deletion_is_asked_for_once_seen_by_its_organisation_alone_and_ended_by_exports(home: Site) -> None:
    owner = await home.owner()
    stranger = await globex(home, owner)
    viewer = await invited(home, owner, "looker@example.com", "viewer")
    wanted = {"customer": "acme", "viewer": "somebody", "sessions": ["s-2", "s-1", "s-1"]}
    assert (await home.ask("POST", "/v1/deletions", viewer, wanted))[0] == 403
    # What is nobody's belongs to who runs the installation: not to another organisation.
    assert (await home.ask("POST", "/v1/deletions", stranger, wanted))[0] == 404
    for wrong in (
        {"customer": "acme"},
        {"customer": "acme", "viewer": "x", "whole_customer": True},
        {"customer": "acme", "whole_customer": True, "sessions": ["s"]},
        {"customer": "acme", "viewer": "x", "sessions": ["../x"]},
        {"customer": "acme", "viewer": "x" * 501},
    ):
        assert (await home.ask("POST", "/v1/deletions", owner, wrong))[0] == 400, wrong
    status, made = await home.ask("POST", "/v1/deletions", owner, wanted)
    assert status == 202
    assert (made["state"], made["viewer"], made["asked_by"]) == ("pending", "somebody", "owner@example.com")
    assert made["viewer_sha256"] == hashlib.sha256(b"somebody").hexdigest()
    assert [one["step"] for one in made["steps"]] == [step.value for step in STEPS]
    assert (await home.ask("POST", "/v1/deletions", owner, wanted))[1]["id"] == made["id"]
    whole = (await home.ask("POST", "/v1/deletions", owner, {"customer": "acme", "whole_customer": True}))[1]
    assert (whole["viewer"], whole["viewer_sha256"]) == (None, None)
    first = await home.got("GET", "/v1/deletions?limit=1", owner)
    rest = await home.got("GET", f"/v1/deletions?limit=1&cursor={first['next']}", owner)
    assert [one["id"] for one in (*first["deletions"], *rest["deletions"])] == [whole["id"], made["id"]]
    assert rest["next"] is None
    # For others there is none.
    assert (await home.got("GET", "/v1/deletions", stranger))["deletions"] == []
    for path, who in ((f"/v1/deletions/{made['id']}", stranger), ("/v1/deletions/none", owner)):
        assert (await home.ask("GET", path, who))[0] == 404
    some = await home.got("POST", "/v1/tokens", owner, {"name": "some", "scopes": ["manage"], "customers": ["other"]})
    assert (await home.got("GET", "/v1/deletions", some["token"]))["deletions"] == []
    assert (await home.ask("GET", f"/v1/deletions/{made['id']}", some["token"]))[0] == 404
    assert (await home.ask("POST", "/v1/deletions", some["token"], wanted))[0] == 404
    # The log says that it was asked for, and not for whom.
    log = await home.got("GET", "/v1/audit?action=asked_for_deletion", owner)
    assert [one["target"] for one in log["entries"]] == ["acme", "acme"]
    assert "somebody" not in json.dumps(log)
    # What people chose to see: two of the saved views name the viewer.
    for name, address in (
        ("percent-encoded", "/views?customer=acme&filter=viewer_id%3D%3D%22somebody%22"),
        ("of somebody", "/now"),
        ("another viewer", "/views?customer=acme&search=nobody"),
        ("another customer", "/views?customer=other&search=somebody"),
    ):
        await home.got("POST", "/v1/saved-views", owner, {"name": name, "address": address})
    # Who asks for a deletion takes nothing from another organisation, where the id may be anything.
    await home.got("POST", "/v1/saved-views", stranger, {"name": "of somebody", "address": "/now"})
    chosen = {"metric": "rebuffer_fraction", "good": 0.1, "bad": 0.2, "n": 7}
    for customer in ("acme", "other"):
        await home.got("PATCH", "/v1/thresholds", owner, chosen | {"customer": customer})
    # The last step is not done before the others; with it the request is over, and the id is gone.
    deleting = Deleting(home.accounts.postgres, None)
    await deleting.look()
    assert (await home.got("GET", f"/v1/deletions/{made['id']}", owner))["state"] == "pending"
    with psycopg.connect(home.dsn, autocommit=True) as connection:
        done = "UPDATE accounts.deletion_steps SET state = 'done' WHERE deletion_id = %s AND step <> 'exports'"
        connection.execute(done, (made["id"],))
    await deleting.keep(wait=lambda _: asyncio.sleep(0), rounds_max=1)
    over = await home.got("GET", f"/v1/deletions/{made['id']}", owner)
    assert (over["state"], over["viewer"], over["viewer_sha256"]) == ("done", None, made["viewer_sha256"])
    assert over["steps"][-1]["found"] == {"exports": 0, "saved_views": 2}
    with psycopg.connect(home.dsn) as connection:
        assert connection.execute(
            "SELECT sessions FROM accounts.deletions WHERE id = %s", (made["id"],)
        ).fetchone() == ([],)
        connection.execute(done, (whole["id"],))
    left = (await home.got("GET", "/v1/saved-views", owner))["saved_views"]
    assert [one["name"] for one in left] == ["another customer", "another viewer"]
    theirs = (await home.got("GET", "/v1/saved-views", stranger))["saved_views"]
    assert [one["name"] for one in theirs] == ["of somebody"]
    # Of a whole customer, all that was chosen for it.
    await deleting.look()
    over = await home.got("GET", f"/v1/deletions/{whole['id']}", owner)
    assert (over["state"], over["steps"][-1]["found"]) == ("done", {"exports": 0, "saved_views": 1, "thresholds": 1})
    assert [row[0] for row in home.rows("SELECT customer_id FROM accounts.thresholds")] == ["other"]


async def test_a_deletion_is_asked_for_while_live_numbers_are_landed(home: Site) -> None:
    owner = await home.owner()
    with closing(Serving(home.dsn, away_seconds_max=20, stop=threading.Event())) as serving:
        serving.open()
    # It has its lock as long as it lives.
    with closing(LiveDatabase(home.dsn, 10, CrashPoints())) as landing:
        landing.begin({})
        status, made = await home.ask("POST", "/v1/deletions", owner, {"customer": "acme", "viewer": "somebody"})
    assert (status, made.get("state")) == (202, "pending")


def test_no_statement_of_the_command_waits_for_ever(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = postgres.create_database("asking")
    schema.migrate(dsn)

    async def ask(connection: psycopg.AsyncConnection, *_: object) -> SimpleNamespace:
        row = await (await connection.execute("SHOW statement_timeout")).fetchone()
        return SimpleNamespace(id=row)

    monkeypatch.setattr(asking.deletions, "ask", ask)
    settings: Any = SimpleNamespace(accounts_database=dsn)
    assert asking.ask(settings, Namespace(customer="acme", viewer="somebody", session=[])) == ("1min",)


async def test_the_open_requests_of_one_organisation_delay_none_of_another(home: Site) -> None:
    many, few = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"
    for organisation, customer, count in ((many, "acme", 150), (few, "globex", 1)):
        with psycopg.connect(home.dsn) as connection:
            connection.execute(
                """WITH made AS (
                    INSERT INTO accounts.deletions (organisation_id, customer_id, viewer, asked_by)
                    SELECT %s, %s, 'v' || n, 'x' FROM generate_series(1, %s) AS n ORDER BY n RETURNING id
                ) INSERT INTO accounts.deletion_steps (deletion_id, position, step) SELECT id, 0, %s FROM made""",
                (organisation, customer, count, STEPS[0]),
            )
    requests = DeletionRequests(home.dsn)
    found = requests.open()
    assert (len(found), [one.customer_id for one in found[:3]]) == (100, ["acme", "globex", "acme"])
    assert [one.viewer for one in found if one.customer_id == "acme"] == [f"v{number}" for number in range(1, 100)]
    waiting = await home.accounts.postgres.ask(partial(deletions.waiting_for, step=STEPS[0]))
    assert [customer for _, customer in waiting[:3]] == ["acme", "globex", "acme"]
    # What waits until somebody mends it does not keep the later ones of its organisation waiting.
    for one in found:
        requests.waits(one, "NoObjects")
    later = [one.viewer for one in requests.open() if one.customer_id == "acme"]
    assert later[:52] == [*(f"v{number}" for number in range(100, 151)), "v1"]


async def test_a_customer_moves_when_no_deletion_is_under_way_and_takes_those_that_are_over_with_it(home: Site) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    found = {one["name"]: one["id"] for one in (await home.got("GET", "/v1/organisations", owner))["organisations"]}
    to_globex, to_home = ({"organisation_id": found[name]} for name in ("Globex", "Home"))
    await home.got("PATCH", "/v1/customers/acme", owner, to_globex)
    _, asked = await home.ask("POST", "/v1/deletions", boss, {"customer": "acme", "whole_customer": True})
    status, problem = await home.ask("PATCH", "/v1/customers/acme", owner, to_home)
    assert (status, problem["type"]) == (409, "urn:playhead:problem:deletion")
    # Only a move waits, and only that of this customer.
    await home.got("PATCH", "/v1/customers/acme", owner, to_globex | {"name": "Acme"})
    await home.got("PATCH", "/v1/customers/other", owner, to_globex)
    assert await listed(home, owner) == []
    with psycopg.connect(home.dsn) as connection:
        connection.execute("UPDATE accounts.deletions SET state = 'done', ended_at = now()")
    await home.got("PATCH", "/v1/customers/acme", owner, to_home)
    for who, seen in ((owner, True), (boss, False)):
        assert await listed(home, who) == ([asked["id"]] if seen else [])
        assert (await home.ask("GET", f"/v1/deletions/{asked['id']}", who))[0] == (200 if seen else 404)
    # Whoever was let in before the move asks for nothing after it.
    async with await psycopg.AsyncConnection.connect(home.dsn) as connection:
        late = deletions.wanted("acme", None, [], organisation_id=found["Globex"], asked_by="boss")
        with pytest.raises(CustomerUnknown):
            await deletions.ask(connection, late, SYSTEM)


async def listed(home: Site, who: Credential) -> list[str]:
    """The ids of deletions that this person sees."""
    return [one["id"] for one in (await home.got("GET", "/v1/deletions", who))["deletions"]]


async def test_a_customers_retention_is_changed_by_its_managers_alone(home: Site) -> None:
    owner = await home.owner()
    stranger = await globex(home, owner)
    path = "/v1/customers/acme/retention"
    nothing = {"views": None, "beacons": None, "recordings": None, "applications": None}
    assert await home.got("GET", path, owner) == nothing
    assert (await home.got("PATCH", path, owner, {"views": 30, "recordings": 7}))["views"] == 30
    changed = await home.got("PATCH", path, owner, {"views": None, "beacons": 2})
    assert changed == {**nothing, "beacons": 2, "recordings": 7}
    assert await home.got("GET", path, owner) == changed
    for wrong in ({"views": 7}, {"beacons": 1}, {"recordings": 0}, {"exports": 1}):
        assert (await home.ask("PATCH", path, owner, wrong))[0] == 400, wrong
    assert (await home.ask("GET", path, stranger))[0] == (await home.ask("PATCH", path, stranger, {}))[0] == 404
    log = await home.got("GET", "/v1/audit?action=changed_retention", owner)
    assert [one["details"] for one in log["entries"]] == [{"views": None, "beacons": 2}, {"views": 30, "recordings": 7}]
