"""The dashboard's queries on a real Postgres with the finalizer's own tables."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pytest

from deploy.local.postgres import Postgres
from services.dashboard.queries import CUSTOMERS_MAX, NotPublished, PostgresServing, QueryRefused
from services.finalizer.migrate import migrate
from services.finalizer.serving import Slice
from tests.integration.served import MEASURES, publish

pytestmark = pytest.mark.integration

EVER = datetime.fromtimestamp(0, UTC)


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    return postgres.create_database(f"dashboard_{uuid4().hex}")


@pytest.fixture
async def serving(dsn: str) -> AsyncIterator[PostgresServing]:
    opened = PostgresServing(dsn, connections_max=1, seconds_max=20.0)
    await opened.open()
    yield opened
    await opened.close()


async def test_sums_that_64_bits_do_not_hold_are_told(serving: PostgresServing, dsn: str) -> None:
    vast = dict.fromkeys(MEASURES, 1) | {"watch_ms": 10**30, "rebuffer_ms": 10**28, "bitrate_time_ms": 10**25}
    publish(dsn, {Slice(hour, "acme"): vast for hour in range(3)} | {Slice(0, "other"): vast})

    found = await serving.rollups_since(EVER)

    assert found.published_at is not None
    assert [(one.customer_id, one.views) for one in found.sums] == [("acme", 3), ("other", 1)]
    assert found.sums[0].rebuffer_ms / found.sums[0].watch_ms == pytest.approx(0.01)


async def test_customers_beyond_the_limit_are_counted(serving: PostgresServing, dsn: str) -> None:
    figures = dict.fromkeys(MEASURES, 1)
    publish(dsn, {Slice(0, f"customer_{number}"): figures for number in range(CUSTOMERS_MAX + 7)})
    found = await serving.rollups_since(EVER)
    assert (len(found.sums), found.customers_omitted) == (CUSTOMERS_MAX, 7)
    assert (await serving.rollups_since(datetime.fromtimestamp(2**32, UTC))).customers_omitted == 0


async def test_tables_that_are_not_there_and_tables_of_another_version_are_told_apart(
    serving: PostgresServing, dsn: str
) -> None:
    with pytest.raises(NotPublished):
        await serving.rollups_since(EVER)
    with psycopg.connect(dsn, autocommit=True) as connection:
        migrate(connection)
        connection.execute("ALTER TABLE serving.rollups_hourly RENAME COLUMN watch_ms TO watched_ms")
    with pytest.raises(QueryRefused, match="UndefinedColumn"):
        await serving.rollups_since(EVER)
