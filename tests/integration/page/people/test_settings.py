"""Settings, in a real browser: what an owner makes there works, and the audit log says who made it."""

import urllib.error
import urllib.request

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.integration.page.parts import page_settings
from tests.integration.page.parts.installation import OWNER, Looked
from tests.integration.page.parts.looking import Seen
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration

INVITED = "lucius@wayne.example"
#: Rows of a list that Settings asks for at once.
LISTED = 500


def test_an_owner_invites_somebody_and_makes_a_token_and_an_environment_with_a_key(
    owner: Page, browser: Browser, looked: Looked
) -> None:
    seen, dsn = Seen(owner, looked.url), looked.installation.postgres.dsn
    seen.open("settings?part=people")
    link = page_settings.invites_an_editor(owner, INVITED)
    joined = browser.new_context()
    page_settings.joins(joined.new_page(), link, INVITED)
    joined.close()
    owner.reload()
    expect(owner.get_by_label(f"Role of {INVITED}")).to_have_value("editor", timeout=SOON_MS)
    expect(owner.locator("main")).to_contain_text("None is open.")

    owner.get_by_role("link", name="API tokens").click()
    token = page_settings.makes_a_token(owner, "reports", ("read_metrics", "read_views"))
    assert _status(f"{looked.url}v1/overall", token) == 200
    # What it has no scope for is refused.
    assert _status(f"{looked.url}v1/invitations", token) == 403

    owner.get_by_role("link", name="Environments").click()
    environment = page_settings.makes_an_environment(owner, dsn, "Gotham")
    key = page_settings.makes_a_key(owner, environment)
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT customer_id FROM collector.keys WHERE key = %s", (key,)).fetchone()
    assert row == (environment,)

    owner.get_by_role("link", name="Audit log").click()
    entries = owner.get_by_role("region", name="Audit log").locator("tbody tr")
    expect(entries.first).to_be_visible(timeout=SOON_MS)
    noted = [tuple(row.locator("td").all_inner_texts()) for row in entries.all()]
    made = [(who, what, of) for who, _, what, of in noted if who == OWNER and what.startswith(("invited", "made"))]
    # The newest: this owner has made other things in other tests.
    assert made[:4] == [
        (OWNER, "made key", key),
        (OWNER, "made customer", environment),
        (OWNER, "made token", "reports"),
        (OWNER, "invited", INVITED),
    ]


def test_a_list_of_settings_goes_on_behind_its_first_page(owner: Page, looked: Looked) -> None:
    with psycopg.connect(looked.installation.postgres.dsn) as connection:
        connection.execute(
            "INSERT INTO accounts.customers (customer_id, organisation_id)"
            " SELECT 'wayne-' || lpad(number::text, 4, '0'), id FROM generate_series(1, %s) AS number, accounts.organisations"
            " WHERE name = 'Wayne'",
            (LISTED + 1,),
        )
    Seen(owner, looked.url).open("settings?part=environments")
    rows = owner.get_by_role("region", name="Environments").locator("tbody tr")
    expect(rows).to_have_count(LISTED, timeout=SOON_MS)
    owner.get_by_role("button", name="More environments").click()
    expect(rows).to_have_count(LISTED + 1, timeout=SOON_MS)
    expect(rows.last).to_contain_text(f"wayne-{LISTED + 1:04}")
    expect(owner.get_by_role("button", name="More environments")).to_have_count(0)


def test_a_token_of_some_customers_reads_those_alone(seen: Seen, looked: Looked) -> None:
    seen.open("settings?part=tokens")
    token = page_settings.makes_a_token(seen.page, "of two", ("read_metrics",), "acme, globex")
    for customer, status in (("acme", 200), ("globex", 200), ("newcomer", 404)):
        assert _status(f"{looked.url}v1/overall?customer={customer}", token) == status, customer


def _status(url: str, token: str) -> int:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_each_threshold_says_what_its_metric_means(seen: Seen) -> None:
    seen.open("settings?part=thresholds")
    rows = seen.page.locator("#thresholds li")
    expect(rows.first).to_be_visible(timeout=SOON_MS)
    for metric, words in (
        ("live_rebuffering_fraction", "live viewers who rebuffer"),
        ("rebuffer_fraction", "watch time"),
    ):
        row = rows.and_(seen.page.locator(f"[data-metric={metric}]"))
        row.locator(".what").click()
        expect(row.get_by_role("note")).to_contain_text(words)
        seen.page.keyboard.press("Escape")
    expect(seen.page.locator("#thresholds .what")).to_have_count(rows.count())
    # The buttons are round, and n is of what the figure is of.
    box = rows.first.locator(".what").bounding_box()
    assert box is not None
    assert box["width"] == pytest.approx(box["height"], abs=0.5)
    for metric, label in (("live_rebuffering_fraction", "From n viewers"), ("rebuffer_fraction", "From n views")):
        row = rows.and_(seen.page.locator(f"[data-metric={metric}]"))
        expect(row.get_by_label(label, exact=True)).to_have_count(1)


def test_any_metric_that_can_be_worse_gets_a_threshold_once_it_is_found(seen: Seen) -> None:
    page = seen.page
    seen.open("settings?part=thresholds")
    row = page.locator("[data-metric=startup_ms_p99]")
    latency = page.locator("[data-metric=live_latency_ms_p90]")
    # Groups of which nothing is judged are folded, until somebody looks for one.
    expect(row).to_contain_text("not coloured until", timeout=SOON_MS)
    expect(latency).to_be_hidden()
    page.locator("#find-metric").fill("latency")
    expect(latency).to_be_visible()
    expect(row).to_have_count(0)
    expect(page.locator("[data-metric=request_latency_ms]").get_by_label("Good to (ms)")).to_be_visible()
    page.locator("#find-metric").fill("p99")
    for label, value in (("Good to (ms)", "5000"), ("Bad above (ms)", "9000"), ("From n views", "600")):
        row.get_by_label(label).fill(value)
    row.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("all environments'", timeout=SOON_MS)
    row.get_by_role("button", name="Back to before").click()
    expect(row).to_contain_text("not coloured until", timeout=SOON_MS)
    page.locator("#find-metric").fill("")
    expect(latency).to_be_hidden()
    page.locator("#thresholds summary", has_text="Live latency").click()
    expect(latency).to_be_visible()
