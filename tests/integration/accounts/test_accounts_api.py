"""`/v1` of people, organisations, customers and the audit log, over HTTP on a real Postgres."""

import csv
import io
import json
from collections.abc import AsyncIterator

import psycopg
import pytest
from openapi_spec_validator import validate

from deploy.local.postgres import Postgres
from services.accounts.core.credentials import Credential
from services.accounts.service import LoginWrong
from services.accounts.store.audit import SYSTEM
from services.rim.http.openapi import document
from tests.integration.accounts.accounts_parts import PASSWORD, Site, globex, invited, new_site

pytestmark = pytest.mark.integration


@pytest.fixture
async def home(postgres: Postgres) -> AsyncIterator[Site]:
    async with new_site(postgres) as made:
        yield made


async def invited_at_once(home: Site, email: str) -> Credential:
    """An owner of the first organisation who was made past the invitation, as by a login at a provider."""
    hashed = await home.accounts.passwords.hash(PASSWORD)
    with psycopg.connect(home.dsn) as connection:
        connection.execute(
            "WITH made AS (INSERT INTO accounts.people (email, name, password_hash) VALUES (%s, 'L', %s) RETURNING id)"
            " INSERT INTO accounts.members (person_id, organisation_id, role)"
            " SELECT made.id, o.id, 'owner' FROM made, accounts.organisations AS o WHERE owns_rest",
            (email, hashed),
        )
    return await home.accounts.log_in(email, PASSWORD, address=None, agent="")


async def test_an_id_with_a_line_break_behind_it_names_nothing(home: Site) -> None:
    owner = await home.owner()
    for path, body in (
        ("/v1/customers", {"id": "acme\n", "name": "Acme"}),
        ("/v1/deletions", {"customer": "acme\n", "viewer": "v"}),
        ("/v1/deletions", {"customer": "acme", "viewer": "v", "sessions": ["s\n"]}),
    ):
        assert (await home.ask("POST", path, owner, body))[0] == 400, body
    assert (await home.got("GET", "/v1/deletions", owner))["deletions"] == []


async def test_an_invitation_makes_a_member_of_its_role_once_until_it_is_withdrawn(home: Site) -> None:
    owner = await home.owner()
    viewer = await invited(home, owner, "viewer@example.com", "viewer")
    people = (await home.got("GET", "/v1/people", viewer))["people"]
    assert [(one["email"], one["role"]) for one in people] == [
        ("owner@example.com", "owner"),
        ("viewer@example.com", "viewer"),
    ]
    assert (await home.ask("POST", "/v1/invitations", viewer, {"email": "x@y", "role": "viewer"}))[0] == 403
    assert (await home.ask("POST", "/v1/invitations", owner, {"email": "viewer@example.com", "role": "admin"}))[
        0
    ] == 409
    assert (await home.ask("POST", "/v1/invitations", owner, {"email": "x@y", "role": "king"}))[0] == 400
    first = await home.got("POST", "/v1/invitations", owner, {"email": "late@example.com", "role": "editor"})
    second = await home.got("POST", "/v1/invitations", owner, {"email": "late@example.com", "role": "admin", "days": 1})
    (listed,) = (await home.got("GET", "/v1/invitations", owner))["invitations"]
    assert (listed["id"], listed["role"], listed["made_by"]) == (second["id"], "admin", "owner@example.com")
    # The second has taken the first one's place, and is withdrawn.
    await home.got("DELETE", f"/v1/invitations/{second['id']}", owner)
    for link in (first["link"], second["link"]):
        body = {"link": link.partition("#")[2], "password": PASSWORD}
        assert (await home.ask("POST", "/v1/link/use", None, body))[0] == 410
    assert (await home.ask("DELETE", f"/v1/invitations/{second['id']}", owner))[0] == 404


async def test_roles_change_within_what_the_giver_may_and_an_owner_is_left(home: Site) -> None:
    owner = await home.owner()
    admin = await invited(home, owner, "admin@example.com", "admin")
    ids = {one["email"]: one["id"] for one in (await home.got("GET", "/v1/people", owner))["people"]}
    owner_path, admin_path = (f"/v1/people/{ids[f'{name}@example.com']}" for name in ("owner", "admin"))
    for path, body in ((owner_path, {"role": "viewer"}), (admin_path, {"role": "owner"})):
        assert (await home.ask("PATCH", path, admin, body))[0] == 403
    assert (await home.ask("DELETE", owner_path, admin))[0] == 403
    assert (await home.ask("POST", "/v1/invitations", admin, {"email": "x@y", "role": "owner"}))[0] == 403
    # The last owner stays one.
    assert (await home.ask("PATCH", owner_path, owner, {"role": "admin"}))[0] == 403
    assert (await home.ask("DELETE", owner_path, owner))[0] == 403
    await home.got("PATCH", admin_path, owner, {"role": "owner"})
    await home.got("PATCH", owner_path, admin, {"role": "viewer"})
    assert (await home.ask("GET", "/v1/audit", owner))[0] == 403
    await home.got("DELETE", owner_path, admin)
    assert (await home.ask("GET", "/v1/people", owner))[0] == 401


async def test_an_organisation_is_as_unknown_to_another_as_one_that_does_not_exist(home: Site) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    mine = (await home.got("GET", "/v1/people", owner))["people"][0]["id"]
    organisations = (await home.got("GET", "/v1/organisations", boss))["organisations"]
    assert [one["name"] for one in organisations] == ["Globex"]
    assert len((await home.got("GET", "/v1/organisations", owner))["organisations"]) == 2
    invitation = await home.got("POST", "/v1/invitations", owner, {"email": "x@y.example", "role": "viewer"})
    token = await home.got("POST", "/v1/tokens", owner, {"name": "ci", "scopes": ["read_metrics"]})
    customer = await home.got("POST", "/v1/customers", owner, {"id": "acme", "name": "Acme"})
    (home_id,) = [
        one["id"]
        for one in (await home.got("GET", "/v1/organisations", owner))["organisations"]
        if one["id"] != organisations[0]["id"]
    ]
    for method, path, body in (
        ("PATCH", "/v1/people/{}", {"role": "viewer"}),
        ("DELETE", "/v1/people/{}", None),
        ("POST", "/v1/people/{}/end-sessions", None),
        ("DELETE", "/v1/invitations/{}", None),
        ("DELETE", "/v1/tokens/{}", None),
        ("PATCH", "/v1/customers/{}", {"name": "Mine"}),
        ("PATCH", "/v1/organisations/{}", {"name": "Mine"}),
        ("POST", "/v1/organisations/{}/enter", None),
    ):
        kind = path.split("/")[2]
        foreign = {"people": mine, "invitations": invitation["id"], "tokens": token["id"], "customers": customer["id"]}
        found = await home.ask(method, path.format(foreign.get(kind, home_id)), boss, body)
        assert found == await home.ask(method, path.format("no-such"), boss, body)
        assert found[0] == 404, path
    assert (await home.ask("POST", "/v1/organisations", boss, {"name": "Mine", "owner": "a@b"}))[0] == 404
    # Nothing of the other's is in any list or in the log.
    lists = ("/v1/people", "/v1/invitations", "/v1/tokens", "/v1/customers", "/v1/audit")
    texts = [json.dumps(await home.got("GET", path, boss)) for path in lists]
    assert not [text for text in texts if "acme" in text or "y.example" in text or mine in text or token["id"] in text]


async def test_who_runs_the_installation_says_whose_a_customer_is_and_others_make_their_own(home: Site) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    (its_id,) = [one["id"] for one in (await home.got("GET", "/v1/organisations", boss))["organisations"]]
    made = await home.got("POST", "/v1/customers", boss, {"name": "Staging"})
    assert made["id"].startswith("env_")
    # Data may lie under an id that somebody names.
    assert (await home.ask("POST", "/v1/customers", boss, {"id": "acme", "name": "Mine"}))[0] == 403
    await home.got("POST", "/v1/customers", owner, {"id": "acme", "name": "Acme"})
    assert (await home.ask("POST", "/v1/customers", owner, {"id": "acme", "name": "Again"}))[0] == 409
    assert (await home.ask("PATCH", f"/v1/customers/{made['id']}", boss, {"organisation_id": its_id}))[0] == 403
    principal = await home.identities.principal(boss)
    assert principal is not None
    assert [principal.scope.has(one) for one in ("acme", made["id"])] == [False, True]
    changed = await home.got("PATCH", "/v1/customers/acme", owner, {"organisation_id": its_id, "name": "Acme TV"})
    assert (changed["name"], changed["organisation_id"]) == ("Acme TV", its_id)
    principal, own = await home.identities.principal(boss), await home.identities.principal(owner)
    assert principal is not None
    assert own is not None
    assert (principal.scope.has("acme"), own.scope.has("acme")) == (True, False)
    assert [one["id"] for one in (await home.got("GET", "/v1/customers", boss))["customers"]] == ["acme", made["id"]]
    assert (await home.ask("PATCH", "/v1/customers/acme", owner, {"organisation_id": "none"}))[0] == 404


async def test_somebody_of_two_organisations_works_in_one_at_a_time(home: Site) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    invitation = await home.got("POST", "/v1/invitations", boss, {"email": "owner@example.com", "role": "viewer"})
    body = {"link": invitation["link"].partition("#")[2], "password": "another password 8"}
    # Who invites knows the link: only the account's own password lets it into another organisation.
    status, problem = await home.ask("POST", "/v1/link/use", None, body)
    assert (status, problem["type"].rpartition(":")[2]) == (401, "account-exists")
    body["password"] = PASSWORD
    assert await home.got("POST", "/v1/link/use", None, body) == {"done": True, "session": False}
    assert (await home.ask("POST", "/v1/link/use", None, body))[0] == 410
    (its_id,) = [one["id"] for one in (await home.got("GET", "/v1/organisations", boss))["organisations"]]
    await home.got("POST", f"/v1/organisations/{its_id}/enter", owner)
    session = await home.got("GET", "/v1/session", owner)
    assert (session["organisation"], session["role"], session["operates"]) == ("Globex", "viewer", False)


async def test_an_account_that_another_organisation_has_made_brings_its_maker_nowhere(home: Site) -> None:
    """An admin of one organisation makes an account of somebody's address, and waits until another one invites that address."""
    owner = await home.owner()
    boss = await globex(home, owner)
    victim = "victim@example.com"
    await invited(home, boss, victim, "viewer")
    invitation = await home.got("POST", "/v1/invitations", owner, {"email": victim, "role": "admin"})
    body = {"link": invitation["link"].partition("#")[2], "name": "V", "password": "a password of the victim 9"}
    # The account has members' rights elsewhere: it joins with its password alone, which the victim does not have.
    assert (await home.ask("POST", "/v1/link/use", None, body))[0] == 401
    emails = {one["email"] for one in (await home.got("GET", "/v1/people", owner))["people"]}
    assert victim not in emails
    # Of no organisation any more, it begins again: the maker's password opens nothing.
    (there,) = [one for one in (await home.got("GET", "/v1/people", boss))["people"] if one["email"] == victim]
    await home.got("DELETE", f"/v1/people/{there['id']}", boss)
    assert (await home.got("POST", "/v1/link/use", None, body))["session"] is True
    with pytest.raises(LoginWrong):
        await home.accounts.log_in(victim, PASSWORD, address=None, agent="")
    session = await home.accounts.log_in(victim, body["password"], address=None, agent="")
    assert (await home.got("GET", "/v1/session", session))["role"] == "admin"


async def test_who_owns_an_address_gets_back_an_account_that_somebody_else_made_or_whose_password_is_forgotten(
    home: Site,
) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    victim = "victim@example.com"
    squatter = await invited(home, boss, victim, "admin")
    invitation = await home.got("POST", "/v1/invitations", owner, {"email": victim, "role": "editor"})
    former = await home.accounts.new_login_link(victim, SYSTEM)
    again = await home.accounts.new_login_link(victim, SYSTEM, begins_again=True)
    assert former is not None
    assert again is not None
    # Nothing that the maker has is a way in.
    assert (await home.ask("GET", "/v1/session", squatter))[0] == 401
    assert (await home.ask("POST", "/v1/login", None, {"email": victim, "password": PASSWORD}))[0] == 401
    assert (await home.ask("POST", "/v1/link/use", None, {"link": former.text}))[0] == 410
    session = await home.join(f"#{again.text}")
    password = "a password of the victim 9"
    await home.got("POST", "/v1/profile/password", session, {"present": "", "password": password})
    body = {"link": invitation["link"].partition("#")[2], "password": password}
    assert (await home.got("POST", "/v1/link/use", None, body))["session"] is False
    found = (await home.got("GET", "/v1/organisations", session))["organisations"]
    (there, mine) = sorted(found, key=lambda one: one["name"])
    assert (there["name"], mine["name"]) == ("Globex", "Home")
    # Out of the organisation that it never wanted to be in; the session was in that one.
    assert (await home.ask("POST", "/v1/organisations/none/leave", session))[0] == 404
    await home.got("POST", f"/v1/organisations/{there['id']}/leave", session)
    assert (await home.ask("GET", "/v1/session", session))[0] == 401
    back = await home.accounts.log_in(victim, password, address=None, agent="")
    assert (await home.got("GET", "/v1/session", back))["organisation"] == "Home"
    entries = (await home.got("GET", "/v1/audit", boss))["entries"]
    noted = {(one["action"], one["actor"]) for one in entries}
    assert {("began_account_again", "command"), ("left_organisation", victim)} <= noted


async def test_who_leaves_takes_along_what_it_made_and_the_last_owner_stays(home: Site) -> None:
    owner = await home.owner()
    admin = await invited(home, owner, "admin@example.com", "admin")
    organisation_id = (await home.got("GET", "/v1/session", admin))["organisation_id"]
    token = (await home.got("POST", "/v1/tokens", admin, {"name": "x", "scopes": ["manage"]}))["token"]
    path = f"/v1/organisations/{organisation_id}/leave"
    assert (await home.ask("POST", path, token))[0] == 403
    assert (await home.ask("POST", path, owner))[0] == 403
    await home.got("POST", path, admin)
    assert (await home.ask("GET", "/v1/customers", token))[0] == 401
    assert (await home.ask("POST", path, await globex(home, owner)))[0] == 404


async def test_an_invitation_says_nothing_of_an_account_to_who_gives_a_password_that_nobody_has(home: Site) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    answers = []
    for email in ("owner@example.com", "nobody@example.com"):
        invitation = await home.got("POST", "/v1/invitations", boss, {"email": email, "role": "viewer"})
        body = {"link": invitation["link"].partition("#")[2], "password": "short"}
        answers.append(await home.ask("POST", "/v1/link/use", None, body))
    assert answers[0] == answers[1]
    assert answers[0][0] == 400


async def test_an_invitation_that_was_open_takes_no_role_away(home: Site) -> None:
    owner = await home.owner()
    invitation = await home.got("POST", "/v1/invitations", owner, {"email": "late@example.com", "role": "viewer"})
    late = await invited_at_once(home, "late@example.com")
    body = {"link": invitation["link"].partition("#")[2], "password": PASSWORD}
    await home.got("POST", "/v1/link/use", None, body)
    assert (await home.got("GET", "/v1/session", late))["role"] == "owner"


async def test_lists_come_in_pages(home: Site) -> None:
    owner = await home.owner()
    for number in range(5):
        await home.got("POST", "/v1/customers", owner, {"id": f"c{number}"})
    for path, key, count in (("/v1/customers", "customers", 5), ("/v1/audit", "entries", 6)):
        seen, cursor = [], ""
        while True:
            page = await home.got("GET", f"{path}?limit=2&cursor={cursor}", owner)
            seen += page[key]
            cursor = page["next"]
            if cursor is None:
                break
        assert len({one["id"] for one in seen}) == len(seen) == count
    of_log = (await home.got("GET", "/v1/audit?limit=2", owner))["next"]
    of_customers = (await home.got("GET", "/v1/customers?limit=2", owner))["next"]
    for path in (
        f"/v1/customers?cursor={of_log}",
        f"/v1/audit?cursor={of_customers}",
        f"/v1/audit?action=x&cursor={of_log}",
    ):
        status, problem = await home.ask("GET", path, owner)
        assert (status, problem["detail"]) == (
            400, "cursor is the `next` of a page of this list, for the same question",
        ), path  # fmt: skip
    for wrong in ("limit=0", "limit=501", "limit=x", "cursor=%00", "cursor=!", "other=1", "limit=1&limit=2"):
        status, problem = await home.ask("GET", f"/v1/customers?{wrong}", owner)
        assert (status, problem["status"], problem["title"]) == (400, 400, "The request is wrong"), wrong


async def test_the_audit_log_says_who_did_what_from_where_and_is_exported(home: Site) -> None:
    owner = await home.owner()
    await home.got("POST", "/v1/customers", owner, {"id": "acme", "name": "=cmd()"})
    await home.ask("POST", "/v1/login", None, {"email": "owner@example.com", "password": "wrong"})
    entries = (await home.got("GET", "/v1/audit", owner))["entries"]
    assert [one["action"] for one in entries] == ["login_failed", "made_customer", "became_first_owner"]
    assert (entries[1]["actor"], entries[1]["target"], entries[1]["address"]) == (
        "owner@example.com",
        "acme",
        "127.0.0.1",
    )
    (only,) = (await home.got("GET", "/v1/audit?action=made_customer", owner))["entries"]
    assert only == entries[1]
    cookie = {"Cookie": f"playhead_session={owner.text}"}
    async with home.client.get("/v1/audit/export?format=jsonl", headers=cookie) as answer:
        lines = [json.loads(line) for line in (await answer.text()).splitlines()]
    assert [one["action"] for one in lines] == ["exported_audit", *[one["action"] for one in entries]]
    async with home.client.get("/v1/audit/export?format=csv", headers=cookie) as answer:
        assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
        table = list(csv.DictReader(io.StringIO(await answer.text())))
    assert [row["action"] for row in table][:2] == ["exported_audit", "exported_audit"]
    assert len(table) == len(entries) + 2


async def test_the_document_describes_every_route_of_the_api(home: Site) -> None:
    app = home.client.app
    assert app is not None
    described = document(home.routes.described)
    validate(described)
    operations = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    routes = {(route.method, route.resource.canonical) for route in app.router.routes() if route.resource is not None}
    assert operations == {
        (method, path) for method, path in routes if path.startswith("/v1/") and method not in {"HEAD", "*"}
    }
