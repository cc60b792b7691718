"""What people do on the screen Settings: write keys with their limits and origins, and the organisation they work in."""

import re
from typing import Any, Final

import psycopg
from playwright.sync_api import Locator, Page, expect

from services.collector.customers.table import MIGRATIONS_DIR
from services.rim.database.migrations import migrate
from tests.integration.parts.browsing import SOON_MS

#: Parts of the screen, each an address.
SCREENS = (
    *("settings?part=people", "settings?part=environments&of=acme", "settings?part=dimensions"),
    *("settings?part=organisations", "settings?part=tokens", "settings?part=audit"),
)
#: Of people who join in tests.
PASSWORD: Final = "a long enough password"
#: What the page calls each scope of a token.
_SCOPES: Final = {
    "read_metrics": "read figures",
    "read_views": "read single views",
    "ingest": "send beacons",
    "manage": "manage people, tokens and keys",
}


def manages_no_keys(page: Page) -> None:
    """From now on the page is told that collectors take the customer's id as a key."""
    problem = {
        "type": "urn:playhead:problem:customers",
        "status": 503,
        "title": "Write keys are not managed here",
        "detail": "Players use the customer's id as their key.",
    }
    page.route(
        "**/v1/keys?*",
        lambda route: route.fulfill(status=503, json=problem, content_type="application/problem+json"),
    )


def stored(dsn: str, customer_id: str) -> list[tuple[Any, ...]]:
    """Name, origins, limits of the keys that a collector would take now, by name."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "SELECT name, origins, beacons_per_second, bytes_per_second FROM collector.keys WHERE customer_id = %s"
            " AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AND name <> %s ORDER BY name",
            (customer_id, "The customer's id"),
        ).fetchall()


def makes_changes_and_revokes_a_key(page: Page, dsn: str) -> None:
    """On the screen of environment acme; what collectors read is compared after each step."""
    # As python -m deploy.customers_table does.
    migrate(dsn, "collector", MIGRATIONS_DIR)
    page.reload()
    form = page.locator("#make-key")
    form.get_by_label("Name").fill("web", timeout=SOON_MS)
    form.get_by_label("Origins").fill("https://a.example https://b.example")
    form.get_by_label("Beacons a second").fill("250")
    form.get_by_role("button", name="Make a key").click()
    row = page.get_by_role("region", name="Write keys").locator("tbody tr").filter(has_text="web")
    expect(row).to_contain_text("250 beacons/s", timeout=SOON_MS)
    assert stored(dsn, "acme") == [("web", ["https://a.example", "https://b.example"], 250.0, None)]
    row.get_by_role("button", name="Change").click()
    change = page.locator("#change-key")
    expect(change.get_by_label("Origins")).to_have_value("https://a.example https://b.example")
    change.get_by_label("Origins").fill("https://b.example")
    change.get_by_label("Beacons a second").fill("")
    change.get_by_label("Bytes a second").fill("65536")
    change.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("65,536 B/s", timeout=SOON_MS)
    expect(change).to_have_count(0)
    assert stored(dsn, "acme") == [("web", ["https://b.example"], None, 65_536.0)]
    # What the API refuses is said, and nothing is changed.
    row.get_by_role("button", name="Change").click()
    change.get_by_label("Origins").fill("https://b.example/path")
    change.get_by_role("button", name="Save").click()
    expect(page.locator("main .notice")).to_contain_text("origins", timeout=SOON_MS)
    change.get_by_role("button", name="Cancel").click()
    assert stored(dsn, "acme")[0][1] == ["https://b.example"]
    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked", timeout=SOON_MS)
    assert stored(dsn, "acme") == []


def works_in_another_organisation(page: Page, dsn: str, email: str) -> None:
    """On the profile of somebody who owns an organisation, and is made a viewer of another."""
    expect(page.get_by_role("region", name="Organisations")).to_have_count(0)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "WITH made AS (INSERT INTO accounts.organisations (name) VALUES ('Umbrella') RETURNING id)"
            " INSERT INTO accounts.members (person_id, organisation_id, role)"
            " SELECT people.id, made.id, 'viewer' FROM accounts.people, made WHERE email = %s",
            (email,),
        )
    page.reload()
    page.get_by_role("button", name="Work in Umbrella").click(timeout=SOON_MS)
    expect(page.locator("#account")).to_contain_text("Umbrella", timeout=SOON_MS)
    expect(page.locator("main")).to_contain_text(re.compile(r"Umbrella · viewer"), timeout=SOON_MS)
    # A viewer of that one has neither its tokens nor its log.
    expect(page.get_by_role("link", name="API tokens")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^Work in "))).to_have_count(1)


def invites_an_editor(page: Page, email: str) -> str:
    """On the screen of people; the link for who is invited."""
    form = page.locator("form", has=page.get_by_role("button", name="Invite"))
    form.get_by_label("E-mail address").fill(email, timeout=SOON_MS)
    form.get_by_label("Role").select_option("editor")
    form.get_by_role("button", name="Invite").click()
    row = page.get_by_role("region", name="Invitations").locator("tbody tr")
    expect(row).to_have_count(1, timeout=SOON_MS)
    expect(row).to_contain_text(email)
    expect(row.locator("td").first).to_have_text("editor")
    return page.locator("#once").inner_text()


def joins(page: Page, link: str, email: str) -> None:
    """As somebody who was invited, in another browser."""
    page.goto(link)
    expect(page.locator("#email")).to_have_value(email, timeout=SOON_MS)
    page.locator("#name").fill("Lucius")
    page.locator("#password").fill(PASSWORD)
    page.get_by_role("button", name="Make the account").click()
    expect(page.locator("#account")).to_be_visible(timeout=SOON_MS)


def logs_in_again(page: Page, email: str) -> None:
    """As the same person, with the password of `joins`."""
    page.locator("#account summary").click()
    page.locator("#log-out").click()
    page.locator("#email").fill(email, timeout=SOON_MS)
    page.locator("#password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#account")).to_contain_text(email, timeout=SOON_MS)


def organisation(page: Page, name: str) -> Locator:
    """Its line in the list of organisations."""
    return page.get_by_role("region", name="Organisations").locator("tbody tr").filter(has_text=name)


def makes_an_organisation(page: Page, name: str, owner: str) -> str:
    """On the screen of organisations; the link for its owner."""
    form = page.locator("#make-organisation")
    form.get_by_label("Name").fill(name, timeout=SOON_MS)
    form.get_by_label("E-mail address of its owner").fill(owner)
    form.get_by_role("button", name="Make an organisation").click()
    expect(page.get_by_role("heading", name=f"Environments of {name}")).to_be_visible(timeout=SOON_MS)
    expect(organisation(page, name).locator("td")).to_contain_text(["0", "none yet"])
    return page.locator("#once").inner_text()


def makes_another_link(page: Page, owner: str) -> str:
    """On the same screen, for the organisation that is opened; the link in place of the one before."""
    before = page.locator("#once").inner_text()
    form = page.locator("#invite-owner")
    form.get_by_label("E-mail address of its owner").fill(owner)
    form.get_by_role("button", name="Make another link").click()
    expect(page.locator("#once")).not_to_have_text(before, timeout=SOON_MS)
    expect(page.locator("#once")).to_have_count(1)
    return page.locator("#once").inner_text()


def gives_an_environment(page: Page, name: str, environment: str) -> None:
    """On the same screen, where the organisation is opened. It asks first: who does not mean it gives nothing."""
    form = page.locator("#give-environment")
    given = page.get_by_role("region", name="Its environments").locator("tbody tr").filter(has_text=environment)
    asked: list[str] = []
    for answer in ("dismiss", "accept"):
        expect(given).to_have_count(0)
        page.once("dialog", lambda dialog, answer=answer: (asked.append(dialog.message), getattr(dialog, answer)()))
        form.get_by_label("Environment").fill(environment)
        form.get_by_role("button", name="Give it to this organisation").click()
    expect(given).to_have_count(1, timeout=SOON_MS)
    assert asked == [f"Give {environment} to {name}? Only people of {name} see it from then on."] * 2
    expect(organisation(page, name).locator("td").first).to_have_text("1", timeout=SOON_MS)


def takes_an_environment_back(page: Page, name: str, environment: str) -> None:
    """On the same screen."""
    organisation(page, name).get_by_role("link", name=name).click(timeout=SOON_MS)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=f"Take back: {environment}").click(timeout=SOON_MS)
    expect(page.locator("main")).to_contain_text("It has no environment yet", timeout=SOON_MS)


def makes_a_token(page: Page, name: str, scopes: tuple[str, ...], customers: str = "") -> str:
    """On the screen of tokens; the token, which is shown this once."""
    page.get_by_label("Name").fill(name, timeout=SOON_MS)
    page.get_by_label("Of customers").fill(customers)
    for scope, title in _SCOPES.items():
        page.get_by_label(title).set_checked(scope in scopes)
    page.get_by_role("button", name="Make a token").click()
    row = page.get_by_role("region", name="API tokens").locator("tbody tr").filter(has_text=name)
    expect(row.locator("td").first).to_have_text(", ".join(_SCOPES[scope] for scope in scopes), timeout=SOON_MS)
    expect(row.locator("td").nth(1)).to_have_text(customers or "all")
    token = page.locator("#once").inner_text()
    page.reload()
    expect(row).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#once")).to_have_count(0)
    expect(page.locator("main")).not_to_contain_text(token)
    return token


def makes_an_environment(page: Page, dsn: str, name: str) -> str:
    """On the screen of environments; its id."""
    # As python -m deploy.customers_table does.
    migrate(dsn, "collector", MIGRATIONS_DIR)
    page.get_by_label("Name").fill(name, timeout=SOON_MS)
    page.get_by_role("button", name="Make an environment").click()
    environment = page.get_by_role("region", name="Environments").locator("tbody tr").filter(has_text=name)
    return environment.locator("th").inner_text(timeout=SOON_MS)


def makes_a_key(page: Page, environment: str) -> str:
    """On the same screen; the key."""
    page.get_by_role("link", name=environment, exact=True).click(timeout=SOON_MS)
    form = page.locator("#make-key")
    form.get_by_label("Name").fill("television", timeout=SOON_MS)
    form.get_by_role("button", name="Make a key").click()
    key = page.get_by_role("region", name="Write keys").locator("tbody tr").filter(has_text="television")
    expect(key).to_have_count(1, timeout=SOON_MS)
    return key.locator("th").inner_text()
