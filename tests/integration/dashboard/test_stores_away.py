"""The page says that Postgres or Kafka is away, keeps what it had, and goes on when they are back."""

import re

import pytest
from playwright.sync_api import Page, expect

from services.finalizer.serving.migrate import migrate
from shared.schemas.live import BUCKET_MS
from tests.integration.dashboard.dashboard_parts import Installation, newest_bucket
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration


def test_the_page_says_that_postgres_is_away_and_recovers(installation: Installation, page: Page) -> None:
    migrate(installation.postgres.dsn)
    expect(page.locator("#finished")).to_be_visible(timeout=SOON_MS)
    installation.postgres.stop()
    try:
        # The next picture needs to know who looks.
        installation.count("acme", newest_bucket() + 8 * BUCKET_MS, viewers_now=1)
        expect(page.locator("#status-text")).to_contain_text("Postgres out of reach", timeout=SOON_MS)
        # What was shown stays, marked with its age.
        expect(page.locator("main")).to_contain_text("Postgres does not answer", timeout=SOON_MS)
        expect(page.locator("main")).to_contain_text(re.compile(r"What is shown is \d+ s old"), timeout=SOON_MS)
        expect(page.locator("#finished")).to_be_visible()
    finally:
        installation.postgres.start()
    expect(page.locator("main")).not_to_contain_text("Postgres does not answer", timeout=2 * SOON_MS)


def test_the_page_says_that_kafka_is_away_and_goes_on_when_it_is_back(installation: Installation, page: Page) -> None:
    installation.count("acme", newest_bucket(), viewers_now=1)
    installation.broker.stop()
    try:
        expect(page.locator("#status-text")).to_contain_text("Kafka out of reach", timeout=2 * SOON_MS)
    finally:
        installation.broker.start()
    # Ahead of all that was counted before.
    bucket_ms = newest_bucket() + 9 * BUCKET_MS
    installation.count("acme", bucket_ms, 1, viewers_now=1)
    installation.count("initech", bucket_ms, viewers_now=77)
    page.locator("#customer").select_option("initech", timeout=2 * SOON_MS)
    expect(page.locator("#tile-viewers .value")).to_have_text("77", timeout=SOON_MS)
    expect(page.locator("#status-text")).to_contain_text("Live")
