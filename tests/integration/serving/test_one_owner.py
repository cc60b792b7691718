"""Each slice has one owner: before, during and after the finalizer's work, the API counts every row of `serving.views` once."""

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from services.finalizer.jobs import reprocess, swap
from services.query.core.answer import Breakdown
from services.query.core.question import AskedBreakdown, understood
from services.query.scope import Caller
from tests.integration.finalizer.expecting import expect_truth
from tests.integration.finalizer.finalizing import HOUR_MS, newest
from tests.integration.finalizer.warehouse.warehousing import Warehouse, beacons_of, finished, somewhere
from tests.integration.query.querying import answering
from tests.integration.serving.hot import write

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

Figures = dict[str, tuple[int, float]]
Keys = set[tuple[Any, ...]]


class Api:
    """What the API answers from sums at each step of the finalizer, compared with the rows."""

    def __init__(self, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = Path(warehouse.settings.warehouse_dir)
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
        """Asserts that the API has the sums of the rows, and that none of the known views is missing."""
        self.steps.append(step)
        with psycopg.connect(self._dsn) as connection:
            rows = connection.execute(
                "SELECT customer_id, count(*), sum(watch_ms)::float8 FROM serving.views WHERE NOT deleted GROUP BY 1"
            ).fetchall()
            keys = set(connection.execute("SELECT customer_id, view_id, day FROM serving.views").fetchall())
            # Before the first row any hours do.
            bounds = connection.execute(
                "SELECT coalesce(min(hour), 480000) - 48, coalesce(max(hour), 480000) + 49 FROM serving.views"
            ).fetchone()
        assert bounds is not None
        assert self._shown(bounds) == {customer: (views, watch_ms) for customer, views, watch_ms in rows}, step
        assert self.known <= keys, step

    def settled(self) -> None:
        """All slices belong to the rollups again."""
        with psycopg.connect(self._dsn) as connection:
            assert connection.execute("SELECT * FROM serving.hot_slices").fetchall() == []

    def _shown(self, hours: tuple[int, int]) -> Figures:
        """From blocks of hours, and the same from each hour and client."""

        async def ask(by: str) -> Breakdown:
            one = AskedBreakdown(
                by=by,
                metrics="views,watch_ms",
                limit=1_000,
                from_=str(hours[0] * HOUR_MS),
                to=str(hours[1] * HOUR_MS),
            )
            async with answering(self._dsn, self._folder, connections_max=1) as asked:
                found = await asked.answer(understood(one, Caller("test").admit, hours[1] * HOUR_MS))
            assert isinstance(found, Breakdown)
            assert [source.name for source in found.about.sources] == ["sums"]
            return found

        shown: list[Figures] = []
        for by in ("customer", "customer,source"):
            figures: Figures = {}
            for group in asyncio.run(ask(by)).groups:
                customer = str(group.key[0])
                views, watch_ms = figures.get(customer, (0, 0.0))
                more = float(group.metrics["watch_ms"].value or 0)
                if group.n:
                    figures[customer] = (views + group.n, watch_ms + more)
            shown.append(figures)
        assert shown[0] == shown[1]
        return shown[0]


def test_revisions_in_pieces_count_once_at_every_step(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(11)
    landing = warehouse.driver.landing
    monkeypatch.setattr(landing, "_bytes_max", 8_000)
    # Two transactions, then three.
    monkeypatch.setattr(warehouse.driver.rebuilding, "_slices_max", 20)
    api = Api(warehouse, monkeypatch)
    landed = [somewhere(chance, f"view-{number}", revision=1) for number in range(40)]
    warehouse.land(landed)
    api.settled()
    api.known = {(view.customer_id, view.view_id, view.day) for view in landed}
    restated = [
        somewhere(chance, one.view_id, revision=chance.randint(1, 5), deleted=chance.random() < 0.2)
        for one in chance.sample(landed, 25)
    ]
    # The service is ahead with some of them.
    with psycopg.connect(warehouse.settings.postgres_dsn.get_secret_value(), autocommit=True) as connection:
        write(connection, restated[:8])
    api.steps.clear()
    warehouse.land([*restated, *(new := [somewhere(chance, f"new-{number}", revision=1) for number in range(15)])])
    assert api.steps.count("bring_recent") > 1
    assert api.steps.count("published") > 1
    api.settled()
    expect_truth(warehouse.installation, newest([*landed, *restated, *new]))


def test_a_swap_and_its_reversal_count_each_view_once_at_every_step(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    beacons = beacons_of("abcdef")
    warehouse.land_raw(beacons)
    # Another formula has made them: the one of now gives other sums.
    live = [msgspec.structs.replace(view, watch_ms=view.watch_ms + 7) for view in finished(beacons)]
    warehouse.land(live)
    api = Api(warehouse, monkeypatch)
    api.known = {(view.customer_id, view.view_id, view.day) for view in live}
    day = live[0].day
    made = reprocess.make(warehouse.spark, warehouse.settings.warehouse_dir, (day, day), 2, {})
    assert made.views == len(live)
    # Some views at a time.
    monkeypatch.setattr(warehouse.driver.landing, "_bytes_max", 3_000)

    swap.swap(warehouse.driver, 2)
    assert api.steps.count("restate_recent") > 1
    assert _generations(warehouse) == [(2,)]
    api.settled()

    api.steps.clear()
    swap.swap_back(warehouse.driver, 2)
    assert api.steps.count("restate_recent") > 1
    assert _generations(warehouse) == [(1,)]
    api.settled()
    expect_truth(warehouse.installation, newest(live))


def _generations(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return warehouse.installation.serving("SELECT DISTINCT generation FROM serving.views")
