"""Each slice has one owner: before, during and after the finalizer's work, the page counts every row of `serving.views` once."""

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import psycopg
import pytest

from services.accounts.core.customer_scope import EVERYTHING
from services.dashboard.quality.queries import PostgresServing
from services.finalizer.jobs import reprocess, swap
from tests.integration.finalizing import expect_truth, newest
from tests.integration.hot import write
from tests.integration.warehousing import Warehouse, beacons_of, finished, somewhere

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

Figures = dict[str, tuple[int, float]]
Keys = set[tuple[Any, ...]]


class Page:
    """What the page shows at each step of the finalizer, held against the rows."""

    def __init__(self, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        self._dsn = warehouse.settings.postgres_dsn.get_secret_value()
        self.steps: list[str] = []
        #: Views that may not be missing at any step.
        self.known: Keys = set()
        with psycopg.connect(self._dsn) as connection:
            # As `serving` says when it has read the topic.
            connection.execute("UPDATE serving.coverage SET is_whole = true")
        monkeypatch.setattr(warehouse.dies, "reach", self.expect)
        database = warehouse.driver.serving
        for name in ("bring_recent", "restate_recent"):
            monkeypatch.setattr(database, name, self._followed(name, getattr(database, name)))

    def _followed(self, name: str, step: Callable[[Sequence[Any]], None]) -> Callable[[Sequence[Any]], None]:
        def followed(rows: Sequence[Any]) -> None:
            step(rows)
            self.expect(name)

        return followed

    def expect(self, step: str) -> None:
        """Asserts that the page shows the sums of the rows, and that none of the known views is missing."""
        self.steps.append(step)
        with psycopg.connect(self._dsn) as connection:
            rows = connection.execute(
                "SELECT customer_id, count(*), sum(watch_ms)::float8 FROM serving.views WHERE NOT deleted GROUP BY 1"
            ).fetchall()
            keys = set(connection.execute("SELECT customer_id, view_id, day FROM serving.views").fetchall())
        assert self._shown() == {customer: (views, watch_ms) for customer, views, watch_ms in rows}, step
        assert self.known <= keys, step

    def settled(self) -> None:
        """All slices belong to the rollups again."""
        with psycopg.connect(self._dsn) as connection:
            assert connection.execute("SELECT * FROM serving.hot_slices").fetchall() == []

    def _shown(self) -> Figures:
        async def ask() -> Figures:
            serving = PostgresServing(self._dsn, connections_max=1, seconds_max=20.0)
            await serving.open()
            try:
                found = await serving.rollups_since(datetime.fromtimestamp(0, UTC), EVERYTHING)
            finally:
                await serving.close()
            return {one.customer_id: (one.views, one.watch_ms) for one in found.sums}

        return asyncio.run(ask())


def test_revisions_in_pieces_count_once_at_every_step(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(11)
    landing = warehouse.driver.landing
    monkeypatch.setattr(landing, "_bytes_max", 8_000)
    monkeypatch.setattr(warehouse.driver.rebuilding, "_slices_max", 7)
    page = Page(warehouse, monkeypatch)
    landed = [somewhere(chance, f"view-{number}", revision=1) for number in range(40)]
    warehouse.land(landed)
    page.settled()
    page.known = {(view.customer_id, view.view_id, view.day) for view in landed}
    restated = [
        somewhere(chance, one.view_id, revision=chance.randint(1, 5), deleted=chance.random() < 0.2)
        for one in chance.sample(landed, 25)
    ]
    # The service is ahead with some of them.
    with psycopg.connect(warehouse.settings.postgres_dsn.get_secret_value(), autocommit=True) as connection:
        write(connection, restated[:8])
    page.steps.clear()
    warehouse.land([*restated, *(new := [somewhere(chance, f"new-{number}", revision=1) for number in range(15)])])
    assert page.steps.count("bring_recent") > 1
    assert page.steps.count("published") > 1
    page.settled()
    expect_truth(warehouse.installation, newest([*landed, *restated, *new]))


def test_a_swap_and_its_reversal_count_each_view_once_at_every_step(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    beacons = beacons_of("abcdef")
    warehouse.land_raw(beacons)
    # Another formula has made them: the one of now gives other sums.
    live = [msgspec.structs.replace(view, watch_ms=view.watch_ms + 7) for view in finished(beacons)]
    warehouse.land(live)
    page = Page(warehouse, monkeypatch)
    page.known = {(view.customer_id, view.view_id, view.day) for view in live}
    day = live[0].day
    made = reprocess.make(warehouse.spark, warehouse.settings.warehouse_dir, (day, day), 2, {})
    assert made.views == len(live)
    # Some views at a time.
    monkeypatch.setattr(warehouse.driver.landing, "_bytes_max", 3_000)

    swap.swap(warehouse.driver, 2)
    assert page.steps.count("restate_recent") > 1
    assert _generations(warehouse) == [(2,)]
    page.settled()

    page.steps.clear()
    swap.swap_back(warehouse.driver, 2)
    assert page.steps.count("restate_recent") > 1
    assert _generations(warehouse) == [(1,)]
    page.settled()
    expect_truth(warehouse.installation, newest(live))


def _generations(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return warehouse.installation.serving("SELECT DISTINCT generation FROM serving.views")
