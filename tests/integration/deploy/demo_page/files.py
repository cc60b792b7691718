"""What is exported by clicks."""

from collections import Counter
from typing import Final

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from pyarrow import csv, parquet

from shared.schemas.view import View
from tests.integration.deploy.demo_page.told import RANGE, Told
from tests.integration.page.parts.looking import Seen
from tests.integration.parts.browsing import SOON_MS

#: Columns of which the sums are held; the last one is not there until a click adds it.
_SUMMED: Final = ("watch_ms", "startup_ms", "rebuffer_ms", "score_view", "rebuffer_count")
_NAMED: Final = ("video_title", "country", "cdn", "player_version", "error_code")


def views(seen: Seen, told: Told) -> None:
    """All views as CSV and as Parquet: how many they are, their sums, and how many have each value."""
    seen.go("Views", within=RANGE)
    page = seen.page
    expect(page.locator("#views tbody tr").first).to_be_visible(timeout=SOON_MS)
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="Stalls", exact=True).check()
    expect(page.locator("#views thead")).to_contain_text("Stalls", timeout=SOON_MS)
    texts = csv.ConvertOptions(
        column_types={"error_code": pa.string(), "player_version": pa.string()}, strings_can_be_null=True
    )
    for form in ("CSV", "Parquet"):
        with page.expect_download(timeout=2 * SOON_MS) as download:
            page.locator(".export").get_by_role("button", name=form).click()
        file = download.value.path()
        found = csv.read_csv(file, convert_options=texts) if form == "CSV" else parquet.read_table(file)
        _hold(found, told.views)


def _hold(found: pa.Table, views: list[View]) -> None:
    assert sorted(found["view_id"].to_pylist()) == sorted(view.view_id for view in views)
    for name in _SUMMED:
        truth = [getattr(view, name) for view in views]
        values = found[name].to_pylist()
        assert sum(value is None for value in values) == truth.count(None), name
        assert sum(value or 0 for value in values) == pytest.approx(
            sum(value or 0 for value in truth), rel=0, abs=1e-6
        ), name
    for name in _NAMED:
        assert Counter(found[name].to_pylist()) == Counter(getattr(view, name) for view in views), name
