"""What people may see, and what they chose to see, in a real browser."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from playwright.sync_api import Browser, Locator, expect

from services.accounts.commands import make_tenant
from services.accounts.core.roles import Role
from services.collector.customers.table import MIGRATIONS_DIR
from services.rim.database.migrations import migrate
from shared.schemas.view import View
from tests.integration.dashboard.dashboard_parts import WATCHER
from tests.integration.page.parts import page_settings
from tests.integration.page.parts.installation import Looked, arrives, watch_now
from tests.integration.page.parts.looking import ZONE, Seen, expect_rows, logged_in, number, on_a_phone, unfit, within
from tests.integration.page.parts.page_views import PLANS
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration


@pytest.fixture
def globex_of_nobody(looked: Looked) -> Iterator[None]:
    """For all other tests of the page customer globex belongs to nobody, so that the watcher sees it."""
    yield
    with psycopg.connect(looked.installation.postgres.dsn) as connection:
        connection.execute("DELETE FROM accounts.customers WHERE customer_id = 'globex'")


@pytest.mark.usefixtures("globex_of_nobody")
def test_a_login_for_one_team_is_made_by_clicks_and_sees_its_customer_alone(
    seen: Seen, browser: Browser, looked: Looked
) -> None:
    email, page = "a@globex.example", seen.page
    seen.go("Settings")
    page.get_by_role("link", name="Organisations").click(timeout=SOON_MS)
    mistyped = page_settings.makes_an_organisation(page, "Globex", "b@globex.example")
    page_settings.gives_an_environment(page, "Globex", "globex")
    link = page_settings.makes_another_link(page, email)
    assert unfit(on_a_phone(page)) == []
    page.set_viewport_size({"width": 1280, "height": 900})
    # Who gave it away does not see it any more.
    assert "globex" not in _views_by_customer(seen)
    context = browser.new_context(viewport={"width": 1280, "height": 900}, timezone_id=ZONE)
    try:
        # Links have the name of this machine, not its number: a session is of one of them.
        theirs = Seen(context.new_page(), link.partition("login#")[0])
        theirs.page.goto(mistyped)
        expect(theirs.page.locator("#notice")).to_contain_text("expired", timeout=SOON_MS)
        page_settings.joins(theirs.page, link, email)
        page_settings.logs_in_again(theirs.page, email)
        _sees_globex_alone(theirs, looked)
        # Nor does the owner of a team have the other teams.
        theirs.open("settings?part=organisations")
        expect(theirs.page.locator("main")).to_contain_text("Globex · owner", timeout=SOON_MS)
        expect(theirs.page.get_by_role("link", name="Organisations")).to_have_count(0)
        expect(theirs.page.locator("#make-organisation")).to_have_count(0)
    finally:
        context.close()
    seen.open("settings?part=organisations")
    page_settings.takes_an_environment_back(page, "Globex", "globex")
    assert "globex" in _views_by_customer(seen)


@pytest.mark.usefixtures("globex_of_nobody")
def test_who_may_look_alone_is_offered_nothing_that_would_be_refused(browser: Browser, looked: Looked) -> None:
    email, dsn = "viewer@globex.example", looked.installation.postgres.dsn
    make_tenant(dsn, organisation="Viewers", email=email, role=Role.VIEWER, customers=("globex",))
    context = logged_in(browser, looked, email)
    try:
        seen = Seen(context.new_page(), looked.url)
        seen.open("alerts")
        expect(seen.page.locator("#no-rules")).to_be_visible(timeout=SOON_MS)
        expect(seen.page.locator("#account")).to_contain_text(email)
        expect(seen.page.locator("#new-rule, #new-receiver")).to_have_count(0)
        seen.open("settings?part=organisations")
        expect(seen.page.locator("main")).to_contain_text("Viewers · viewer", timeout=SOON_MS)
        parts = seen.page.get_by_role("navigation", name="Settings").get_by_role("link")
        expect(parts).to_have_text(["Profile", "People", "Environments", "Thresholds", "Custom dimensions"])
    finally:
        context.close()


def _views_by_customer(seen: Seen) -> dict[str, list[str]]:
    """The table of *Explore* by customer, of 30 days."""
    seen.open("explore?range=30d&metrics=views&as=table")
    seen.page.locator("#by").select_option("customer", timeout=SOON_MS)
    expect(seen.page.locator("#explore-title")).to_contain_text("by customer", timeout=SOON_MS, ignore_case=True)
    return seen.rows("#groups")


def _sees_globex_alone(seen: Seen, looked: Looked) -> None:
    rows = _views_by_customer(seen)
    assert list(rows) == ["globex"]
    assert number(rows["globex"][0]) == len(within(looked, seen.range("/v1/breakdown"), customer_id="globex"))
    expect(seen.page.locator("#customer option")).to_have_text(["All customers", "globex"], timeout=SOON_MS)
    seen.open("explore?customer=acme")
    expect(seen.page.locator("main .notice").first).to_contain_text("no such customer", timeout=SOON_MS)
    # It is said once, and the live figures do not say that the server is away.
    seen.open("?customer=acme")
    refused = seen.page.locator("main .notice")
    expect(refused).to_contain_text("There is no such customer.", timeout=SOON_MS)
    expect(seen.page.locator("#status-text")).to_have_text("No live figures", timeout=SOON_MS)
    expect(seen.page.locator("main").get_by_text("no such customer")).to_have_count(1)
    refused.get_by_role("link", name="Show all customers that you may see").click()
    expect(seen.page.locator("#customer")).to_have_value("*", timeout=SOON_MS)
    expect(refused.filter(has_text="no such customer")).to_have_count(0, timeout=SOON_MS)


def test_a_new_customer_is_led_to_its_first_beacon_and_sees_what_is_rejected(seen: Seen, looked: Looked) -> None:
    # As python -m deploy.customers_table does.
    migrate(looked.installation.postgres.dsn, "collector", MIGRATIONS_DIR)
    seen.open("")
    page = seen.page
    page.get_by_role("link", name="Integration").click(timeout=SOON_MS)
    page.locator("#choose-customer input").fill("fresh")
    page.get_by_role("button", name="Show its beacons").click()
    expect(page.locator("#verdict")).to_contain_text("No beacon in the last 10 minutes", timeout=SOON_MS)
    expect(page.locator("#verdict-advice")).to_contain_text("Compare the write key in the player")
    expect(page.locator("#beyond-limits a")).to_have_attribute("href", "/limits?customer=fresh")
    page.get_by_role("button", name="Make a key").click(timeout=SOON_MS)
    page.locator("#player").select_option("hls.js", timeout=SOON_MS)
    page.locator("#collector").fill("collect.example.com")
    page.locator("#collector").press("Enter")
    expect(page.locator("#snippet")).to_contain_text("https://collect.example.com/cmcd/pk_")
    expect(page.locator("#none-finished")).to_be_visible(timeout=SOON_MS)
    # The first beacon shows as it comes; another customer's does not.
    arrives(looked.installation, "fresh", "view-1")
    arrives(looked.installation, "acme", "view-2")
    expect(page.locator("#verdict")).to_contain_text("Beacons arrive. The last one, playing by mux", timeout=SOON_MS)
    expect(page.locator("#beacons tbody tr")).to_have_count(1)
    expect(page.locator("#beacons")).to_contain_text("view-1")
    # By write key: those of the television's app alone, and all again.
    arrives(looked.installation, "fresh", "view-3", write_key="fresh-tv")
    keys = page.locator("#arrived-keys li")
    expect(keys).to_have_count(2, timeout=SOON_MS)
    expect(keys.first).to_contain_text("fresh-tv 1 beacon, the newest")
    keys.first.locator("a").click()
    expect(page.locator("#beacons tbody tr")).to_have_count(1, timeout=SOON_MS)
    expect(page.locator("#beacons")).to_contain_text("view-3")
    page.get_by_role("link", name="All write keys").click()
    expect(page.locator("#beacons tbody tr")).to_have_count(2, timeout=SOON_MS)
    arrives(looked.installation, "fresh", "view-1", reason="invalid", detail="event is none that is known")
    arrives(looked.installation, "", "", reason="invalid", detail="no key at all")
    arrives(looked.installation, "freshh", "view-1", reason="unknown_customer", detail="freshh is no key")
    rejected = page.locator("#rejected tbody tr")
    expect(rejected).to_have_count(1, timeout=SOON_MS)
    expect(rejected).to_contain_text("event is none that is known")
    expect(page.locator("#nobodys")).to_contain_text("no key at all")
    expect(page.locator("#nobodys tr", has_text="freshh is no key").locator("code").first).to_have_text("freshh")
    expect(page.locator("#verdict")).to_contain_text("1 of its inputs were rejected")
    # What the wrong key itself is asked for: it is compared with nothing that is not there.
    seen.open("integration?customer=freshh")
    expect(rejected).to_contain_text("compare the one in the player with the customer's keys", timeout=SOON_MS)
    expect(page.locator("#unknown-name")).to_contain_text("No environment has the name freshh", timeout=SOON_MS)
    expect(page.locator("#snippet")).to_have_count(0)
    # What finished views do not say.
    seen.open("integration?customer=acme")
    row = page.locator("#missing tbody tr", has_text="CDN")
    expect(row).to_contain_text("100.0%", timeout=SOON_MS)


def test_what_is_shown_is_saved_for_oneself_or_for_everybody_opened_and_deleted(seen: Seen, looked: Looked) -> None:
    page = seen.page
    seen.open("explore?customer=acme&range=7d&by=cdn&as=table&tz=UTC")
    expect(page.locator("table tbody tr").first).to_be_visible(timeout=SOON_MS)
    address = urlsplit(page.url)
    saved = page.locator("#saved")
    saved.locator("summary").click()
    expect(saved).to_contain_text("Nothing is saved yet", timeout=SOON_MS)
    for name, is_shared in (("By CDN, mine", False), ("By CDN, ours", True)):
        form = saved.locator("#save-view")
        form.get_by_label("Name").fill(name)
        form.get_by_label("for everybody").set_checked(is_shared)
        form.get_by_role("button", name="Save").click()
        expect(saved.get_by_role("link", name=name)).to_be_visible(timeout=SOON_MS)
    expect(saved).to_contain_text(f"everybody's, by {WATCHER}")
    page.keyboard.press("Escape")
    seen.open("errors?range=1h")
    saved.locator("summary").click()
    saved.get_by_role("link", name="By CDN, ours").click(timeout=SOON_MS)
    # The screen before has a table too.
    page.wait_for_url(lambda url: urlsplit(url).path == address.path, timeout=SOON_MS)
    expect(page.locator("table tbody tr").first).to_be_visible(timeout=SOON_MS)
    assert urlsplit(page.url).path == address.path
    assert parse_qs(urlsplit(page.url).query) == parse_qs(address.query)
    saved.locator("summary").click()
    for name in ("mine", "ours"):
        saved.get_by_role("button", name=f"Delete By CDN, {name}").click(timeout=SOON_MS)
        expect(saved.get_by_role("link", name=f"By CDN, {name}")).to_have_count(0, timeout=SOON_MS)


def test_a_threshold_that_is_set_colours_the_figures_of_its_environment(seen: Seen, looked: Looked) -> None:
    page = seen.page

    def colour() -> Locator:
        seen.open("explore?customer=acme&range=1h&metrics=rebuffer_fraction")
        value = page.locator("#overall .value")
        expect(value).to_have_text(re.compile("%"), timeout=SOON_MS)
        return value

    # Of the incident's hour: far above what is bad as installed.
    expect(colour()).to_have_class("value is-bad", timeout=SOON_MS)
    seen.open("settings?part=thresholds&of=acme")
    row = page.locator("[data-metric=rebuffer_fraction]")
    expect(row).to_contain_text("as installed", timeout=SOON_MS)
    row.get_by_label("Good to").fill("90")
    row.get_by_label("Bad above").fill("95.5")
    row.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("this environment's", timeout=SOON_MS)
    expect(colour()).to_have_class("value is-good", timeout=SOON_MS)
    seen.open("settings?part=thresholds&of=acme")
    expect(row.get_by_label("Bad above")).to_have_value("95.5", timeout=SOON_MS)
    row.get_by_label("Good to").fill("99")
    row.get_by_role("button", name="Save").click()
    # It is said at the metric's own form, with its name.
    wrong = row.get_by_role("alert")
    expect(wrong).to_contain_text("good is at most bad", timeout=SOON_MS)
    expect(wrong).to_contain_text(re.compile("^" + re.escape(row.locator("b").first.inner_text()) + ": "))
    expect(page.locator("main").get_by_role("alert")).to_have_count(1)
    row.get_by_role("button", name="Back to before").click()
    expect(row).to_contain_text("as installed", timeout=SOON_MS)
    expect(wrong).to_have_count(0)
    expect(colour()).to_have_class("value is-bad", timeout=SOON_MS)


def test_thresholds_of_what_is_worse_when_it_is_lower_colour_the_other_way_round(seen: Seen, looked: Looked) -> None:
    page = seen.page

    def row(metric: str) -> Locator:
        return page.locator(f"[data-metric={metric}]")

    def settings(metric: str) -> None:
        seen.open("settings?part=thresholds&of=acme")
        # Groups of which nothing is judged are folded.
        page.locator("#find-metric").fill(metric, timeout=SOON_MS)

    def choose(metric: str, good: str, bad: str) -> None:
        settings(metric)
        row(metric).get_by_label("Good from (Mbps)").fill(good, timeout=SOON_MS)
        row(metric).get_by_label("Bad below (Mbps)").fill(bad)
        row(metric).get_by_label("From n").fill("1")
        # The form looks the same before the answer: a page that is left by then may not have asked.
        with page.expect_response(lambda answer: answer.request.method == "PATCH", timeout=SOON_MS):
            row(metric).get_by_role("button", name="Save").click()

    def colour() -> Locator:
        seen.open("explore?customer=acme&range=1h&metrics=bitrate_bps")
        value = page.locator("#overall .value")
        expect(value).to_have_text(re.compile("Mbps"), timeout=SOON_MS)
        return value

    # What is good of a bitrate nobody can say for all: it is not coloured as installed.
    expect(colour()).to_have_class("value ")
    seen.open("settings?part=thresholds&of=acme")
    expect(row("bitrate_bps")).to_contain_text("not coloured until", timeout=SOON_MS)
    expect(row("experience_score")).to_contain_text("as installed")
    expect(row("experience_score").get_by_label("Bad below (of 100)")).to_have_value("60")
    choose("bitrate_bps", "900", "800.5")
    expect(row("bitrate_bps")).to_contain_text("this environment's", timeout=SOON_MS)
    expect(colour()).to_have_class("value is-bad", timeout=SOON_MS)
    choose("bitrate_bps", "0.01", "0")
    expect(row("bitrate_bps").get_by_label("Good from (Mbps)")).to_have_value("0.01", timeout=SOON_MS)
    expect(colour()).to_have_class("value is-good", timeout=SOON_MS)
    choose("bitrate_bps", "1", "2")
    expect(page.locator("main")).to_contain_text("good is at least bad: less is worse", timeout=SOON_MS)
    # Viewers of this moment, on Now: those of one CDN have 1 Mbps, those of the other 4.
    choose("live_bitrate_bps", "3", "2")
    expect(row("live_bitrate_bps")).to_contain_text("this environment's", timeout=SOON_MS)
    watch_now(looked.installation)
    seen.open("?customer=acme")
    low, high = (page.locator("#slice-cdn tbody tr", has_text=cdn).locator("td").nth(2) for cdn in ("fastly", "akamai"))
    expect(low).to_contain_text("1.00 Mbps", timeout=SOON_MS)
    expect(low).to_have_class("is-warm", timeout=SOON_MS)
    expect(high).to_contain_text("4.00 Mbps")
    expect(high).to_have_class("")
    for metric in ("bitrate_bps", "live_bitrate_bps"):
        settings(metric)
        row(metric).get_by_role("button", name="Back to before").click(timeout=SOON_MS)
        expect(row(metric)).to_contain_text("not coloured until", timeout=SOON_MS)
    watch_now(looked.installation)
    seen.open("?customer=acme")
    expect(low).to_contain_text("1.00 Mbps", timeout=SOON_MS)
    expect(low).to_have_class("")


def test_a_custom_dimension_with_a_title_is_explored_like_any_other(seen: Seen, looked: Looked) -> None:
    seen.open("settings?part=dimensions&customer=acme&range=30d")
    page = seen.page
    form = page.locator("#name-dimension")
    form.get_by_label("Name as players send it").fill("plan", timeout=SOON_MS)
    form.get_by_label("Title").fill("Subscription")
    form.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Explore by it").click(timeout=SOON_MS)
    expect(page.locator("#explore-title")).to_contain_text("by Subscription", timeout=SOON_MS)
    expect(page.locator("#by option:checked")).to_have_text("Subscription")
    page.locator("#metric").select_option("playback_failure_fraction", timeout=SOON_MS)
    page.get_by_role("button", name="Table").click()
    expect(page.locator("#groups thead")).to_contain_text("Playback failures", timeout=SOON_MS)
    rows, bounds = seen.rows("#groups"), seen.range("/v1/breakdown")

    def of(plan: str) -> list[View]:
        return [view for view in within(looked, bounds, customer_id="acme") if view.custom["plan"] == plan]

    expect_rows(rows, of, "playback_failure_fraction", least=len(PLANS))
    page.locator("#groups").get_by_role("link", name="gold").click()
    expect(page.locator(".chip")).to_contain_text("Subscription is gold", timeout=SOON_MS)
    seen.open("settings?part=dimensions")
    page.get_by_role("button", name="Remove").click(timeout=SOON_MS)
    expect(page.locator("main")).to_contain_text("No custom dimension has a title", timeout=SOON_MS)


def test_a_write_keys_origins_and_limits_are_changed_on_the_screen(seen: Seen, looked: Looked) -> None:
    seen.open("settings?part=environments&of=acme")
    page_settings.makes_changes_and_revokes_a_key(seen.page, looked.installation.postgres.dsn)


def test_somebody_of_two_organisations_goes_from_one_to_the_other(browser: Browser, looked: Looked) -> None:
    dsn, email = looked.installation.postgres.dsn, "both@initech.example"
    make_tenant(dsn, organisation="Initech", email=email, customers=("initech",))
    context = logged_in(browser, looked, email)
    try:
        seen = Seen(context.new_page(), looked.url)
        seen.open("settings")
        expect(seen.page.locator("main")).to_contain_text("Initech · owner", timeout=SOON_MS)
        page_settings.works_in_another_organisation(seen.page, dsn, email)
        # Out of it, by a click; the session was in that one.
        seen.page.once("dialog", lambda dialog: dialog.accept())
        seen.page.get_by_role("button", name="Leave Umbrella").click()
        expect(seen.page.get_by_label("Password")).to_be_visible(timeout=SOON_MS)
    finally:
        context.close()
