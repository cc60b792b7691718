"""The page while the dashboard's process is stopped or ends. Last: it ends the one that all files share."""

import os
import signal

import pytest
from playwright.sync_api import Page, expect

from shared.schemas.live import BUCKET_MS
from tests.integration.dashboard.dashboard_parts import Installation, newest_bucket, start_dashboard
from tests.integration.parts.browsing import SOON_MS

pytestmark = pytest.mark.integration


def test_a_dashboard_that_is_stopped_is_named_as_the_cause(installation: Installation, page: Page) -> None:
    installation.count("acme", newest_bucket() + 3 * BUCKET_MS, viewers_now=1)
    expect(page.locator("#status-text")).to_contain_text("old", timeout=SOON_MS)
    pid = installation.dashboard.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        expect(page.locator("#status-text")).to_contain_text("Dashboard does not answer", timeout=SOON_MS)
        expect(page.locator("#live-notice")).to_contain_text("has sent nothing for")
    finally:
        os.kill(pid, signal.SIGCONT)
    expect(page.locator("#status-text")).not_to_contain_text("Dashboard", timeout=SOON_MS)


def test_sigterm_ends_the_streams_and_leaves_cleanly(installation: Installation, page: Page) -> None:
    # Last: it ends the dashboard, and starts a new one that the page finds by itself.
    expect(page.locator("#status-text")).to_contain_text("old", timeout=SOON_MS)
    assert installation.dashboard.stop(90) == 0
    expect(page.locator("#status-text")).to_contain_text("Dashboard out of reach", timeout=SOON_MS)
    installation.dashboard = start_dashboard(
        installation.folder,
        installation.broker,
        installation.postgres.dsn,
        installation.port,
        installation.lookup_port,
    )
    expect(page.locator("#status-text")).not_to_contain_text("out of reach", timeout=SOON_MS)
