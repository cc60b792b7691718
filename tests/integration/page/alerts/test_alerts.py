"""Alerts and incidents, in a real browser."""

import json
import re
import time
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from playwright.sync_api import expect

from shared.schemas.alerts.event import AlertEvent
from shared.schemas.live import BUCKET_MS
from tests.integration.dashboard.dashboard_parts import WATCHER
from tests.integration.page.parts import page_alerts, page_firing
from tests.integration.page.parts.installation import Looked, watch_now
from tests.integration.page.parts.looking import COUNT_SKELETONS, ZONE, Seen, settled, within
from tests.integration.parts.browsing import SOON_MS
from tests.integration.parts.slots import wait_until
from tests.unit.alerts.events import event

pytestmark = pytest.mark.integration


def test_an_alert_above_two_percent_in_one_cdn_for_five_minutes(seen: Seen, looked: Looked, tmp_path: Path) -> None:
    seen.open("")
    page = seen.page
    page.locator("#customer").select_option("acme", timeout=SOON_MS)
    settled(page)
    # Only now: what is counted is of the present for some seconds.
    watch_now(looked.installation)
    expect(page.locator("#status")).to_have_attribute("data-level", "good", timeout=SOON_MS)
    page.locator("#slice-cdn").get_by_role("link", name="fastly").click(timeout=SOON_MS)
    expect(page.locator(".chip")).to_contain_text("CDN is fastly")
    page.locator("#finished").get_by_role("link", name="Rebuffer percentage").click(timeout=SOON_MS)
    page.get_by_role("link", name="Alert on it").click(timeout=SOON_MS)
    expect(page.locator("#rule-where")).to_contain_text("Within: CDN fastly", timeout=SOON_MS)
    form = page.locator("#new-rule")
    form.locator("input[name=name]").fill("Fastly waits")
    form.get_by_label("Figure (percent)").fill("2")
    form.get_by_label("For seconds").fill("300")
    form.get_by_role("button", name="Save").click()
    row = page.locator("#rules tbody tr", has_text="Fastly waits")
    expect(row).to_contain_text("Viewers rebuffering above 2.00% for 5.0 min (CDN fastly)", timeout=SOON_MS)
    # What the alerting application gets.
    with psycopg.connect(looked.installation.postgres.dsn) as connection:
        found = connection.execute("SELECT body::text FROM alerts.rules WHERE deleted_at IS NULL").fetchall()
    (rule,) = [rule for (text,) in found if (rule := json.loads(text))["name"] == "Fastly waits"]
    wanted = {"customer": "acme", "metric": "rebuffering", "condition": "threshold", "direction": "above"}
    assert wanted.items() <= rule.items()
    assert (rule["threshold"], rule["for_seconds"], rule["filter"]) == (0.02, 300, {"cdn": "fastly"})
    # It fires once, when the players' truth says so: not for a shorter time above, nor for another CDN.
    dsn = looked.installation.postgres.dsn
    begin_ms = looked.now_ms // BUCKET_MS * BUCKET_MS - page_firing.BUCKETS * BUCKET_MS
    until, share = page_firing.first_above("fastly", 0.02, 300)
    found = "SELECT opened_at FROM alerts.incidents WHERE event->>'rule_name' = 'Fastly waits'"
    with page_firing.alerting(dsn, tmp_path) as bootstrap:
        page_firing.watch(bootstrap, begin_ms)
        wait_until(lambda: page_firing.count(dsn, found) > 0, "the incident has landed")
    with psycopg.connect(dsn) as connection:
        opened = connection.execute(found.encode()).fetchall()
    assert [round(at.timestamp() * 1_000) for (at,) in opened] == [begin_ms + until * BUCKET_MS]
    seen.open("alerts?customer=acme")
    row = page.locator("#incidents tbody tr", has_text="Fastly waits")
    expect(row.locator("td")).to_have_text(
        [
            "open",
            "acme",
            re.compile(rf"^{share:.2%} n 100 at opening"),
            "2.00% limit",
            "CDN fastly",
            re.compile("viewers"),
            re.compile("ago"),
        ],
        timeout=SOON_MS,
    )
    row.locator("th").get_by_role("link").click()
    expect(page.locator("h2").first).to_contain_text("Fastly waits", timeout=SOON_MS)
    expect(page.locator("main")).to_contain_text("CDN fastly", timeout=SOON_MS)


def test_a_receiver_and_a_rule_are_made_tried_and_changed(seen: Seen, looked: Looked, incident: AlertEvent) -> None:
    page_alerts.land_minutes(looked.installation.postgres.dsn, looked.now_ms)
    seen.open(f"alerts?customer={page_alerts.CUSTOMER}")
    page = seen.page
    page.get_by_text("New receiver").click(timeout=SOON_MS)
    made = page.locator("#new-receiver")
    made.locator("[name=name]").fill("Video team")
    made.locator("[name=to]").fill("a@x.example, b@x.example")
    made.get_by_role("button", name="Save").click()
    page.locator("#receivers").get_by_role("button", name="Change").click(timeout=SOON_MS)
    page.locator("#change-receiver [name=name]").fill("On call")
    page.locator("#receivers").get_by_role("button", name="Send a test").click()
    expect(page.locator("#receivers")).to_contain_text("Send a test: done", timeout=SOON_MS)
    page.locator("#change-receiver").get_by_role("button", name="Save").click()
    expect(page.locator("#receivers")).to_contain_text("On call", timeout=SOON_MS)
    page.get_by_text("New rule").click()
    rule = page.locator("#new-rule")
    rule.locator("[name=name]").fill("A CDN waits")
    rule.locator("[name=condition]").select_option("threshold")
    rule.locator("[name=figure]").fill("5")
    rule.locator("[name=filter_dimension]").first.select_option("cdn")
    rule.locator("[name=filter_value]").first.fill("fastly")
    rule.get_by_label("On call").check()
    rule.get_by_role("button", name="Try it").click()
    expect(page.locator("#new-rule-trial")).to_contain_text("It would have fired once", timeout=SOON_MS)
    expect(page.locator("#new-rule-trial li")).to_contain_text("20.0% in CDN fastly")
    rule.locator("[name=time_zone]").select_option(ZONE)
    rule.get_by_role("button", name="Add quiet hours").click()
    rule.locator("[name=quiet_days_0]").last.uncheck()
    rule.get_by_role("button", name="Save").click()
    expect(page.locator("#rules")).to_contain_text(
        f"On call; quiet 22:00 to 06:00 Mon Tue Wed Thu Fri Sat ({ZONE})", timeout=SOON_MS
    )
    page.locator("#rules tr", has_text="A CDN waits").get_by_role("button", name="Change").click()
    page.locator("#change-rule [name=figure]").fill("7.5")
    page.locator("#change-rule").get_by_role("button", name="Save").click()
    expect(page.locator("#rules")).to_contain_text("above 7.50%", timeout=SOON_MS)
    found = page_alerts.rules_of(looked.installation.postgres.dsn)
    (stored,) = [one for one in found if one.rule.name == "A CDN waits"]
    assert (stored.version, stored.rule.threshold, stored.rule.filter) == (2, 0.075, {"cdn": "fastly"})
    assert stored.rule.quiet.spans[0].days == [0, 1, 2, 3, 4, 5]
    # Nothing brings a rule back: it is asked first, and who says no keeps it.
    asked: list[str] = []
    delete = page.locator("#rules tr", has_text="A CDN waits").get_by_role("button", name="Delete")
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    delete.click()
    assert asked == ["Delete the rule A CDN waits?"]
    assert "A CDN waits" in [one.rule.name for one in page_alerts.rules_of(looked.installation.postgres.dsn)]
    page.once("dialog", lambda dialog: dialog.accept())
    delete.click()
    expect(page.locator("#rules tr", has_text="A CDN waits")).to_have_count(0, timeout=SOON_MS)


def test_the_rules_beyond_a_page_are_asked_for(seen: Seen, looked: Looked) -> None:
    page_alerts.many_rules(looked.installation.postgres.dsn, "many", 130)
    seen.open("alerts?customer=many")
    rows = seen.page.locator("#rules tbody tr")
    expect(rows).to_have_count(100, timeout=SOON_MS)
    seen.page.get_by_role("button", name="More rules").click()
    expect(rows).to_have_count(130, timeout=SOON_MS)
    expect(seen.page.get_by_role("button", name="More rules")).to_have_count(0)
    assert len(set(rows.locator("th").all_inner_texts())) == 130


def test_another_customer_begins_with_its_first_page_of_incidents(seen: Seen, looked: Looked) -> None:
    dsn, page = looked.installation.postgres.dsn, seen.page
    page_alerts.open_behind_others(dsn, looked.now_ms, "wobbler", 55)
    seen.open("alerts?customer=wobbler")
    page.get_by_role("link", name="Older").click(timeout=SOON_MS)
    expect(page.get_by_role("link", name="Newest")).to_be_visible(timeout=SOON_MS)
    page.locator("#customer").select_option("acme")
    expect(page.get_by_role("link", name="Newest")).to_have_count(0, timeout=SOON_MS)
    expect(page.locator("main .notice")).to_have_count(0)


def test_now_names_an_incident_that_is_open_and_leads_to_it(seen: Seen, incident: AlertEvent) -> None:
    seen.open("?customer=acme")
    listed = seen.page.locator("#recent-incidents")
    expect(listed).to_contain_text(incident.rule_name, timeout=SOON_MS)
    for value in incident.slices[0].slice.values():
        expect(listed).to_contain_text(value)
    expect(listed).to_contain_text("open for")
    expect(listed.get_by_title("views that were open then").first).to_have_text(re.compile(r"^[\d.]+%$"))
    expect(listed.get_by_title("all views on which it rests").first).to_have_text(re.compile(r"^n [\d,]+$"))
    listed.get_by_role("button", name="What Viewers rebuffering means").first.click()
    expect(seen.page.get_by_role("note")).to_contain_text("live viewers who rebuffer at this moment")
    seen.page.keyboard.press("Escape")
    listed.get_by_role("link", name=incident.rule_name).click()
    expect(seen.page.locator("h2").first).to_contain_text(incident.rule_name, timeout=SOON_MS)
    seen.open("?customer=globex")
    expect(seen.page.locator("#finished")).to_be_visible(timeout=SOON_MS)
    expect(listed).to_have_count(0)


def test_an_incident_that_is_open_is_not_lost_behind_newer_ones_that_are_over(seen: Seen, looked: Looked) -> None:
    dsn, customer = looked.installation.postgres.dsn, "flapper"
    opened = page_alerts.open_behind_others(dsn, looked.now_ms, customer, 55)
    seen.open(f"?customer={customer}")
    page = seen.page
    # Nothing of it was counted: also what leads to a first beacon leaves the incident above it.
    expect(page.locator("#never-sent")).to_be_visible(timeout=SOON_MS)
    recent = page.locator("#recent-incidents li")
    expect(recent).to_have_count(1, timeout=SOON_MS)
    expect(recent).to_contain_text(opened.rule_name)
    seen.open(f"alerts?customer={customer}")
    names = page.locator("#incidents tbody th")
    expect(names.first).to_have_text(opened.rule_name, timeout=SOON_MS)
    expect(names.nth(1)).to_have_text("Flaps 54")
    page.get_by_role("link", name="Older").click()
    expect(names).to_have_text([*(f"Flaps {number}" for number in range(4, -1, -1)), opened.rule_name], timeout=SOON_MS)
    page.get_by_role("link", name="Newest").click()
    expect(names.first).to_have_text(opened.rule_name, timeout=SOON_MS)


def test_an_incident_shows_its_course_and_what_people_do_with_it(
    seen: Seen, looked: Looked, incident: AlertEvent
) -> None:
    page_alerts.land_minutes(looked.installation.postgres.dsn, int(time.time() * 1_000), 3)
    seen.open(f"alerts?customer={page_alerts.CUSTOMER}")
    page = seen.page
    row = page.locator("#incidents tbody tr").filter(has=page.get_by_role("link", name="Rebuffering, since")).first
    expect(row).to_contain_text("8.10% n 333 at opening", timeout=SOON_MS)
    # Both lead to the views that were open then.
    then = row.get_by_title("views that were open then"), row.get_by_title("all views on which it rests")
    for link, text in zip(then, ("8.10%", "n 333"), strict=True):
        expect(link).to_have_text(text)
        expect(link).to_have_attribute("href", re.compile(r"^/views\?customer=.*view_start_ms"))
    # What is usual has its n too, as in every place below.
    expect(row).to_contain_text("2.00% usual n 10,000 viewer minutes")
    row.get_by_role("button", name="What Viewers rebuffering means").click()
    expect(page.get_by_role("note")).to_contain_text("live viewers who rebuffer at this moment")
    page.keyboard.press("Escape")
    page.locator("#incidents").get_by_role("link", name="Rebuffering").click(timeout=SOON_MS)
    expect(page.locator("#course canvas")).to_have_count(2, timeout=SOON_MS)
    facts = page.locator("#incident-facts")
    usual = r"2\.00%,? n 10,000 viewer minutes"
    expect(page.locator("#figure-then")).to_have_text(re.compile(rf"At opening \?\s*8\.10%\s*n 333, usually {usual}"))
    found = page.locator("#found tbody tr").first
    expect(found).to_contain_text(re.compile(rf"8\.10% n 333 at opening\s*{usual}"))
    expect(page.locator("#figure-now")).to_have_text(re.compile(r"Now\s*0\.20%\s*n 500, minute to"), timeout=SOON_MS)
    expect(page.locator("#course .mark")).to_have_text(["began", "began"])
    # By 5 s: a mean by minute would hide the worst of a short incident.
    expect(page.locator("#course .plot").first).to_have_attribute("aria-label", re.compile("by 5 s"))
    expect(page.locator("#suspects li").first).to_contain_text(
        "CDN fastly: 97.0% of the excess, 50.0% of viewers n 2,000"
    )
    # Under the pointer, or the arrow keys, each share has its n.
    course = page.locator("#course .chart").first
    course.locator(".plot").press("ArrowRight")
    expect(course.locator(".legend .note")).to_have_text(re.compile(r"^n [\d,]+$"))
    for head in ("#figure-then", "#found-title", "#course .chart >> nth=0"):
        page.locator(head).get_by_role("button", name="What Viewers rebuffering means").click()
        expect(page.get_by_role("note")).to_contain_text("live viewers who rebuffer at this moment")
        page.keyboard.press("Escape")
    new_errors = page.locator("#found").get_by_role("link", name="Errors since then").first
    expect(new_errors).to_have_attribute("href", re.compile(f"^/errors.*since={incident.opened_ms}"))
    expect(page.locator("#incident-views b")).to_have_text(re.compile(r"\d"), timeout=SOON_MS)
    begin, end = seen.range("/v1/overall")
    assert begin <= incident.opened_ms < end
    views = len(within(looked, (begin, end), customer_id=page_alerts.CUSTOMER, cdn="fastly"))
    # It is asked again, and not shown for a moment, whenever a minute is over; no view ends any more.
    expect(page.locator("#incident-views b")).to_have_text(f"{views:,}", timeout=SOON_MS)
    # What is done to the incident changes neither what is shown beside it nor what is being typed.
    comment = page.locator("#new-comment [name=text]")
    comment.fill("We called the CDN.")
    page.evaluate(COUNT_SKELETONS)
    page.get_by_role("button", name="Acknowledge").click()
    expect(facts).to_contain_text(f"by {WATCHER}", timeout=SOON_MS)
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    page.get_by_role("button", name="Mute for a day").click()
    expect(facts).to_contain_text(f"muted by {WATCHER}", timeout=SOON_MS)
    page.get_by_role("button", name="Messages again").click()
    page.get_by_role("button", name="Mute for an hour").click(timeout=SOON_MS)
    expect(facts).to_contain_text(f"muted by {WATCHER}", timeout=SOON_MS)
    # The navigation shows where the screen belongs.
    expect(page.get_by_role("link", name="Alerts", exact=True)).to_have_attribute("aria-current", "true")
    expect(comment).to_have_value("We called the CDN.")
    assert page.evaluate("skeletons") == 0
    page.locator("#new-comment").get_by_role("button", name="Save").click()
    expect(page.locator("#comments")).to_contain_text("We called the CDN.", timeout=SOON_MS)


def test_the_course_of_an_incident_is_marked_where_it_began_and_was_over(
    seen: Seen, looked: Looked, incident: AlertEvent
) -> None:
    opened_ms = looked.now_ms // 60_000 * 60_000 - 40 * 60_000
    over = event(
        "closed", customer_id=page_alerts.CUSTOMER, incident_id="over", opened_ms=opened_ms,
        at_ms=opened_ms + 15 * 60_000, slices=incident.slices,
    )  # fmt: skip
    page_alerts.land(looked.installation.postgres.dsn, over)
    seen.open("incident?id=over")
    page = seen.page
    expect(page.locator("#course .mark")).to_have_text(["began", "over"] * 2, timeout=SOON_MS)
    # From 30 minutes before to 10 after: 55 in all.
    lefts = page.locator("#course .mark").evaluate_all(
        "(all) => all.map((one) => parseFloat(one.style.left) / one.parentElement.clientWidth)"
    )
    assert lefts == [pytest.approx(share, abs=0.01) for share in (30 / 55, 45 / 55) * 2]
    expect(page.locator("#figure-now")).to_have_count(0)


def test_filters_that_narrow_no_incident_say_what_they_are_for(seen: Seen, incident: AlertEvent) -> None:
    seen.open(f"alerts?{urlencode({'customer': 'acme', 'filter': json.dumps({'dimension': 'cdn', 'in': ['akamai']})})}")
    page = seen.page
    rows = page.locator("#incidents tbody tr", has_text=incident.rule_name)
    expect(rows.first).to_contain_text("fastly", timeout=SOON_MS)
    notice = page.locator("#not-narrowed")
    expect(notice).to_contain_text("Incidents and rules are of customer acme, with filters or without")
    notice.get_by_role("link", name="Take the filters away").click()
    expect(page.locator(".chip, #not-narrowed")).to_have_count(0, timeout=SOON_MS)
    expect(rows.first).to_be_visible()
