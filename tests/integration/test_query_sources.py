"""The same question by different ways: sums of hot rows, hot rows, the warehouse, and both with a seam between them."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from deploy.local.postgres import Postgres as Server
from services.query.core import sums
from shared.schemas.view import View
from tests.integration.querying import Installation, installed
from tests.unit.query import asking
from tests.unit.query.recounting import HOUR_MS, T0_MS, a_view

pytestmark = pytest.mark.integration


@pytest.fixture
def installation(postgres: Server, tmp_path: Path) -> Iterator[Installation]:
    with installed(postgres, tmp_path) as made:
        yield made


def expect_truth(installation: Installation, views: list[View], seed: int, questions: int) -> None:
    """Any questions are answered as a recount of these views says, by every way that there is."""

    async def ask() -> None:
        chance = random.Random(seed)
        async with installation.answering() as answering:
            for _ in range(questions):
                one = asking.question(asking.asked(chance))
                asking.expect(one, await answering.answer(one, way="views"), views)
                if sums.suffice(one):
                    asking.expect(one, await answering.answer(one, way="sums"), views)

    asyncio.run(ask())


def test_hot_rows_sums_and_the_warehouse_say_the_same(installation: Installation) -> None:
    chance = random.Random(1)
    views = [a_view(chance, f"view-{number}") for number in range(400)]
    installation.in_warehouse([])
    installation.in_postgres(views)
    # All slices are hot: the warehouse is empty.
    expect_truth(installation, views, seed=1, questions=60)

    installation.in_warehouse(views)
    # The warehouse has them too, and each counts once.
    expect_truth(installation, views, seed=2, questions=60)

    installation.settle(before_hour=T0_MS // HOUR_MS + 40)
    expect_views(installation, views, seed=3, questions=60)

    installation.settle()
    with psycopg.connect(installation.dsn, autocommit=True) as connection:
        connection.execute("DELETE FROM serving.views")
        connection.execute("DELETE FROM serving.hot_slices")
    expect_views(installation, views, seed=4, questions=60)


def expect_views(installation: Installation, views: list[View], seed: int, questions: int) -> None:
    """The same without sums, where no finalizer has published any."""

    async def ask() -> None:
        chance = random.Random(seed)
        async with installation.answering() as answering:
            for _ in range(questions):
                one = asking.question(asking.asked(chance))
                asking.expect(one, await answering.answer(one, way="views"), views)

    asyncio.run(ask())
