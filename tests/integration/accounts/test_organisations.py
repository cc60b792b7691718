"""What those who run the installation do with organisations: they give customers, and invite a first owner again."""

import asyncio
import base64
from collections.abc import AsyncIterator

import psycopg
import pytest

from deploy.local.postgres import Postgres
from services.accounts.core.credentials import Credential
from services.accounts.store.tenants.organisations import CUSTOMERS_MAX
from tests.integration.accounts.accounts_parts import PASSWORD, Site, globex, invited, new_site

pytestmark = pytest.mark.integration

CHANGES = (
    "SELECT o.name, a.actor, a.target, a.details ->> 'from' = a.organisation_id::text, a.details ->> 'to' = a.organisation_id::text"
    " FROM accounts.audit AS a JOIN accounts.organisations AS o ON o.id = a.organisation_id"
    " WHERE action = 'changed_customer' ORDER BY a.id"
)


@pytest.fixture
async def home(postgres: Postgres) -> AsyncIterator[Site]:
    async with new_site(postgres) as made:
        yield made


async def ids(home: Site, owner: Credential) -> dict[str, str]:
    """Ids of all organisations by name."""
    return {one["name"]: one["id"] for one in (await home.got("GET", "/v1/organisations", owner))["organisations"]}


async def has(home: Site, who: Credential, customer_id: str) -> bool:
    """Whether this person may see the customer now."""
    principal = await home.identities.principal(who)
    assert principal is not None
    return principal.scope.has(customer_id)


async def test_a_customer_that_is_not_listed_is_given_and_taken_back(home: Site) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    found = await ids(home, owner)
    assert (await has(home, owner, "acme"), await has(home, boss, "acme")) == (True, False)
    given = await home.got("PATCH", "/v1/customers/acme", owner, {"organisation_id": found["Globex"]})
    assert (given["id"], given["organisation_id"]) == ("acme", found["Globex"])
    assert (await has(home, owner, "acme"), await has(home, boss, "acme")) == (False, True)
    await home.got("PATCH", "/v1/customers/acme", owner, {"organisation_id": found["Home"]})
    assert (await has(home, owner, "acme"), await has(home, boss, "acme")) == (True, False)
    # Both organisations can read who moved it.
    assert home.rows(CHANGES) == [
        ("Home", "owner@example.com", "acme", True, False),
        ("Globex", "owner@example.com", "acme", False, True),
        ("Globex", "owner@example.com", "acme", True, False),
        ("Home", "owner@example.com", "acme", False, True),
    ]


async def test_what_cannot_be_given_is_not_listed_either(home: Site) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    editor = await invited(home, owner, "editor@example.com", "editor")
    found = await ids(home, owner)
    to_globex = {"organisation_id": found["Globex"]}
    for who, path, body, status in (
        (owner, "/v1/customers/acme", {"organisation_id": "none"}, 404),
        (owner, "/v1/customers/acme", {"name": "A name alone lists nothing"}, 404),
        (owner, "/v1/customers/acme%0A", to_globex, 404),
        (owner, "/v1/customers/a:b", to_globex, 404),
        (boss, "/v1/customers/acme", to_globex, 404),
        # Of who runs the installation those alone who manage it.
        (editor, "/v1/customers/acme", to_globex, 403),
    ):
        assert (await home.ask("PATCH", path, who, body))[0] == status, (path, body)
    assert (await home.got("GET", "/v1/customers", owner))["customers"] == []


async def test_an_organisation_is_given_as_many_customers_as_it_may_have(home: Site) -> None:
    owner = await home.owner()
    await globex(home, owner)
    to_globex = {"organisation_id": (await ids(home, owner))["Globex"]}
    with psycopg.connect(home.dsn) as connection:
        connection.execute(
            "INSERT INTO accounts.customers (customer_id, organisation_id)"
            " SELECT 'c' || number, %s FROM generate_series(1, %s) AS number",
            (to_globex["organisation_id"], CUSTOMERS_MAX - 1),
        )
    assert (await home.ask("PATCH", "/v1/customers/acme", owner, to_globex))[0] == 200
    assert (await home.ask("PATCH", "/v1/customers/other", owner, to_globex))[0] == 409
    # Nothing of what is refused is listed, and what it has can be renamed.
    assert home.rows("SELECT customer_id FROM accounts.customers WHERE customer_id !~ '^c[0-9]+$'") == [("acme",)]
    assert (await home.ask("PATCH", "/v1/customers/acme", owner, to_globex | {"name": "Acme"}))[0] == 200


async def test_customers_of_one_organisation_come_in_pages(home: Site) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    found = await ids(home, owner)
    for number in range(5):
        to = found["Globex" if number % 2 else "Home"]
        await home.got("POST", "/v1/customers", owner, {"id": f"c{number}", "organisation_id": to})
    of_home, of_globex = (f"/v1/customers?limit=2&organisation_id={found[name]}" for name in ("Home", "Globex"))
    first = await home.got("GET", of_home, owner)
    second = await home.got("GET", f"{of_home}&cursor={first['next']}", owner)
    assert [[one["id"] for one in page["customers"]] for page in (first, second)] == [["c0", "c2"], ["c4"]]
    assert [one["id"] for one in (await home.got("GET", of_globex, owner))["customers"]] == ["c1", "c3"]
    # A cursor is of one question.
    assert (await home.ask("GET", f"{of_globex}&cursor={first['next']}", owner))[0] == 400
    # To others another organisation is as one that does not exist.
    assert (await home.got("GET", of_globex, boss))["customers"] != []
    assert await home.got("GET", of_home, boss) == {"customers": [], "next": None}
    assert await home.got("GET", "/v1/customers?organisation_id=none", boss) == {"customers": [], "next": None}


async def test_pages_of_a_token_for_some_customers_are_full_and_their_cursors_name_no_other(home: Site) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    found = await ids(home, owner)
    for number in range(8):
        to = found["Home" if number == 4 else "Globex"]
        await home.got("POST", "/v1/customers", owner, {"id": f"c{number}", "organisation_id": to})
    wanted = {"name": "some", "scopes": ["read_metrics"], "customers": ["c2", "c3", "c6"]}
    token = (await home.got("POST", "/v1/tokens", boss, wanted))["token"]
    pages, cursors, cursor = [], [], ""
    while cursor is not None:
        page = await home.got("GET", f"/v1/customers?limit=2&cursor={cursor}", token)
        pages.append([one["id"] for one in page["customers"]])
        cursor = page["next"]
        cursors.append(cursor)
    assert pages == [["c2", "c3"], ["c6"]]
    assert base64.urlsafe_b64decode(cursors[0] + "==").decode().endswith(" c3")
    # One that has left the organisation is not in the list of the token either.
    await home.got("PATCH", "/v1/customers/c3", owner, {"organisation_id": found["Home"]})
    left = (await home.got("GET", "/v1/customers", token))["customers"]
    assert [one["id"] for one in left] == ["c2", "c6"]


async def test_the_owner_of_an_organisation_that_nobody_joined_is_invited_again(home: Site) -> None:
    owner = await home.owner()
    made = await home.got("POST", "/v1/organisations", owner, {"name": "Globex", "owner": "bos@globex.example"})
    path = f"/v1/organisations/{made['id']}/invitations"
    again = await home.got("POST", path, owner, {"email": "boss@globex.example"})
    # The one before ends, also that of another address.
    body = {"link": made["link"].partition("#")[2], "password": PASSWORD}
    assert (await home.ask("POST", "/v1/link/use", None, body))[0] == 410
    boss = await home.join(again["link"])
    session = await home.got("GET", "/v1/session", boss)
    assert (session["organisation"], session["role"], session["operates"]) == ("Globex", "owner", False)
    noted = [
        (one["action"], one["actor"], one["target"]) for one in (await home.got("GET", "/v1/audit", boss))["entries"]
    ]
    assert noted[1:] == [
        ("invited", "owner@example.com", "boss@globex.example"),
        ("withdrew_invitation", "owner@example.com", "bos@globex.example"),
        ("invited", "owner@example.com", "bos@globex.example"),
        ("made_organisation", "owner@example.com", "Globex"),
    ]
    # From now on its own people invite: nobody else makes an owner of it.
    status, problem = await home.ask("POST", path, owner, {"email": "owner@example.com"})
    assert (status, problem["title"]) == (409, "Somebody has joined this organisation")
    assert (await home.ask("POST", path, boss, {"email": "x@globex.example"}))[0] == 404
    nowhere = "/v1/organisations/none/invitations"
    assert (await home.ask("POST", nowhere, owner, {"email": "x@globex.example"}))[0] == 404
    assert (await home.ask("POST", path, owner, {"email": "no address"}))[0] == 400


async def test_of_links_for_a_first_owner_that_are_made_at_once_the_last_alone_is_good(home: Site) -> None:
    owner = await home.owner()
    made = await home.got("POST", "/v1/organisations", owner, {"name": "Globex", "owner": "bos@globex.example"})
    path = f"/v1/organisations/{made['id']}/invitations"
    asked = [home.got("POST", path, owner, {"email": f"boss{number}@globex.example"}) for number in range(6)]
    links = [one["link"].partition("#")[2] for one in await asyncio.gather(*asked)]
    used = [await home.ask("POST", "/v1/link/use", None, {"link": link, "password": PASSWORD}) for link in links]
    assert sorted(status for status, _ in used) == [200, 410, 410, 410, 410, 410]
