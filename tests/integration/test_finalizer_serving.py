"""The serving database: slices are replaced whole, older drivers are refused, a database that was away is found again."""

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from deploy.demo.observe import published_ms
from deploy.local.postgres import Postgres
from services.finalizer.serving.database import Fenced, Serving, ServingAway, StatementTooSlow
from services.finalizer.serving.migrate import MIGRATIONS_DIR, migrate
from services.finalizer.serving.published import Rebuilt, RecentView, Slice
from services.rim.database import migrations
from tests.integration.served import MEASURES, total

pytestmark = pytest.mark.integration


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    return postgres.create_database(f"serving_{uuid4().hex}")


@pytest.fixture
def serving(dsn: str) -> Iterator[Serving]:
    opened = _serving(dsn)
    opened.open()
    yield opened
    opened.close()


def test_a_published_slice_replaces_the_old_one_and_is_dirty_no_more(serving: Serving, dsn: str) -> None:
    here, there = Slice(491_000, "acme"), Slice(491_000, "other")
    serving.mark_dirty({here, there})
    serving.mark_dirty({here})
    serving.publish(_rebuilt([here, there], views=3), checkpoint_id="c", batch_id=7)
    serving.mark_dirty({here, there})

    serving.publish(_rebuilt([here], views=5), checkpoint_id="c", batch_id=8)

    assert serving.dirty(10) == [there]
    assert _query(
        dsn, "SELECT extract(epoch FROM hour)::int, customer_id, views FROM serving.rollups_hourly ORDER BY 2"
    ) == [
        (491_000 * 3600, "acme", 5),
        (491_000 * 3600, "other", 3),
    ]
    assert _query(dsn, "SELECT customer_id, count FROM serving.histograms_hourly ORDER BY 1") == [
        ("acme", 5),
        ("other", 3),
    ]
    assert _query(dsn, "SELECT checkpoint_id, batch_id FROM finalizer.fence") == [("c", 8)]


def test_the_moment_of_the_last_publishing_is_reported_and_none_before_the_first(serving: Serving, dsn: str) -> None:
    assert published_ms(dsn) == set()
    one = Slice(491_000, "acme")
    serving.publish(_rebuilt([one], views=1), checkpoint_id="c", batch_id=1)
    (first_ms,) = published_ms(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE finalizer.fence SET published_at = published_at - interval '1 hour'")

    serving.publish(_rebuilt([one], views=2), checkpoint_id="c", batch_id=2)

    (second_ms,) = published_ms(dsn)
    assert second_ms >= first_ms


def test_a_slice_that_has_lost_its_last_view_disappears(serving: Serving, dsn: str) -> None:
    gone = Slice(491_000, "acme")
    serving.publish(_rebuilt([gone], views=1), checkpoint_id="c", batch_id=1)

    serving.publish(Rebuilt([gone], MEASURES, []), checkpoint_id="c", batch_id=2)

    assert _query(dsn, "SELECT count(*) FROM serving.rollups_hourly") == [(0,)]
    assert _query(dsn, "SELECT count(*) FROM serving.histograms_hourly") == [(0,)]


def test_a_publish_that_fails_leaves_everything_as_it_was(serving: Serving, dsn: str) -> None:
    one = Slice(491_000, "acme")
    serving.publish(_rebuilt([one], views=1), checkpoint_id="c", batch_id=1)
    serving.mark_dirty({one})
    (group,) = _rebuilt([one], views=2).groups
    wrong = Rebuilt([one], MEASURES, [group, replace(group, grain="no_grain")])

    with pytest.raises(psycopg.errors.CheckViolation):
        serving.publish(wrong, checkpoint_id="c", batch_id=2)

    assert _query(dsn, "SELECT views FROM serving.rollups_hourly") == [(1,)]
    assert serving.dirty(10) == [one]


def test_a_driver_that_another_has_replaced_can_neither_mark_nor_publish(serving: Serving, dsn: str) -> None:
    newer = _serving(dsn)
    newer.open()
    newer.close()

    with pytest.raises(Fenced):
        serving.mark_dirty({Slice(1, "acme")})
    with pytest.raises(Fenced):
        serving.publish(_rebuilt([Slice(1, "acme")], views=1), checkpoint_id="c", batch_id=1)
    assert _query(dsn, "SELECT count(*) FROM serving.rollups_hourly") == [(0,)]


def test_a_connection_that_broke_is_replaced(serving: Serving, dsn: str) -> None:
    serving.mark_dirty({Slice(1, "acme")})
    _query(
        dsn,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'playhead-finalizer' AND datname = current_database()",
    )

    serving.mark_dirty({Slice(2, "acme")})

    assert serving.dirty(10) == [Slice(1, "acme"), Slice(2, "acme")]


def test_a_database_that_stays_away_is_given_up_and_its_password_not_logged() -> None:
    serving = _serving("postgresql://user:hunter2@127.0.0.1:1/none", away_seconds_max=0.3)

    with pytest.raises(ServingAway) as caught:
        serving.open()

    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


def test_what_an_older_version_published_is_published_again_by_this_one(dsn: str, tmp_path: Path) -> None:
    newer = {"r0004_rollups", "r0005_blocks", "r0006_gathered"}
    for path in MIGRATIONS_DIR.iterdir():
        if path.is_file() and path.stem not in newer:
            shutil.copy(path, tmp_path)
    assert migrations.migrate(dsn, "finalizer", tmp_path) == ["0001", "0002", "0003"]
    columns = ", ".join(MEASURES)
    ones = ", ".join("1" for _ in MEASURES)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            f"INSERT INTO serving.rollups_hourly (hour, customer_id, {columns}) VALUES (to_timestamp(3600), 'acme', {ones})"
        )
    assert migrate(dsn) == ["0004", "0005", "0006"]
    assert _query(dsn, "SELECT hour, customer_id FROM finalizer.dirty_slices") == [(1, "acme")]
    assert _query(dsn, "SELECT count(*) FROM serving.rollups_hourly") == [(0,)]


def test_hours_that_were_published_before_blocks_were_are_in_them(serving: Serving, dsn: str) -> None:
    slices = [Slice(hour, "acme") for hour in range(491_000, 491_005)]
    serving.publish(_rebuilt(slices, views=3), checkpoint_id="c", batch_id=1)
    blocks = _query(dsn, "SELECT * FROM serving.blocks ORDER BY level, block")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "DROP TABLE serving.blocks; DROP FUNCTION finalizer.refresh_blocks; DROP INDEX serving.rollups_gathered"
        )
        connection.execute("UPDATE public.finalizer_revision SET version_num = '0004'")

    assert migrate(dsn) == ["0005", "0006"]

    assert _query(dsn, "SELECT * FROM serving.blocks ORDER BY level, block") == blocks
    assert _query(dsn, "SELECT sum(views)::int, max(level) FROM serving.blocks WHERE level IN (0, 13)") == [(30, 13)]


def test_a_view_is_looked_up_as_its_newest_revision_and_none_that_was_taken_back_returns(
    serving: Serving, dsn: str
) -> None:
    def bring(*recent: RecentView) -> None:
        serving.bring_recent(recent)

    one = RecentView(
        "acme", "one", 1, 2, deleted=False, day=20_000, end_ms=1_770_012_000_000, document='{"a": "\\u0000"}'
    )
    bring(one, one._replace(view_id="two", revision=1))
    bring(one._replace(revision=1, document="older"), one._replace(view_id="two", revision=2, deleted=True))
    bring(one._replace(view_id="two", revision=1))

    assert _query(dsn, "SELECT view_id, revision, deleted, document FROM serving.views ORDER BY 1") == [
        ("one", 2, False, one.document),
        ("two", 2, True, one.document),
    ]
    serving.expire(rollups_before_ms=None, views_before_day=20_001)
    assert _query(dsn, "SELECT count(*) FROM serving.views") == [(0,)]


def test_of_a_view_id_on_two_days_the_same_one_is_looked_up_wherever_batches_end(serving: Serving, dsn: str) -> None:
    def brought(*batches: list[RecentView]) -> list[tuple[object, ...]]:
        _query(dsn, "DELETE FROM serving.views RETURNING 1")
        for batch in batches:
            serving.bring_recent(batch)
        return _query(dsn, "SELECT day, document FROM serving.views")

    first = RecentView("acme", "one", 1, 1, deleted=False, day=20_000, end_ms=1_770_012_000_000, document="first")
    second = first._replace(day=20_001, document="second")

    assert brought([first, second]) == brought([first], [second]) == brought([second], [first]) == [(20_001, "second")]


SLOW_SECONDS = 0.4


@pytest.fixture
def slow(dsn: str) -> Iterator[Serving]:
    """Every insert of rollups takes longer than a statement may take at first."""
    opened = Serving(dsn, away_seconds_max=0.1, stop=threading.Event(), statement_ms=50)
    opened.open()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN PERFORM pg_sleep({SLOW_SECONDS}); RETURN NULL; END $$"
        )
        connection.execute("CREATE TRIGGER slow AFTER INSERT ON serving.rollups EXECUTE FUNCTION slow()")
    yield opened
    opened.close()


def test_a_statement_that_takes_too_long_gets_more_time_since_the_database_is_not_away(slow: Serving, dsn: str) -> None:
    one = Slice(491_000, "acme")
    slow.mark_dirty({one})

    slow.publish(_rebuilt([one], views=3), checkpoint_id="c", batch_id=1)

    assert slow.dirty(10) == []
    assert _query(dsn, "SELECT views FROM serving.rollups_hourly") == [(3,)]


def test_a_statement_that_never_ends_is_given_up_with_what_it_was_cancelled_for(dsn: str) -> None:
    serving = Serving(dsn, away_seconds_max=20, stop=threading.Event(), statement_ms=1_000, statement_ms_max=2_000)
    serving.open()
    with psycopg.connect(dsn) as connection:
        connection.execute("LOCK TABLE serving.rollups")
        with pytest.raises(StatementTooSlow, match="cancelled after 2000 ms: canceling statement due to statement"):
            serving.publish(_rebuilt([Slice(491_000, "acme")], views=3), checkpoint_id="c", batch_id=1)
    serving.close()


def _serving(dsn: str, away_seconds_max: float = 20.0) -> Serving:
    return Serving(dsn, away_seconds_max=away_seconds_max, stop=threading.Event())


def _rebuilt(slices: list[Slice], *, views: int) -> Rebuilt:
    """The slices with `views` views each and 1 of all else."""
    measures = [views, *[1] * (len(MEASURES) - 1)]
    return Rebuilt(slices, MEASURES, [total(one, measures, {300: views}) for one in slices])


def _query(dsn: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchall()
