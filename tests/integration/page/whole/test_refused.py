"""What is refused is said once, in words of people, with a way on: in a real browser."""

from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from services.accounts.commands import make_tenant
from services.accounts.core.roles import Role
from tests.integration.page.parts.installation import Looked
from tests.integration.page.parts.looking import Seen, logged_in
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration

REVERSED: Final = "customer=acme&from=2026-03-02T00:00&to=2026-03-01T00:00"


@pytest.mark.parametrize(
    ("address", "said", "way"),
    [
        (f"explore?{REVERSED}&metrics=rebuffer_fraction", "The range ends before it begins.", "Show the last 24 hours"),
        (f"titles?{REVERSED}", "The range ends before it begins.", "Show the last 24 hours"),
        ("views?customer=acme&score_below=abc&open=1", "“Score below” is no number.", "Search without it"),
        ("explore?customer=acme&tz=%2B05:30", "The time zone cannot be used.", "Show times of UTC"),
        ("explore?customer=acme&metrics=nonsense", "No metric is named nonsense.", "Show another metric"),
    ],
)
def test_a_question_that_is_wrong_is_said_once_and_leads_on(seen: Seen, address: str, said: str, way: str) -> None:
    seen.open(address)
    notice = seen.page.locator("main .notice.refused")
    expect(notice).to_contain_text(said, timeout=SOON_MS)
    expect(notice).to_have_count(1)
    text = seen.page.locator("main").inner_text()
    assert text.count(said) == 1
    assert not [word for word in ("/v1/", "`", "Expected", "The question is wrong") if word in text]
    notice.get_by_role("link", name=way).click()
    expect(notice).to_have_count(0, timeout=SOON_MS)


def test_a_page_that_a_role_does_not_have_leads_back(browser: Browser, looked: Looked) -> None:
    email = "viewer@oscorp.example"
    make_tenant(looked.installation.postgres.dsn, organisation="Oscorp", email=email, role=Role.VIEWER, customers=())
    context = logged_in(browser, looked, email)
    try:
        page = context.new_page()
        answer = page.goto(f"{looked.url}partitions")
        assert answer is not None
        assert answer.status == 404
        expect(page.locator("#missing")).to_contain_text("There is no such page, or your role does not have it")
        page.get_by_role("link", name="Go to Now").click()
        expect(page.locator("#account")).to_contain_text(email, timeout=SOON_MS)
    finally:
        context.close()
