"""Lists with several rows, each with the same buttons: incidents, rules, receivers, and everything on the screen Settings."""

from typing import Any, Final

from playwright.sync_api import Page

from services.collector.customers.table import MIGRATIONS_DIR
from services.rim.database.migrations import migrate
from tests.integration.page.parts import page_alerts
from tests.integration.page.parts.installation import Looked
from tests.unit.alerts.events import event

CUSTOMER: Final = "named"
SCREENS: Final = (
    *(f"alerts?customer={CUSTOMER}", f"?customer={CUSTOMER}", f"settings?part=environments&of={CUSTOMER}"),
    *("settings?part=people", "settings?part=tokens", "settings?part=dimensions", "settings?part=thresholds"),
    *("?customer=acme", "explore?by=cdn&as=table", "errors?range=7d", "views?customer=acme", "titles?customer=acme"),
    *("integration?customer=acme", "view?customer=acme&view=view-of-x"),
)
_ASK: Final = """async ([method, path, body]) => {
    const { csrf } = await (await fetch("/v1/session")).json();
    const headers = { "Playhead-CSRF": csrf, "Content-Type": "application/json" };
    return (await fetch(path, { method, headers, body: JSON.stringify(body) })).status;
}"""


def two_of_each(page: Page, looked: Looked) -> None:
    """Makes them; the page is one of the owner of everything."""
    dsn = looked.installation.postgres.dsn
    # As python -m deploy.customers_table does.
    migrate(dsn, "collector", MIGRATIONS_DIR)
    page_alerts.many_rules(dsn, CUSTOMER, 2)
    for number in (1, 2):
        opened_ms = looked.now_ms - 60_000 * number
        page_alerts.land(
            dsn,
            event(customer_id=CUSTOMER, incident_id=f"{CUSTOMER}-{number}", at_ms=opened_ms, opened_ms=opened_ms),
        )
    for name in ("one", "two"):
        target = {"to": [f"{name}@x.example"]}
        _ask(page, "POST", "/v1/alerts/receivers", {"name": name, "kind": "email", "target": target})
        _ask(page, "POST", "/v1/tokens", {"name": name, "scopes": ["read_metrics"], "days": None})
        limits = {"origins": [], "beacons_per_second": None, "bytes_per_second": None}
        _ask(page, "POST", "/v1/keys", {"customer": CUSTOMER, "name": name, **limits})
        _ask(page, "POST", "/v1/invitations", {"email": f"{name}@named.example", "role": "viewer"})
        _ask(page, "POST", "/v1/customers", {"name": name})
        _ask(page, "PATCH", "/v1/custom-dimensions", {"name": name, "title": f"Title {name}"})


def _ask(page: Page, method: str, path: str, body: dict[str, Any]) -> None:
    assert page.evaluate(_ASK, [method, path, body]) in {200, 201}, path
