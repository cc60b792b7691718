"""From an environment without a key to its first beacon, in a real browser, with a real collector."""

import re
import time
import urllib.request
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Page, Route, expect

from deploy.client_lines import CLIENTS
from deploy.demo.viewers.clients_doc import aimed_at, lines_to_paste
from deploy.local.ports import free_port
from tests.integration.collector.collecting import Collector
from tests.integration.page.parts import page_settings
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import Seen
from tests.integration.parts.browsing import SOON_MS
from tests.unit.collector.intake.bodies import CMCD_RECORD

pytestmark = pytest.mark.integration


def test_a_key_is_made_copied_and_its_first_beacon_seen(owner: Page, looked: Looked, tmp_path: Path) -> None:
    dsn, port = looked.installation.postgres.dsn, free_port()
    seen = Seen(owner, looked.url)
    seen.open("settings?part=environments")
    environment = page_settings.makes_an_environment(owner, dsn, "Arkham")
    owner.get_by_role("link", name="Integration", exact=True).click()
    owner.locator("#environments").get_by_role("link", name="Arkham").click(timeout=SOON_MS)
    # Collectors need not take the environment's own id: no lines have it.
    expect(owner.locator("#no-key")).to_contain_text("Make a key first", timeout=SOON_MS)
    expect(owner.locator("#snippet, #other-programs")).to_have_count(0)
    expect(owner.get_by_role("button", name="Copy", exact=True)).to_have_count(0)
    owner.get_by_role("button", name="Make a key").click()
    expect(owner.get_by_role("button", name="Make a key")).to_have_count(0, timeout=SOON_MS)
    # The next step has the focus.
    copy = owner.get_by_role("button", name="Copy", exact=True)
    expect(copy).to_be_focused()
    owner.locator("#collector").fill(f"127.0.0.1:{port}")
    owner.locator("#collector").press("Enter")
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT key FROM collector.keys WHERE customer_id = %s AND name LIKE 'Made%%'", (environment,)
        )
        (key,) = row.fetchone() or ("",)
    # Whole blocks of the document, with the address and the key of this collector.
    for client in CLIENTS:
        owner.locator("#player").select_option(client.name)
        host = f"localhost:{port}" if client.name.startswith("mux") else f"127.0.0.1:{port}"
        block = aimed_at(lines_to_paste(client.heading, client.language), host)
        expect(owner.locator("#snippet")).to_have_text(block.replace("acme", key), use_inner_text=True)
    owner.locator("#player").select_option("hls.js")
    expect(owner.locator("#snippet")).to_contain_text("hls.on(Hls.Events.ERROR")
    expect(owner.locator("#no-key")).to_have_count(0)
    # A key copies the lines.
    owner.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copy.press("Enter")
    expect(owner.get_by_role("button", name="Copied")).to_be_visible()
    lines = owner.evaluate("navigator.clipboard.readText()")
    assert lines == aimed_at(lines_to_paste("hls.js"), f"127.0.0.1:{port}").replace("acme", key).rstrip("\n")
    (address,) = re.findall(r"url: '([^']+)'", lines)
    with Collector(looked.installation.broker.bootstrap, tmp_path, port, customers_dsn=dsn):
        body = CMCD_RECORD.encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/cmcd"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status < 300
    expect(owner.locator("#verdict")).to_contain_text("Beacons arrive", timeout=SOON_MS)
    expect(owner.locator("#beacons tbody tr")).to_have_count(1)
    expect(owner.locator("#beacons tbody tr code").first).to_have_text(key[:12])
    expect(owner.locator("#arrived-keys")).to_contain_text(key)


def test_where_keys_are_not_managed_it_says_what_players_use(seen: Seen) -> None:
    page_settings.manages_no_keys(seen.page)
    seen.open("integration?customer=acme")
    notice = seen.page.locator("#no-keys")
    expect(notice).to_contain_text("Write keys are not managed here. Players use the customer's id", timeout=SOON_MS)
    expect(notice).to_contain_text("The lines have the id acme.")
    expect(seen.page.locator("#no-key")).to_have_count(0)
    expect(seen.page.get_by_role("button", name="Make a key")).to_have_count(0)


def test_a_name_that_is_no_customer_gets_no_lines(seen: Seen) -> None:
    seen.page.route("**/v1/keys?*", lambda route: route.fulfill(json={"keys": [], "next": None}))
    seen.open("integration?customer=opco-typo")
    expect(seen.page.locator("#no-key")).to_contain_text("Make a key first", timeout=SOON_MS)
    expect(seen.page.locator("#unknown-name")).to_contain_text("No environment has the name opco-typo", timeout=SOON_MS)
    expect(seen.page.locator("#snippet, #other-programs")).to_have_count(0)
    seen.open("integration?customer=acme")
    expect(seen.page.locator("#no-key")).to_be_visible(timeout=SOON_MS)
    expect(seen.page.locator("#unknown-name")).to_have_count(0)


@pytest.mark.parametrize(
    ("ahead_min", "silent_s", "verdict"),
    [(5, 4, r"Beacons arrive\. The last one, playing by mux, came [4-9] s ago"), (-5, 90, "but none arrives now")],
)
def test_beacons_arrive_or_not_by_the_servers_clock(seen: Seen, ahead_min: int, silent_s: int, verdict: str) -> None:
    def answer(route: Route) -> None:
        server_ms = round(time.time() * 1_000) - ahead_min * 60_000
        content = route.fetch().json() | {"now_ms": server_ms, "beacons": [_beacon(server_ms - silent_s * 1_000)]}
        key = {"key": "acme", "beacons_n": 1, "newest_ms": server_ms - silent_s * 1_000}
        route.fulfill(json=content | {"beacons_n": 1, "views_n": 1, "rejected_n": 0, "keys": [key]})

    seen.page.route("**/v1/arrivals?*", answer)
    seen.open("integration?customer=acme")
    expect(seen.page.locator("#verdict")).to_contain_text(re.compile(verdict), timeout=SOON_MS)
    expect(seen.page.locator("#arrived-keys")).to_contain_text(
        re.compile(rf"1 beacon, the newest {silent_s // 10 or ''}\d s ago")
    )


def _beacon(appended_ms: int) -> dict[str, object]:
    """One of the answer of `/v1/arrivals`."""
    named = {"source": "mux", "event": "playing", "source_event": "playing", "view_id": "one", "write_key": "acme"}
    return named | {
        "appended_ms": appended_ms,
        "client_time_ms": 0,
        "seq": 1,
        "browser": None,
        "country": None,
        "fields": [],
    }
