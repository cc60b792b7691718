"""Questions about what the finalizer itself has written: revisions as deletion vectors, published sums, settled hours."""

import asyncio
import random
from pathlib import Path

import psycopg
import pytest

from services.query.core.sql import sums
from services.query.rim.warehouse import ViewsTable
from shared.schemas.view import View
from tests.integration.finalizer.finalizing import newest
from tests.integration.finalizer.warehouse.warehousing import Warehouse
from tests.integration.query.querying import Installation
from tests.unit.query.parts import asking
from tests.unit.query.parts.recounting import a_view

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


def test_what_the_finalizer_has_landed_is_answered_from_files_and_sums(warehouse: Warehouse) -> None:
    chance = random.Random(21)
    first = [a_view(chance, f"view-{number}") for number in range(100)]
    revised = [a_view(chance, view.view_id, revision=2) for view in first[:30]]
    warehouse.land(first, rebuilds=False)
    warehouse.land(revised)
    folder = Path(warehouse.settings.warehouse_dir)
    dsn = warehouse.settings.postgres_dsn.get_secret_value()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE serving.coverage SET is_whole = true")
        hot = connection.execute("SELECT count(*) FROM serving.hot_slices").fetchone()
    views = newest([*first, *revised])
    snapshot = ViewsTable(folder).snapshot()
    assert hot == (0,)
    assert snapshot.removed is not None
    assert snapshot.removed.num_rows == len(revised)

    installation = Installation(dsn, warehouse.driver.serving, folder)
    ask(installation, views, seed=21)
    # Another reader of the topic is ahead of the finalizer.
    ahead = [a_view(chance, f"view-{number}", revision=3) for number in range(20, 120)]
    installation.in_postgres(ahead)
    ask(installation, newest([*views, *ahead]), seed=22)


def ask(installation: Installation, views: list[View], seed: int) -> None:
    async def asked() -> None:
        chance = random.Random(seed)
        async with installation.answering() as answering:
            for _ in range(60):
                one = asking.question(asking.asked(chance))
                asking.expect(one, await answering.answer(one, way="views"), views)
                if sums.suffice(one):
                    asking.expect(one, await answering.answer(one, way="sums"), views)

    asyncio.run(asked())
